# Everything happens in .venv; a target's first run sets up what it needs, later runs are quick.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
SANITIZE := build/sanitize
LENSKIT := build/lenskit
BUILD_INPUTS := pyproject.toml CMakeLists.txt $(wildcard cpp/*)

.PHONY: help demo test quick native-tools sanitize torture lint format bench docs clean

help:
	@echo "make demo       set up and run the main job on embedded data"
	@echo "make test       set up and run all tests"
	@echo "make quick      only the tests that are not marked slow"
	@echo "make native-tools install what tests of other processors need (Debian, as root)"
	@echo "make sanitize   run the tests of the kernels under address and undefined-behaviour sanitizers"
	@echo "make torture    mutate a million inputs and kill a thousand trainings: an hour (TORTURE=\"--minutes 5\": less)"
	@echo "make lint       style and types"
	@echo "make format     rewrite files in the house format"
	@echo "make bench      measure speed, into benchmarks/results/report.md (BENCH=whole: 100 million ratings)"
	@echo "make docs       build the documentation into site/"
	@echo "make clean      remove everything that was built"

demo: $(VENV)/installed
	$(BIN)/taciturn demo

test: $(VENV)/installed $(VENV)/group-test $(LENSKIT)/installed
	$(BIN)/python -m pytest -n auto --dist worksteal

quick: $(VENV)/installed $(VENV)/group-test
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

# Tests that call the kernels, on every instruction set. Python is not instrumented, so the runtimes are
# preloaded and leaks are not reported. pytest must not capture stderr itself, where a dying process writes its report.
SANITIZED_TESTS := tests/test_planted_faults.py tests/test_scale.py tests/model tests/queries tests/tables/test_ids.py \
  tests/internal/test_ridge.py \
  $(addprefix tests/data/test_,id_lists.py pattern.py policies.py readers.py sources.py splits.py) \
  $(addprefix tests/mechanisms/test_,gate.py grid.py noise.py sampler.py) tests/recommend/test_recommend.py \
  $(addprefix tests/solvers/,als/test_posterior.py als/test_value.py test_alternating.py test_gradient.py test_least_squares.py)
sanitize: $(SANITIZE)/installed $(VENV)/installed $(VENV)/group-test
	runtimes=$$(ldd $(SANITIZE)/cmake/_core*.so | awk '/asan|stdc\+\+/ {print $$3}') && \
	export TACITURN_SANITIZE=1 PYTHONMALLOC=malloc ASAN_OPTIONS=halt_on_error=1:detect_leaks=0 && \
	export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 LD_PRELOAD="$$(echo $$runtimes)" && \
	$(SANITIZE)/venv/bin/python -m pytest -n auto --dist worksteal --capture=sys -m "not slow" $(SANITIZED_TESTS)

# What the tests of tests/native need beside a compiler, on Debian and its descendants: headers that emulate
# vector instructions, and an ARM compiler with an emulator of its processor. Without them those tests are skipped.
NATIVE_TOOLS := libsimde-dev qemu-user g++-aarch64-linux-gnu
native-tools:
	dpkg -s $(NATIVE_TOOLS) > /dev/null 2>&1 || (apt-get update -qq && apt-get install -y -qq --no-install-recommends $(NATIVE_TOOLS))

# An hour on two processors. The report goes to build/torture; see docs/benchmarks/torture.md.
torture: $(VENV)/installed $(VENV)/group-test
	$(BIN)/python -m tests.torture $(TORTURE)

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

# A second environment with an instrumented core, which takes all other packages from the first. Their path is added last:
# pip would otherwise find the first installation and try to replace it.
$(SANITIZE)/installed: $(VENV)/pip $(BUILD_INPUTS)
	rm -rf $(SANITIZE)/venv
	$(BIN)/python -m venv --without-pip $(SANITIZE)/venv
	$(PIP) --python $(SANITIZE)/venv/bin/python install --no-deps --editable . \
	  --config-settings build-dir=$(SANITIZE)/cmake --config-settings cmake.build-type=RelWithDebInfo \
	  --config-settings cmake.define.TACITURN_SANITIZE=ON
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > $(SANITIZE)/packages.pth
	mv $(SANITIZE)/packages.pth $(SANITIZE)/venv/lib/python*/site-packages
	@touch $@

# lenskit, with whose metrics a test compares ours. It requires torch, gigabytes that its metrics do not use, and an older
# pandas. So it is installed without its dependencies, beside those that it imports and that .venv lacks. Its version is
# fixed because the test replaces torch by an empty module.
$(LENSKIT)/installed: $(VENV)/pip pyproject.toml
	rm -rf $(LENSKIT)
	$(PIP) install --target $(LENSKIT) --group lenskit
	rm -rf $(LENSKIT)/bin
	$(PIP) install --target $(LENSKIT) --no-deps lenskit==2025.8.1
	@touch $@

$(VENV)/group-%: $(VENV)/pip pyproject.toml
	$(PIP) install --group $*
	@touch $@
