# Everything here needs only Python 3.11 to 3.13, pip and make. The rest is installed into .venv by
# the first command, and again when pyproject.toml or requirements.lock changes.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run page picture screenshots gallery test beside quick unit lint types imports plain \
	pytest bench docs format lock clean

VENV := .venv
BIN := $(VENV)/bin
PIP := -m pip --disable-pip-version-check install -qq
# pip compiles modules one after the other; this does so on all cores.
COMPILE := -W ignore -m compileall -q -j 0 $(VENV)/lib src >/dev/null 2>&1 || true
WORKERS := -n auto --maxprocesses 4 --dist worksteal
# One process more than there are cores: tests spend much of their time waiting for Spark, servers
# and browsers.
ONE_MORE := -n $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )) --maxprocesses 4 --dist worksteal

# The virtual environment is created with the first of these that has a supported version.
PYTHON := python3.13 python3.12 python3.11 python3 python
SUPPORTED = $(shell for python in $(PYTHON); do \
	$$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null \
	&& { echo $$python; break; }; done)

# Without bytecode files, every process that a test starts would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/.demo ## replay a real movie catalogue through ranked subscriptions
	@echo 'Loading Tidings'
	@$(BIN)/tidings demo

# As root, BROWSER='chromium --no-sandbox'.
BROWSER := chromium
picture: tidings-demo/report.html ## the picture of a day in the README, from the last demo's report
	$(BROWSER) --headless --hide-scrollbars --window-size=1280,1020 \
		--screenshot=docs/images/demo-report.png file://$(CURDIR)/$<

tidings-demo/report.html:
	@$(MAKE) run

page: $(VENV)/.demo ## the web page with demo data at http://127.0.0.1:8000; needs no Java
	@$(BIN)/tidings serve --demo

screenshots: $(VENV)/.dev ## the pictures of the page in the documentation, from its demo data
	$(BIN)/python docs/screenshots.py

gallery: $(VENV)/.dev ## the pictures of the lab in the docs, and the papers' report; takes up to ten minutes
	$(BIN)/python -c 'from pathlib import Path; from tidings.lab.gallery import write_gallery; \
		write_gallery(Path("docs/images/lab"))'
	$(BIN)/tidings lab papers --out build/papers
	@mkdir -p docs/images/papers
	@cp build/papers/images/*.svg docs/images/papers/
	@sed 's|](images/|](images/papers/|' build/papers/report.md > docs/papers-report.md
	@echo 'Wrote docs/images/lab, docs/images/papers and docs/papers-report.md.'

# Types and plain kernels use the time in which the tests wait; their output is printed when they end.
test: $(VENV)/.dev ## everything that must pass: the five checks below
	@$(MAKE) --no-print-directory -j2 lint imports $(VENV)/spark.jsa
	@$(MAKE) --no-print-directory -j2 beside pytest

beside: $(VENV)/.dev
	@mkdir -p build
	@nice -n 10 $(MAKE) --no-print-directory -j1 types plain > build/beside.log 2>&1; \
		status=$$?; cat build/beside.log; exit $$status

# Neither Spark nor PostgreSQL starts, and property tests try few examples.
QUICK := not (spark or postgres or kill or fuzz or bench or slow)
quick: $(VENV)/.dev ## in about two minutes: lint, types, imports, fast unit and property tests
	@$(MAKE) --no-print-directory -j3 lint types imports unit

unit: $(VENV)/.dev
	HYPOTHESIS_PROFILE=quick $(BIN)/pytest $(WORKERS) -q -m '$(QUICK)' \
		--ignore=tests/spark --ignore=tests/kill --ignore=src/tidings/spark

lint: $(VENV)/.dev ## style: ruff check and ruff format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/.dev ## types: mypy --strict
	$(BIN)/mypy

imports: $(VENV)/.dev ## architecture: imports go one way
	$(BIN)/lint-imports --no-logo

# The papers' indexes over whole conditions have no kernels.
KERNEL_TESTS := tests/compiled tests/index tests/rank \
	$(filter-out tests/index/% tests/rank/%,$(shell find tests -type d -name kernels | sort))
plain: $(VENV)/.dev ## the kernels as plain Python, not compiled
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest $(WORKERS) -q -m 'not slow' --ignore=tests/index/papers $(KERNEL_TESTS)

pytest: $(VENV)/.dev $(VENV)/spark.jsa ## all tests, doctests and documentation examples; prints the slowest 30
	$(BIN)/pytest $(ONE_MORE) --durations=30

bench: $(VENV)/.bench ## measure the indexes against their peers; results go to bench/results
	@$(BIN)/tidings bench

docs: $(VENV)/.dev ## build the documentation site in build/site
	$(BIN)/sphinx-build -q -W --keep-going -c docs -d build/doctrees . build/site
	@cp build/site/README.html build/site/index.html
	@echo 'Open build/site/index.html'

format: $(VENV)/.dev ## fix style with ruff
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

lock: ## pin the newest compatible versions in requirements.lock, with Python 3.11
	@echo 'Resolving versions in .venv-lock; this takes a few minutes.'
	@python3.11 -m venv --clear .venv-lock
	@.venv-lock/bin/python $(PIP) -e '.[dev,demo]'
	@{ echo '# Versions for development, as pip constraints. Made by `make lock`.'; \
		.venv-lock/bin/python -m pip freeze --exclude-editable; } > requirements.lock
	@rm -rf .venv-lock

clean: ## remove the virtual environment and all caches
	rm -rf $(VENV) .venv-lock build .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Debian's Python may lack ensurepip; its own pip can then install one into the environment.
$(VENV)/pyvenv.cfg:
	@test -n '$(SUPPORTED)' || { echo 'Tidings needs Python 3.11, 3.12 or 3.13; tried: $(PYTHON).' \
		'Choose one with: make $(MAKECMDGOALS) PYTHON=/path/to/python3.12' >&2; exit 1; }
	@$(SUPPORTED) -m venv --clear $(VENV) >/dev/null 2>&1 || { \
		$(SUPPORTED) -m venv --clear --without-pip $(VENV) && \
		$(SUPPORTED) -m pip --python $(BIN)/python install -qq pip; }

$(VENV)/.demo: $(VENV)/pyvenv.cfg pyproject.toml requirements.lock
	@echo 'Installing Tidings and Spark into $(VENV); the first time this takes a few minutes.'
	@$(BIN)/python $(PIP) -c requirements.lock -e '.[demo,serve]'
	@touch $@

$(VENV)/.dev: $(VENV)/pyvenv.cfg pyproject.toml requirements.lock
	@echo 'Installing Tidings, Spark and the test tools into $(VENV); the first time this takes a few minutes.'
	@$(BIN)/python $(PIP) --no-compile -c requirements.lock -e '.[dev,demo]'
	@$(BIN)/python $(COMPILE)
	@touch $(VENV)/.demo $@

# Java maps Spark's classes from this archive, which saves a third of each start-up. The file stays
# empty if this Java cannot write one. The pipe ends once Java has written the archive.
$(VENV)/spark.jsa: $(VENV)/.dev
	@echo 'Archiving the classes of Spark, to start the tests faster.'
	@rm -f $@
	@folder=$$(mktemp -d); SPARK_SUBMIT_OPTS='-XX:ArchiveClassesAtExit=$(abspath $@) -Xlog:disable' \
		$(BIN)/python tests/spark/stateful_stream.py $$folder | cat >/dev/null; rm -rf $$folder
	@touch $@

$(VENV)/.bench: $(VENV)/.dev
	@$(BIN)/python $(PIP) -c requirements.lock -e '.[bench]'
	@touch $@
