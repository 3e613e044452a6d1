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
EXPR ?= x * tanh(log1p(exp(x)))

export PATH := $(VENV)/bin:$(PATH)
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# One build at a time on a machine that several people share.
LOCKFILE ?= /tmp/tensorplay-build.lock
LOCK := $(shell command -v flock >/dev/null && echo flock $(LOCKFILE))
LIMIT := $(shell command -v timeout >/dev/null && echo timeout -k 10)

CONFIGURE := cmake -S . -G Ninja -DPython_EXECUTABLE=$(PY)
CXX_FILES = $(shell git ls-files 'csrc/*.h' 'csrc/*.cpp' 'tests/*.cpp' 'tests/*.h')
# Tests run from an empty folder, so that `import tensorplay` is never the source tree.
PYTEST = folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && cd "$$folder" && \
  $(LIMIT) $(1) $(PY) -m pytest -c $(ROOT)/pyproject.toml --rootdir $(ROOT)
TEST_PATHS = $(wildcard $(ROOT)/tests $(ROOT)/generated/tests)

.PHONY: help
help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | \
	  awk -F'\t' '{printf "  make %-10s %s\n", $$1, $$2}'

# ---- environment -----------------------------------------------------------------------------------------------------
.PHONY: doctor deps install
doctor:  ## check what the machine must bring, and print the line that installs what is missing
	@$(PYTHON) tools/doctor.py

$(PY):
	@$(PYTHON) tools/doctor.py
	@echo "venv: $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# The stamp names the environment's own copy of the list: a changed list installs again.
$(VENV)/.requirements-%: pyproject.toml tools/requirements.py | $(PY)
	@$(PY) tools/requirements.py build run dev $(filter-out dev,$*) > $@.txt
	@echo "pip: build, run and $* requirements -> $(VENV)"
	@$(PY) -m pip install -q --progress-bar off -r $@.txt
	@touch $@

deps: $(VENV)/.requirements-dev  ## create .venv (or use VENV=...) with everything that builds, lints and tests

install: deps  ## build the package and install it into the environment; the next time only what changed is compiled
	@echo "build: tensorplay -> $(VENV) (a first build takes some minutes)"
	@$(LOCK) $(PY) -m pip install -q --no-build-isolation --no-deps -C build-dir=build/install .

# ---- develop ---------------------------------------------------------------------------------------------------------
.PHONY: dev dev-locked format
dev: deps  ## fast incremental build that runs the generator; prints the PYTHONPATH to use
	@$(LOCK) $(MAKE) dev-locked

dev-locked:
	@test -f build/dev/build.ninja || $(CONFIGURE) -B build/dev -DTENSORPLAY_CODEGEN=ON -DTENSORPLAY_TESTS=ON
	@cmake --build build/dev
	@$(PY) tools/dev_site.py build/dev/site
	@echo "PYTHONPATH=$(ROOT)/build/dev/site"

format:  ## format C++ and fix what ruff can
	@clang-format -i $(CXX_FILES)
	@ruff check --fix .

# ---- check -----------------------------------------------------------------------------------------------------------
.PHONY: lint test test-cpp test-all sanitize mutants
lint: deps  ## ruff, mypy, clang-format, generated files fresh, layers of includes and imports
	ruff check --no-cache .
	mypy --cache-dir build/mypy
	clang-format --dry-run --Werror $(CXX_FILES)
	$(PY) -m codegen check
	$(PY) -B -m pytest -q tests/test_layers.py

test: doctor lint install  ## everything a change must pass, on a fresh machine too; the last line names every skip
	$(PY) tools/stubtest.py
	@$(call PYTEST,600) -n $(JOBS) $(TEST_PATHS)

test-cpp: dev  ## the C++ test programs of tests/core
	@$(LOCK) cmake --build build/dev --target cpp_tests
	@for program in build/dev/tests/*; do echo "$$program"; "$$program"; done
