# One entry for what contributors run. `make` alone lists it. PYTHON makes the environment in .venv.
PYTHON ?= python3
BIN := .venv/bin
COVERAGE := --cov=curation --cov=pipelines --cov=models --cov-report=term-missing:skip-covered

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*##/:/'

.venv: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q -c constraints.txt -e '.[test,engines,docs]'
	@touch .venv

check: .venv ## lint, format, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/mypy

test: .venv ## all tests, on all cores
	$(BIN)/python -m pytest -n auto --dist loadfile

test-quick: .venv ## commands, messages, recipes, the size of the house
	$(BIN)/python -m pytest -n auto --dist loadfile @tests/quick.txt

coverage: .venv ## all tests, with the lines that none of them runs; kernels count as not run
	$(BIN)/pip install -q pytest-cov
	$(BIN)/python -m pytest -n auto --dist loadfile $(COVERAGE)

docs: .venv ## the site; a broken link is an error
	$(BIN)/mkdocs build --strict

bench: .venv ## what a small run and a first run cost
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/compilation.py

.PHONY: help check test test-quick coverage docs bench
