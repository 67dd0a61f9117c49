# The two commands to know: `make explore` and `make test`. Each installs into .venv what it needs, once, and again only
# when pyproject.toml has changed. Another interpreter: `make test PYTHON=python3.12`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.installed-to-run
STAMP := $(VENV)/.installed-to-develop
LOWEST := .venv-lowest
LOWEST_STAMP := $(LOWEST)/.installed

# Tests start some two hundred processes, each of which would compile every module where bytecode is not kept.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup explore docs pictures release-check test test-lowest random-examples mutants kernels other-kernels lint bench bench-against study studies steps-budget clean

help:
	@echo "make explore      explore a small slippery maze, prove what was found, and write a page to look at"
	@echo "make test         format, lint, types, layers and tests"
	@echo "make docs         build the documentation site into build/docs"
	@echo "make pictures     take the screenshots in the documentation again"
	@echo "make release-check  build wheel and sdist, and install, run and uninstall each in an environment of its own"
	@echo "make lint         the same without the tests"
	@echo "make test-lowest  the tests with the lowest versions of other packages that pyproject.toml allows, in .venv-lowest"
	@echo "make random-examples  the property tests with examples that are new every time; SEED=... repeats a run"
	@echo "make mutants      changes of the source that no test notices, in a sample that takes about an hour; SAMPLE=... of them"
	@echo "make bench        speeds, beside other solvers in the same run"
	@echo "make bench-against COMMIT=...  the scale ladder beside an older commit, as ratios"
	@echo "make study NAME=coverage  one study into docs/results; python -m axplore_studies lists them, and has more options"
	@echo "make steps-budget what the steps of the certified explorer are made of, factor by factor, and what a sharper region would save; some ten minutes"
	@echo "make studies      all studies, which takes hours; interrupted, it resumes"
	@echo "make clean        remove .venv and caches"

setup: $(STAMP)

explore: $(RUNS)
	@$(BIN)/axplore explore maze --radius 12 --epsilon 3

# Kernels are compiled by one process, beside the checks of the text: each of those that test would compile them.
test: $(STAMP)
	$(MAKE) --jobs 2 --output-sync lint kernels other-kernels
	$(BIN)/python -m pytest $(PARALLEL) --durations 25

# Each process begins with half of the files, in order, and takes tests from the other when it has none left: the tests
# of a file share what it has explored, and neither waits for the other at the end.
PARALLEL := --numprocesses 2 --dist worksteal

kernels: $(STAMP)
	@$(BIN)/python tools/compile_kernels.py

# Compiled as soon as the checks of the text, which are done first, have ended.
other-kernels: $(STAMP)
	@$(BIN)/python tools/compile_kernels.py --others

# Compiled code is kept apart: each version of Numba would replace that of the other.
test-lowest: $(LOWEST_STAMP)
	NUMBA_CACHE_DIR=$(CURDIR)/$(LOWEST)/numba $(LOWEST)/bin/python -m pytest $(PARALLEL)

# `make test` tries the same examples every time; an example that fails here belongs into its test as an @example.
SEED ?= $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
random-examples: $(STAMP)
	AXPLORE_RANDOM_EXAMPLES=1 $(BIN)/python -m pytest $(PARALLEL) -m hypothesis --hypothesis-seed=$(SEED)

# Interrupted, it resumes; a larger sample begins with this one. What has survived: docs/results/mutants.md.
SAMPLE ?= 300
mutants: $(STAMP) kernels
	$(BIN)/python tools/mutants.py --sample $(SAMPLE)

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	@set -e; for file in $(filter-out benchmarks/against.py,$(wildcard benchmarks/*.py)); do \
		echo "== $$file"; $(BIN)/python $$file; done

# make bench-against COMMIT=791ab01
bench-against: $(STAMP)
	@$(BIN)/python benchmarks/against.py $(COMMIT)

study: $(STAMP)
	@test -n "$(NAME)" || { $(BIN)/python -m axplore_studies; echo "Name one: make study NAME=coverage"; exit 2; }
	$(BIN)/python -m axplore_studies $(NAME) --out docs/results

steps-budget: $(STAMP)
	$(BIN)/python -m axplore_studies decomposition --again --out docs/results
	$(BIN)/python -m axplore_studies steps-budget --again --out docs/results

studies: $(STAMP)
	$(BIN)/python -m axplore_studies all --out docs/results

# The screenshots in docs/images; needs Chromium.
pictures: $(STAMP)
	AXPLORE_PICTURES=$(CURDIR)/docs/images $(BIN)/python -m pytest tests/report/test_screenshots.py tests/test_gallery.py

docs: $(STAMP)
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs
	@echo "See build/docs/index.html"

# What a tag publishes (.github/workflows/publish.yml).
release-check: $(STAMP)
	@./.ci/release-check $(BIN)/python

clean:
	rm -rf $(VENV) $(LOWEST) .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache build dist

$(RUNS): pyproject.toml .ci/setup
	@./.ci/setup $(PYTHON) $(VENV) .
	@echo "axplore: compiling, once"
	@$(BIN)/python -c 'import axplore; axplore.verify(axplore.explore("maze", radius=2, epsilon=1))'
	@touch $@

$(STAMP): pyproject.toml .ci/setup
	@./.ci/setup $(PYTHON) $(VENV) '.[dev]'
	@touch $(RUNS) $@

$(LOWEST_STAMP): pyproject.toml .ci/setup .ci/lowest
	@mkdir -p build
	@$(PYTHON) .ci/lowest > build/lowest.txt
	@./.ci/setup $(PYTHON) $(LOWEST) '.[test]' --constraint build/lowest.txt
	@touch $@
