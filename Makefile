# `make run` and `make test` need Python 3.11 to 3.13, pip and make; everything else they set up in
# .venv, once, and again when pyproject.toml or requirements.lock change.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help run test quick lint types imports plain pytest bench format lock clean

VENV := .venv
BIN := $(VENV)/bin
PIP := -m pip --disable-pip-version-check install -qq
WORKERS := -n auto --maxprocesses 4 --dist worksteal

# The first of these that runs and fits makes the virtual environment; PYTHON=... names another.
PYTHON := python3.13 python3.12 python3.11 python3 python
FITTING = $(shell for python in $(PYTHON); do \
	$$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null \
	&& { echo $$python; break; }; done)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/.demo ## replay a real movie catalogue through ranked subscriptions
	@$(BIN)/tidings demo

test: lint types imports plain pytest ## run every check below

# Neither Spark nor PostgreSQL starts, and property tests try few examples.
QUICK := not (spark or postgres or kill or fuzz or bench or slow)
quick: lint types imports ## lint, types, imports, and the fast unit and property tests: two minutes
	HYPOTHESIS_PROFILE=quick $(BIN)/pytest $(WORKERS) -q -m '$(QUICK)' \
		--ignore=tests/spark --ignore=tests/kill --ignore=src/tidings/spark

lint: $(VENV)/.dev ## style: ruff check and ruff format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/.dev ## types: mypy --strict
	$(BIN)/mypy

imports: $(VENV)/.dev ## architecture: imports go one way
	$(BIN)/lint-imports --no-logo

plain: $(VENV)/.dev ## the kernels as plain Python, not compiled
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -q tests/index tests/rank tests/compiled tests/diversify/kernels tests/feed/columnar/kernels tests/spark/match_stage/kernels

pytest: $(VENV)/.dev ## tests, doctests and the examples of the documentation
	$(BIN)/pytest $(WORKERS) --durations=30

bench: $(VENV)/.bench ## measure the indexes beside their peers; results go to bench/results
	@$(BIN)/tidings bench

format: $(VENV)/.dev ## mend style where ruff can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

lock: ## pin the newest versions that fit, with the oldest Python, in requirements.lock
	@echo 'Resolving anew in .venv-lock; this takes a few minutes.'
	@python3.11 -m venv --clear .venv-lock
	@.venv-lock/bin/python $(PIP) -e '.[dev,demo]'
	@{ echo '# Versions for development, as pip constraints. Made by `make lock`.'; \
		.venv-lock/bin/python -m pip freeze --exclude-editable; } > requirements.lock
	@rm -rf .venv-lock

clean: ## remove the virtual environment and all caches
	rm -rf $(VENV) .venv-lock .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# A Python without ensurepip (Debian's, bare) still has its own pip to put one into the venv.
$(VENV)/pyvenv.cfg:
	@test -n '$(FITTING)' || { echo 'Tidings needs Python 3.11, 3.12 or 3.13; tried: $(PYTHON).' \
		'Name one with: make $(MAKECMDGOALS) PYTHON=/path/to/python3.12' >&2; exit 1; }
	@$(FITTING) -m venv --clear $(VENV) >/dev/null 2>&1 || { \
		$(FITTING) -m venv --clear --without-pip $(VENV) && \
		$(FITTING) -m pip --python $(BIN)/python install -qq pip; }

$(VENV)/.demo: $(VENV)/pyvenv.cfg pyproject.toml requirements.lock
	@echo 'Installing Tidings and Spark into $(VENV); the first time this takes a few minutes.'
	@$(BIN)/python $(PIP) -c requirements.lock -e '.[demo]'
	@touch $@

$(VENV)/.dev: $(VENV)/pyvenv.cfg pyproject.toml requirements.lock
	@echo 'Installing Tidings, Spark and the test tools into $(VENV); the first time this takes a few minutes.'
	@$(BIN)/python $(PIP) -c requirements.lock -e '.[dev,demo]'
	@touch $(VENV)/.demo $@

$(VENV)/.bench: $(VENV)/.dev
	@$(BIN)/python $(PIP) -c requirements.lock -e '.[bench]'
	@touch $@
