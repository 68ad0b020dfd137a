# Everything happens in .venv; a target's first run sets up what it needs, later runs are quick.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
BUILD_INPUTS := pyproject.toml CMakeLists.txt $(wildcard cpp/*)

.PHONY: help demo test quick lint format bench docs clean

help:
	@echo "make demo    set up and run the main job on embedded data"
	@echo "make test    set up and run all tests"
	@echo "make quick   only the tests that are not marked slow"
	@echo "make lint    style and types"
	@echo "make format  rewrite files in the house format"
	@echo "make bench   measure speed, into benchmarks/results/report.md (BENCH=whole: 100 million ratings)"
	@echo "make docs    build the documentation into site/"
	@echo "make clean   remove everything that was built"

demo: $(VENV)/installed
	$(BIN)/taciturn demo

test: $(VENV)/installed $(VENV)/group-test
	$(BIN)/python -m pytest -n auto

quick: $(VENV)/installed $(VENV)/group-test
	$(BIN)/python -m pytest -n auto -m "not slow"

lint: $(VENV)/installed $(VENV)/group-test $(VENV)/group-lint
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(VENV)/group-lint
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(VENV)/installed $(VENV)/group-test
	$(BIN)/python -m benchmarks $(BENCH)

docs: $(VENV)/group-docs
	$(BIN)/zensical build --clean --strict

clean:
	rm -rf $(VENV) build site .mypy_cache .pytest_cache .ruff_cache .hypothesis

# pip 25.1 is the first that installs dependency groups.
$(VENV)/pip:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Taciturn needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade "pip>=25.1"
	@touch $@

$(VENV)/installed: $(VENV)/pip $(BUILD_INPUTS)
	$(PIP) install --editable ".[plots]"
	@touch $@

$(VENV)/group-%: $(VENV)/pip pyproject.toml
	$(PIP) install --group $*
	@touch $@
