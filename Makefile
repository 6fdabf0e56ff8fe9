# Two commands do everything from a bare checkout: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Modules are compiled once and kept, whatever the shell says: the suite starts many processes that import contone.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help installed demo test coverage lint style docstrings types size format docs site report bench hostile mutants oldest wheel-check release-check clean

help:                         ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# An environment with pip in it; an interrupted or refused attempt is repaired by the next one.
define ensure_venv
@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "contone needs Python 3.11 or newer; name one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }; \
	echo "creating $(VENV)"; \
	$(PYTHON) -m venv $(VENV) \
		|| { echo "Python's venv module is incomplete; on Debian and Ubuntu: apt install python3-venv"; exit 1; }; }
endef

# One stamp per level of installation, so that the second run starts at once; __init__.py holds the version.
HELD := pyproject.toml constraints.txt src/contone/__init__.py
$(VENV)/installed-report: $(HELD)
	$(ensure_venv)
	@echo "installing contone with its command line and its pages (a minute the first time)"
	@$(PIP) -e '.[report]'
	@touch $@

# pip would compile every module of every package, one after the other; a quarter of them is imported by the tests.
# Collecting the tests compiles that quarter, and the tests; meanwhile numba compiles the loops of Inversion.
$(VENV)/installed-test: $(HELD)
	$(ensure_venv)
	@echo "installing contone with its test extras (a few minutes the first time)"
	@$(PIP) --no-compile -e '.[lint]'
	@$(BIN)/python scripts/compile_loops.py & $(BIN)/python -m pytest --collect-only -q >/dev/null || true; wait
	@touch $@ $(VENV)/installed-report

$(VENV)/installed-docs: $(HELD)
	$(ensure_venv)
	@echo "installing contone with what builds its site (a few minutes the first time)"
	@$(PIP) -e '.[docs]'
	@touch $@

installed: $(VENV)/installed-test ## install everything that lint, test and wheel-check need

demo: $(VENV)/installed-report   ## run every method on the built-in data; print a table, write figures and a page
	@$(BIN)/python -m contone benchmark --store contone-demo --max-rows 900 --seeds 1 --no-estimate $(ARGS)

# The whole suite runs in two processes, a part of it (PYTEST_ARGS) in one, so that --pdb works.
WORKERS ?= $(if $(PYTEST_ARGS),0,2)
test: $(VENV)/installed-test  ## run the test suite; a part of it: make test PYTEST_ARGS="-k glle"
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

# Tracing takes half as long again as the suite itself, so that it is a step of its own, before a release and in the
# workflows.
coverage: $(VENV)/installed-test ## run the test suite and require the coverage that pyproject.toml asks for
	$(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report=term

lint: types style docstrings size ## check the code: ruff (lint and format), codespell, docstrings (numpydoc), mypy, the budget of lines

style: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell

docstrings: $(VENV)/installed-test
	@$(BIN)/python -m numpydoc lint $$(find src -name '*.py')

types: $(VENV)/installed-test
	$(BIN)/mypy

size: $(VENV)/installed-test  ## print lines per folder and how many files a call enters; fails over budget
	$(BIN)/python scripts/size.py

format: $(VENV)/installed-test ## format the code and apply the safe corrections of ruff
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/installed-report   ## write the pages that are generated from the code: docs/cli.md
	@$(BIN)/python scripts/cli_reference.py > docs/cli.md.new && mv docs/cli.md.new docs/cli.md

SITE := docs/_build/html
site: $(VENV)/installed-docs  ## build the documentation site in docs/_build/html; it runs every example and follows every link
	@rm -rf docs/_build docs/gallery docs/reference/generated
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs $(SITE)
	@$(BIN)/python scripts/check_links.py $(SITE)

STORE ?= contone-results
report: $(VENV)/installed-report ## run the paper's experiments on the data available locally; write report.html and docs/reproduction.md
	-@$(BIN)/python -m contone reproduce --store $(STORE)  # failed cells are shown in the report
	@$(BIN)/python -m contone report --store $(STORE) -o report.html
	@$(BIN)/python -m contone report --store $(STORE) -o docs/reproduction.md

bench: $(VENV)/installed-report  ## measure every method and say what became slower than stored; BENCH_ARGS="--store" stores
	$(BIN)/python benchmarks/compare.py $(BENCH_ARGS)

CASES ?= 100000
hostile: $(VENV)/installed-test ## hand anything to every public class, CASES=100000 times; other cases each time
	HOSTILE_CASES=$(CASES) $(BIN)/python -m pytest -q -n $(or $(filter-out 0,$(WORKERS)),2) tests/hostile

mutants: $(VENV)/installed-test ## put small faults into the code and say which the tests notice; MUTANTS_ARGS="numerics -n 40"
	$(BIN)/python scripts/mutants.py $(MUTANTS_ARGS)

oldest: $(VENV)/installed-report ## run a part of the suite with the oldest supported dependencies, in .venv-oldest
	$(BIN)/python scripts/oldest.py $(PYTEST_ARGS)

wheel-check: $(VENV)/installed-report ## build the wheel and try it in a new environment
	$(BIN)/python scripts/wheel_check.py

release-check: $(VENV)/installed-report ## everything that a release needs: sdist and wheel, metadata, size, the same bytes twice, both tried
	$(BIN)/python scripts/release_check.py

clean:                        ## remove the environments and everything built
	rm -rf $(VENV) .venv-oldest build dist docs/_build docs/_generated docs/gallery docs/reference/generated .pytest_cache .mypy_cache .ruff_cache .mutants .coverage contone-demo
