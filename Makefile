# Two commands do everything from a bare checkout: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help demo test lint format bench clean

help:            ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/'

# One stamp a level of installation, so that the second run starts at once.
$(VENV)/installed-cli: pyproject.toml constraints.txt
	@test -x $(BIN)/python || { echo "creating $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing contone with its command line"
	@$(PIP) -e '.[cli]'
	@touch $@

$(VENV)/installed-test: pyproject.toml constraints.txt
	@test -x $(BIN)/python || { echo "creating $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing contone with its test extras (a few minutes the first time)"
	@$(PIP) -e '.[lint]'
	@touch $@ $(VENV)/installed-cli

demo: $(VENV)/installed-cli   ## enhance the built-in data set, print a table, write figures and a page
	@$(BIN)/contone demo

test: $(VENV)/installed-test  ## run the whole test suite, with coverage
	$(BIN)/python -m pytest --cov --cov-report=term $(PYTEST_ARGS)

lint: $(VENV)/installed-test  ## ruff (lint and format) and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/installed-test ## let ruff rewrite the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:           ## remove the environment and everything built
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .coverage contone-demo
