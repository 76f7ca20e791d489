# `make demo` and `make test` need Python >= 3.11 and make; they set up .venv themselves.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# What `make test-all` adds; a CPU build may be named here: make test-all TORCH="torch==2.13.0".
TORCH ?= --group torch

# Random fits that `make fuzz` holds to the laws, and their seed.
CASES ?= 2000
SEED ?= 0

.PHONY: help demo test test-fast coverage test-all lint fuzz fuzz-input fuzz-csv fuzz-notation fuzz-files fuzz-compare bench reproduce docs dist lock lowest clean
help:
	@echo "make demo   riskbayes beside scikit-learn on five tables: demo/index.html and demo/report.html"
	@echo "make test   linters and the test suite"
	@echo "make test-fast  the quick two thirds of the tests, in two minutes"
	@echo "make coverage  all tests, and the lines and branches that none of them runs"
	@echo "make test-all  the same with PyTorch, which it installs (large)"
	@echo "make lint   ruff, codespell and mypy"
	@echo "make fuzz   random fits of every estimator, held to laws (CASES=20000 SEED=0)"
	@echo "make fuzz-input  random tables as arrays, data frames, batches, files and on Dask: read alike (CASES=20000 SEED=0)"
	@echo "make fuzz-csv  mutated CSV files into the reader (CASES=100000 SEED=0)"
	@echo "make fuzz-notation  the same rows in two notations, fitted in one and read in the other (CASES=2000)"
	@echo "make fuzz-files  mutated model files and checkpoints, loaded and used (CASES=20000 SEED=0)"
	@echo "make fuzz-compare  random tables through compare, its reports held to laws (CASES=20000 SEED=0)"
	@echo "make reproduce  the paper's experiments: results/index.html from the committed table of results"
	@echo "make docs   this site into site/: pages, reference, gallery, llms.txt"
	@echo "make dist   wheel and sdist in dist/, checked, and installed into an empty environment"
	@echo "make lowest the quick tests with the lowest versions that pyproject.toml allows, from outside the tree"
	@echo "make lock   resolve these versions: requirements/lowest.txt"
	@echo "make bench  speed and the other benchmarks (RISKBAYES_DATA names the folder of data sets)"

# Rebuilt only when the dependencies change.
$(READY): pyproject.toml paper/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "riskbayes needs Python >= 3.11; say which: make PYTHON=python3.11 ..."; exit 1; }
	@echo "Setting up $(VENV) (once; reused while no pyproject.toml changes) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@echo "Installing riskbayes and what it needs ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[plot,fast,cli]" --editable ./paper --group dev
	@touch $@

demo: $(READY)
	@$(BIN)/riskbayes demo --out demo

lint: $(READY)
	@echo "ruff ..."
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@echo "codespell ..."
	@$(BIN)/codespell *.md doc src examples benchmarks paper/src
	@echo "mypy ..."
	@$(BIN)/mypy

test: lint
	@echo "pytest ..."
	@# Two test processes on few cores: BLAS threads of their own would only wait for each other.
	@OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto

test-fast: $(READY)
	@OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto -m "not slow"

coverage: $(READY)
	@OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --cov --cov-report=term

test-all: $(READY)
	@echo "Installing PyTorch ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	@$(MAKE) --no-print-directory test

fuzz: $(READY)
	@$(BIN)/python tests/fuzz.py --cases $(CASES) --seed $(SEED) --jobs $$($(BIN)/python -c 'import os; print(os.cpu_count())')

fuzz-input: $(READY)
	@$(BIN)/python tests/fuzz_input.py --cases $(CASES) --seed $(SEED) --jobs $$($(BIN)/python -c 'import os; print(os.cpu_count())')

fuzz-csv: $(READY)
	@$(BIN)/python tests/fuzz_csv.py --cases $(CASES) --seed $(SEED) --jobs $$($(BIN)/python -c 'import os; print(os.cpu_count())')

fuzz-notation: $(READY)
	@$(BIN)/python tests/fuzz_notation.py --cases $(CASES) --first $(SEED)

fuzz-files: $(READY)
	@$(BIN)/python tests/fuzz_files.py --cases $(CASES) --seed $(SEED) --jobs $$($(BIN)/python -c 'import os; print(os.cpu_count())')

fuzz-compare: $(READY)
	@$(BIN)/python tests/fuzz_compare.py --cases $(CASES) --seed $(SEED) --jobs $$($(BIN)/python -c 'import os; print(os.cpu_count())')

# To run the experiments themselves: riskbayes reproduce --data-dir FOLDER
reproduce: $(READY)
	@$(BIN)/riskbayes reproduce report benchmarks/results/reproduction --out results \
	  --doc doc/reproduction.md --doc README.md

docs: $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group docs
	@OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -d build/doctrees doc site
	@echo "The site: site/index.html"

bench: $(READY)
	@$(BIN)/riskbayes bench --json results/bench.json
	@$(BIN)/python benchmarks/import_time.py
	@echo "Installing the peers that are measured against ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	@if [ -z "$$RISKBAYES_DATA" ]; then \
	  echo "Set RISKBAYES_DATA to the folder of the paper's data sets for: costs soft_error default_rc smooth_nb recipe family mixed holes"; \
	else for name in costs soft_error default_rc smooth_nb recipe family mixed holes; do \
	  $(BIN)/python benchmarks/$$name.py || exit 1; done; fi

# A checkout without changes, so that what is built is what is committed.
dist: $(READY)
	@git diff --quiet HEAD -- || { echo "There are changes that are not committed."; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dist
	@rm -rf dist
	@$(BIN)/python -m build --outdir dist
	@$(BIN)/python -m twine check --strict dist/*
	@$(BIN)/python tests/check_dist.py dist

lock: $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dist
	@$(BIN)/uv pip compile --quiet --resolution lowest-direct --python-version 3.11 --universal --no-emit-index-url \
	  --custom-compile-command "make lock" --extra plot --extra fast --extra cli \
	  --output-file requirements/lowest.txt pyproject.toml

# An environment of its own; the package is installed, not linked, and the tests run in a copy.
LOWEST := $(CURDIR)/.lowest
lowest:
	@rm -rf $(LOWEST)
	@$(PYTHON) -m venv $(LOWEST)/env
	@$(LOWEST)/env/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@$(LOWEST)/env/bin/python -m pip install --quiet --disable-pip-version-check \
	  --constraint requirements/lowest.txt ".[plot,fast,cli]" ./paper --group test
	@cp -r tests examples benchmarks doc *.md CITATION.cff pyproject.toml $(LOWEST)/
	@cd $(LOWEST) && OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 env/bin/python -m pytest -q -n auto -m "not slow" tests

clean:
	rm -rf .lowest dist $(VENV) demo site build doc/auto_gallery doc/reference/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis
