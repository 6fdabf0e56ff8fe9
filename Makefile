# Two commands do everything from a bare checkout: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help demo test lint format docs report clean

help:            ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/'

# An environment with pip in it; an interrupted or refused attempt is repaired by the next one.
define ensure_venv
@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "contone needs Python 3.11 or newer; name one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }; \
	echo "creating $(VENV)"; \
	$(PYTHON) -m venv $(VENV) \
		|| { echo "Python's venv module is incomplete; on Debian and Ubuntu: apt install python3-venv"; exit 1; }; }
endef

# One stamp a level of installation, so that the second run starts at once.
$(VENV)/installed-cli: pyproject.toml constraints.txt
	$(ensure_venv)
	@echo "installing contone with its command line (a minute the first time)"
	@$(PIP) -e '.[cli]'
	@touch $@

$(VENV)/installed-test: pyproject.toml constraints.txt
	$(ensure_venv)
	@echo "installing contone with its test extras (a few minutes the first time)"
	@$(PIP) -e '.[lint]'
	@touch $@ $(VENV)/installed-cli

demo: $(VENV)/installed-cli   ## enhance the built-in data set, print a table, write figures and a page
	@$(BIN)/python -m contone demo $(ARGS)

test: $(VENV)/installed-test  ## run the whole test suite, with coverage
	$(BIN)/python -m pytest --cov --cov-report=term $(PYTEST_ARGS)

lint: $(VENV)/installed-test  ## ruff (lint and format) and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/installed-test ## let ruff rewrite the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/installed-cli   ## write the pages that are made from the code: docs/cli.md
	@$(BIN)/python -m contone.cli.reference > docs/cli.md.new && mv docs/cli.md.new docs/cli.md

STORE ?= contone-results
report: $(VENV)/installed-cli ## run the paper's experiments on the data at hand; write report.html and docs/reproduction.md
	-@$(BIN)/python -m contone reproduce --store $(STORE)  # failed cells are shown in the report
	@$(BIN)/python -m contone report --store $(STORE) -o report.html
	@$(BIN)/python -m contone report --store $(STORE) -o docs/reproduction.md

clean:           ## remove the environment and everything built
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .coverage contone-demo
