# The commands of the project. `make help` lists them; each works from a fresh clone.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

ROOT := $(CURDIR)
PYTHON ?= python3
VENV ?= .venv
VENV := $(abspath $(VENV))
PY := $(VENV)/bin/python
JOBS ?= $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
SEED ?= 0
# Developer builds run the generator first; OFF compiles the generated files as they are.
TENSORPLAY_CODEGEN ?= ON

export EXPR
export PATH := $(VENV)/bin:$(PATH)
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# One build at a time on a machine that several people share.
LOCKFILE ?= /tmp/tensorplay-build.lock
LOCK := $(shell command -v flock >/dev/null && echo flock $(LOCKFILE))
LIMIT = $(shell command -v timeout >/dev/null && echo timeout -k 10 $(1))

CONFIGURE := cmake -S . -G Ninja -DPython_EXECUTABLE=$(PY)
CXX_FILES = $(shell find csrc tests -name '*.h' -o -name '*.cpp')
# Tests run from an empty folder, so that `import tensorplay` is never the source tree.
PYTEST = folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && cd "$$folder" && \
  $(call LIMIT,$(1)) $(PY) -m pytest -c $(ROOT)/pyproject.toml --rootdir $(ROOT)
TEST_PATHS = $(wildcard $(ROOT)/tests $(ROOT)/generated/tests)

.PHONY: help
help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | \
	  awk -F'\t' '{printf "  make %-10s %s\n", $$1, $$2}'

# ---- environment -----------------------------------------------------------------------------------------------------
.PHONY: doctor deps install
doctor:  ## check what the machine must bring, and print the line that installs what is missing
	@command -v $(PYTHON) >/dev/null || { echo "doctor: no $(PYTHON); give PYTHON=/path/to/python3.11 or newer"; exit 1; }
	@$(if $(wildcard $(PY)),$(PY),$(PYTHON)) tools/doctor.py

$(PY):
	@$(MAKE) doctor
	@echo "venv: $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# The stamp names the environment's own copy of the list: a changed list installs again.
$(VENV)/.requirements-%: pyproject.toml tools/requirements.py | $(PY)
	@$(PY) tools/requirements.py build run native $(filter-out native,$*) > $@.txt
	@echo "pip: requirements to build and to $* -> $(VENV)"
	@$(PY) -m pip install -q --progress-bar off -r $@.txt
	@touch $@

deps: $(VENV)/.requirements-dev  ## create .venv (or use VENV=...) with everything that builds, lints and tests

install: deps  ## build the package and install it into the environment; the next time only what changed is compiled
	@echo "build: tensorplay -> $(VENV) (a first build takes some minutes)"
	@$(LOCK) $(PY) -m pip install -q --no-build-isolation --no-deps --config-settings=build-dir=build/install .

# ---- develop ---------------------------------------------------------------------------------------------------------
.PHONY: dev dev-locked format
dev: deps  ## fast incremental build that runs the generator; prints the PYTHONPATH to use
	@$(LOCK) $(MAKE) dev-locked

dev-locked:
	@grep -qs "^TENSORPLAY_CODEGEN:BOOL=$(TENSORPLAY_CODEGEN)$$" build/dev/CMakeCache.txt && test -f build/dev/build.ninja || \
	  $(CONFIGURE) -B build/dev -DTENSORPLAY_CODEGEN=$(TENSORPLAY_CODEGEN) -DTENSORPLAY_TESTS=ON
	@cmake --build build/dev
	@$(PY) tools/dev_site.py build/dev/site
	@echo "PYTHONPATH=$(ROOT)/build/dev/site"

format:  ## format C++ and fix what ruff can
	@clang-format -i $(CXX_FILES)
	@ruff check --fix .

# ---- check -----------------------------------------------------------------------------------------------------------
.PHONY: lint test pytest test-wide test-cpp test-all sanitize mutants source-check
lint: deps  ## ruff, mypy, clang-format, generated files fresh, layers of includes and imports
	ruff check --no-cache .
	@$(PY) tools/dev_site.py build/lint/site
	mypy --cache-dir build/lint/mypy
	@echo "clang-format --dry-run csrc tests"; clang-format --dry-run --Werror --ferror-limit=1 $(CXX_FILES) || { echo "run: make format"; exit 1; }
	$(PY) -m codegen check
	$(PY) -B -m pytest -q tests/test_layers.py

