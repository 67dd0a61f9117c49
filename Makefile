# The two commands to know: `make explore` and `make test`. Each installs into .venv what it needs, once, and again only
# when pyproject.toml has changed. Another interpreter: `make test PYTHON=python3.12`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.installed-to-run
STAMP := $(VENV)/.installed-to-develop
LOWEST := .venv-lowest
LOWEST_STAMP := $(LOWEST)/.installed

.PHONY: help setup explore docs pictures test test-lowest lint bench bench-against coverage kills doctor engines certify-study hidden-study hidden-models coverage-with-workers clean

help:
	@echo "make explore      explore a small slippery maze, prove what was found, and write a page to look at"
	@echo "make test         format, lint, types, layers and tests"
	@echo "make docs         build the documentation site into build/docs"
	@echo "make pictures     take the screenshots in the documentation again"
	@echo "make lint         the same without the tests"
	@echo "make test-lowest  the tests with the lowest versions of other packages that pyproject.toml allows, in .venv-lowest"
	@echo "make bench        speeds, beside other solvers in the same run"
	@echo "make bench-against COMMIT=...  the scale ladder beside an older commit, as ratios"
	@echo "make kills        kill 40 runs at random moments and compare what they end with"
	@echo "make doctor       examine systems with and without a fault, and count false alarms and faults that were missed"
	@echo "make engines      explore a lake on every engine, with losses too, and compare the bytes"
	@echo "make certify-study  ask 2,000 systems whose labels hide states a question whose answer is known, and count errors"
	@echo "make hidden-study  explore systems whose labels hide states until 200 promises were false, and count those without a finding"
	@echo "make hidden-models  explore models through their outputs only, three of AALpy and nine others, and compare what was learnt"
	@echo "make coverage     explore 8,000 times on random models and count broken promises; half an hour on two processors"
	@echo "make coverage-with-workers  the same with the rounds and batches of workers, on fewer models"
	@echo "make clean        remove .venv and caches"

setup: $(STAMP)

explore: $(RUNS)
	@$(BIN)/axplore explore maze --radius 12 --epsilon 3

test: lint
	$(BIN)/python -m pytest -n 2

# Compiled code is kept apart: each version of Numba would replace that of the other.
test-lowest: $(LOWEST_STAMP)
	NUMBA_CACHE_DIR=$(CURDIR)/$(LOWEST)/numba $(LOWEST)/bin/python -m pytest -n 2

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

kills: $(STAMP)
	$(BIN)/python tests/runs/kills.py 30 --out docs/results/kills.json
	$(BIN)/python tests/runs/kills.py 10 --workers 2 --out docs/results/kills-with-workers.json

doctor: $(STAMP)
	$(BIN)/python tests/worlds/doctor_study.py --seeds 20 --out docs/results/doctor.json

engines: $(STAMP)
	$(BIN)/python tests/workers/engines.py --out docs/results/engines.json

certify-study: $(STAMP)
	$(BIN)/python tests/certify_study.py 2000 --out docs/results/certify.json

hidden-study: $(STAMP)
	$(BIN)/python tests/hidden_study.py 200 300 --out docs/results/hidden.json

hidden-models: $(STAMP)
	$(BIN)/python tests/hidden_models_study.py 2 --out docs/results/hidden-models.json

coverage: $(STAMP)
	$(BIN)/axplore coverage --out docs/results

coverage-with-workers: $(STAMP)
	$(BIN)/python tests/coverage_with_workers.py 50 --out docs/results/coverage-with-workers.json

# The screenshots in docs/images; needs Chromium.
pictures: $(STAMP)
	AXPLORE_PICTURES=$(CURDIR)/docs/images $(BIN)/python -m pytest tests/report/test_screenshots.py tests/test_gallery.py

docs: $(STAMP)
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs
	@echo "See build/docs/index.html"

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
