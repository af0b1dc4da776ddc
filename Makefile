# Everything here sets itself up: a virtual environment in .venv with the package in it. Needs Python 3.11+ and make.
# `make PYTHON=python3.13 test` uses another Python.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := $(BIN)/fsm-agent
READY := $(VENV)/.ready
DEV := $(VENV)/.dev
REAL := $(VENV)/.real
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo test test-real cover check format diagrams diagrams-check messages lessons mutants bench clean

help: ## List what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; this is $$($(PYTHON) --version). Try make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "Setting up $(VENV), once: about half a minute"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(DEV): $(READY)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@

$(REAL): $(DEV)
	@$(BIN)/python -m pip install --quiet --group real || { echo "make test-real needs the package xllamacpp, which cannot be installed" >&2; exit 1; }
	@touch $@

demo: $(READY) ## Run four scenarios, see why each stopped, and draw the paths they took
	@mkdir -p out
	@for name in a b c d; do \
	  echo; $(RUN) scenarios --only $$name; \
	  $(RUN) run $$name --draw out/$$name.svg; status=$$?; \
	  [ $$status -eq 0 ] || [ $$status -eq 3 ] || exit $$status; \
	done
	@echo; echo "Open the four pictures: out/a.svg out/b.svg out/c.svg out/d.svg"

test: $(DEV) ## Run the tests
	$(BIN)/python -m pytest -n auto

test-real: $(REAL) ## Run the loop with a real, small model on this machine (downloads 130 MB, once)
	@$(BIN)/python -m tests.real

CORE := fsm_agent/table.py,fsm_agent/machine/*,fsm_agent/events.py,fsm_agent/guards/*,fsm_agent/protocols/*,fsm_agent/traces/*
CORE_TESTS := table machine machine_* search conformance guards_* *protocol* traces recordings_* ledger cli_import driver resume

cover: $(DEV) ## Run the core's tests with branch coverage, which must stay above 95 %
	$(BIN)/python -m pytest -n auto --cov --cov-report= $(foreach name,$(CORE_TESTS),$(wildcard tests/test_$(name).py))
	$(BIN)/python -m coverage report --fail-under=95 --skip-covered --include='$(CORE)'

check: $(DEV) ## Lint, types, unused dependencies
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/deptry .

format: $(DEV) ## Format the code
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

diagrams: $(DEV) ## Draw the gallery in diagrams/ anew
	$(BIN)/python -m fsm_agent.diagrams.gallery diagrams

diagrams-check: $(DEV) ## Fail when the gallery is not current
	$(BIN)/python -m fsm_agent.diagrams.gallery --check diagrams

messages: $(DEV) ## Bring the Chinese catalogue up to date with the sentences in the code
	$(BIN)/python -m tests.catalogue

lessons: $(DEV) ## Put what the commands print now into the lessons
	$(BIN)/python -m tests.update_lessons

mutants: $(DEV) ## Put small faults into the table and the guards; each must be noticed (15 minutes)
	$(BIN)/python -m tests.mutants

bench: $(DEV) ## Measure the machine against a bare loop, as ratios
	$(BIN)/python -m pytest tests/benchmarks --benchmark-only -q

clean: ## Remove what was made
	rm -rf $(VENV) out build dist