test: doctor lint install  ## everything a change must pass, on a fresh machine too; the last line names every skip
	$(PY) tools/stubtest.py
	@$(MAKE) pytest

pytest:  ## the tests alone, on the package that is installed; TESTS='/some/path -k name' for some of them
	@$(call PYTEST,600) -n $(JOBS) $(or $(TESTS),$(TEST_PATHS))

test-cpp: dev  ## build and run the C++ test programs of tests/core
	@$(LOCK) cmake --build build/dev --target cpp_tests
	@for program in build/dev/tests/*; do echo "$$program"; "$$program" || exit 1; done

sanitize: deps  ## build under ASan and UBSan and run the tests there
	@test -f build/sanitize/build.ninja || \
	  $(CONFIGURE) -B build/sanitize -DTENSORPLAY_TESTS=ON -DTENSORPLAY_SANITIZE=address,undefined \
	  -DCMAKE_CXX_FLAGS_RELEASE="-O1 -g1"
	@$(LOCK) cmake --build build/sanitize --target all cpp_tests
	@for program in build/sanitize/tests/*; do ASAN_OPTIONS=detect_leaks=0 "$$program" || exit 1; done
	@$(PY) tools/dev_site.py build/sanitize/site
	@export LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libasan.so) $$($${CXX:-c++} -print-file-name=libstdc++.so.6)"; \
	  export PYTHONPATH=$(ROOT)/build/sanitize/site \
	  PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
	  UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1; \
	  $(call PYTEST,3600) -n $(JOBS) --timeout 600 $(TEST_PATHS)

mutants: deps  ## wrong formulas, all in one build (SEED=...), then 30 wrong kernels: the tests must notice
	@$(LOCK) $(PY) tools/mutants.py --seed $(SEED) --jobs $(JOBS)
	@$(LOCK) $(PY) tools/source_mutants.py kernels --seed $(SEED) --count 30 --jobs $(JOBS)

source-check: deps  ## build a copy without explicit derivatives, with a renamed and a new entry: all must follow
	@$(LOCK) $(PY) tools/source_check.py

test-all: test test-wide test-cpp sanitize mutants source-check  ## every check there is; takes long

test-wide: install  ## every dtype and layout of every op, and every mixture of in_dims: `make test` takes a sample
	@cd $$(mktemp -d) && $(PY) $(ROOT)/tools/matrix.py
	@export TENSORPLAY_TEST_ALL=1; $(call PYTEST,7200) -n $(JOBS) $(ROOT)/generated/tests

# ---- use -------------------------------------------------------------------------------------------------------------
.PHONY: demo bench docs wheel clean
demo: $(VENV)/.requirements-demo  ## a formula becomes an op and trains on handwritten digits: EXPR='x * tanh(log1p(exp(x)))'
	@$(LOCK) $(PY) examples/demo.py $${EXPR:+"$$EXPR"}

bench: install $(VENV)/.requirements-bench  ## compare with the libraries that are installed; writes benchmarks/results
	@cd benchmarks && env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $(PY) run.py

docs: dev $(VENV)/.requirements-docs  ## the documentation as HTML, in build/docs/html
	@rm -rf build/docs/src && mkdir -p build/docs && cp -r docs build/docs/src && cp -r generated/docs build/docs/src/reference
	@$(PY) tools/reference_pages.py build/docs/src/reference
	@PYTHONPATH=build/dev/site $(PY) tools/python_pages.py build/docs/src/reference
	@rm -rf build/docs/html
	@$(PY) -m sphinx -q -W --keep-going -b html build/docs/src build/docs/html
	@echo "$(ROOT)/build/docs/html/index.html"

wheel: deps $(VENV)/.requirements-wheel  ## a wheel in dist/
	@$(LOCK) $(PY) -m pip wheel -q --no-deps -w dist .
	@$(PY) tools/repack.py dist/*.whl
	@ls -l dist

clean:  ## remove what builds and tests leave behind
	@rm -rf build dist .mypy_cache .ruff_cache .pytest_cache
