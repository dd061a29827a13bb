# Every task has one name here; continuous integration calls these names only.
# Each target sets up what it needs: virtual environment, tools, extension. Stamps under build/
# keep second runs quick. PYTHON chooses the interpreter for a new .venv (3.11 or newer).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
PYTHONS ?= python3.12 python3.13 python3.14 python3.15
PYTHON_FREE_THREADED ?= python3.14t
TIME ?= 60
TARGETS ?=
ARGS ?=
FROM ?=
PORT ?= 8000
BIN := .venv/bin
STAMPS := build/stamps
RUST := $(shell find crates/fullbloom-core -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
RUST_CORE := $(RUST) $(shell find crates/fullbloom-py -name '*.rs' -o -name Cargo.toml) pyproject.toml
RUST_SERVER := $(RUST) $(shell find crates/fullbloom-server -name '*.rs' -o -name '*.toml')
WEB := $(RUST) $(shell find crates/fullbloom-wasm -type f) scripts/web.sh web/package-lock.json \
	$(shell find web -type f -not -path '*/node_modules/*' -not -path '*/dist/*' -not -path '*/wasm/*' -not -path '*/core/*.wasm')
DASHBOARD := scripts/web.sh web/package-lock.json $(filter web/dashboard/%,$(WEB))
# The profile of everything but wheels and benchmarks, which are built with `release`: see Cargo.toml.
DEVELOP := $(BIN)/maturin develop --locked --profile quick

export VIRTUAL_ENV := $(CURDIR)/.venv
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start a thousand interpreters. Without bytecode each of them compiles what it imports.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup build build-test build-dashboard build-pages demo serve test test-all test-interpreters test-free-threaded test-durability test-engines test-formats test-rivals fuzz asan tsan check bench figures docs docs-check docs-serve screenshots stubs \
	format web wheels sources clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMPS)/tools  ## Create .venv and install the pinned tools

build: $(STAMPS)/tools $(STAMPS)/core $(STAMPS)/server  ## Build both native modules into .venv, where sources changed

build-test: $(STAMPS)/test $(STAMPS)/core $(STAMPS)/server

build-dashboard: $(STAMPS)/dashboard

build-pages:
	@if scripts/web.sh --obtain; then $(MAKE) --no-print-directory $(STAMPS)/web && scripts/check_web.sh; \
		else echo "test-all: what the pages need cannot be had; the tests in a browser are skipped"; fi
	@$(MAKE) --no-print-directory docs

demo: $(STAMPS)/core  ## Do the main job on real input and print a table
	$(BIN)/python examples/demo.py

serve: build  ## Run the filter service on 127.0.0.1; ARGS are options of `fullbloom serve`
	$(BIN)/fullbloom serve $(ARGS)

test: $(STAMPS)/core  ## Run the Rust and the Python test suites, but for the long tests
	scripts/test.sh --short

test-all: build $(STAMPS)/docs  ## Run every test, as continuous integration does; builds the pages too where Node can be had
	scripts/test.sh

test-interpreters: build  ## Run the tests of keys, object reads and threads on each of PYTHONS
	scripts/interpreters.sh $(PYTHONS)

test-free-threaded: build  ## Run them on PYTHON_FREE_THREADED, an interpreter without the GIL
	scripts/interpreters.sh --free-threaded $(PYTHON_FREE_THREADED)

test-durability: build  ## Kill, fill and replace at length: 500 saves, 500 states, 100 stores a fault point (some minutes)
	FULLBLOOM_KILLS=500 $(BIN)/python -m pytest -q tests/durability
	FULLBLOOM_KILLS=100 cargo test --locked --package fullbloom-server store::

test-engines: build  ## Run the tests of engines on real ones; installs pyspark (400 MB, needs Java), Dask and, as root, redis-server
	scripts/engines.sh
	$(BIN)/python -m pip install --quiet -r requirements/engines.txt
	FULLBLOOM_REQUIRE_ENGINES=1 $(BIN)/python -m pytest -q tests/engines tests/recipes tests/service/test_redis_backend.py \
		tests/service/test_redis_backend_failures.py

test-formats: build  ## Run the tests of other programs' formats, against Spark and Guava
	$(BIN)/python -m pytest -q tests/compat tests/cli/test_foreign_filters.py

test-rivals: build  ## Run other packages' test suites with adapters in their place; FROM is a folder of their sources
	$(BIN)/python -m pip install --quiet -r requirements/rivals.txt
	$(BIN)/python tests/rivals/run.py $(if $(FROM),--from $(FROM))

fuzz: setup  ## Run each fuzz target for TIME seconds (60); needs a C++ compiler
	TIME=$(TIME) scripts/fuzz.sh $(TARGETS)

asan: setup  ## Run the core's tests and the inputs kept for fuzzing under AddressSanitizer
	scripts/sanitize.sh address

tsan: setup  ## Run the core's tests under ThreadSanitizer
	scripts/sanitize.sh thread

check: build  ## Run every static check: format, lints, types, stubs, imports, examples
	scripts/check.sh

bench: $(STAMPS)/release $(STAMPS)/rivals  ## Measure Fullbloom and its rivals, interleaved, and write the record
	$(BIN)/python -m benchmarks --record
	$(BIN)/python -m benchmarks.report

figures: $(STAMPS)/core  ## Measure every figure of the literature again; write docs/figures.md, its plots and the record (3 minutes)
	$(BIN)/python -m benchmarks.figures

docs: build $(STAMPS)/docs  ## Build the documentation site into build/docs/html; warnings are errors
	$(BIN)/python -m scripts.docsite
	build/docs/venv/bin/python -m sphinx --builder html -q --fail-on-warning --keep-going \
		--conf-dir docs build/docs/source build/docs/html
	@echo "build/docs/html/index.html"

docs-check: docs  ## Test the built site: links, search and the number of clicks to each page
	$(BIN)/python -m pytest -q tests/docs/test_site.py tests/docs/test_site_accessibility.py

screenshots: docs $(STAMPS)/web  ## Take pictures of all pages, in both themes and two widths, into build/screenshots (5 minutes)
	$(BIN)/python -m scripts.screenshots $(ARGS)

docs-serve: docs  ## Build it and serve it on 127.0.0.1:8000 (PORT)
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/docs/html $(PORT)

stubs: build  ## Generate src/fullbloom/_core.pyi from the extension, and blocking modules from asyncio ones
	$(BIN)/python scripts/generate_sync.py
	$(BIN)/python -m scripts.stubs

format: $(STAMPS)/tools  ## Format Rust and Python sources in place
	cargo fmt --all
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

web:  ## Build the npm package, the explorer and the dashboard; needs Node and npm, obtains the target for WebAssembly
	scripts/web.sh
	@mkdir -p $(STAMPS) && touch $(STAMPS)/web $(STAMPS)/dashboard

wheels: $(STAMPS)/tools  ## Build and audit wheels for Linux (glibc, musl; x86-64, aarch64), check the code for others
	scripts/wheels.sh

sources: build  ## Build the source distribution, with the manual pages, into dist/
	rm -rf man && mkdir man
	$(BIN)/python -m fullbloom man --quiet --output man
	$(BIN)/maturin sdist --out dist

clean:  ## Remove the virtual environment and everything built
	rm -rf .venv build target dist man fuzz/target fuzz/work .hypothesis .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	rm -rf crates/fullbloom-server/fullbloom_server_pages
	rm -rf web/fullbloom/wasm web/explorer/core web/*/dist web/node_modules
	rm -f src/fullbloom/*.so
	find src tests scripts benchmarks examples -name __pycache__ -prune -exec rm -rf {} +

$(STAMPS)/maturin: requirements/build.txt scripts/setup.sh
	PYTHON=$(PYTHON) scripts/setup.sh build
	@mkdir -p $(@D) && touch $@

$(STAMPS)/test: $(STAMPS)/maturin requirements/pip.txt requirements/service.txt requirements/test.txt requirements/formats.txt requirements/redisbloom.txt requirements/browser.txt
	PYTHON=$(PYTHON) scripts/setup.sh test
	@mkdir -p $(@D) && touch $@

$(STAMPS)/tools: $(STAMPS)/test requirements/recipes.txt requirements/dev.txt requirements/pybloomfiltermmap3.txt requirements/spark.txt
	PYTHON=$(PYTHON) scripts/setup.sh tools
	@mkdir -p $(@D) && touch $@

$(STAMPS)/docs: requirements/docs.txt $(STAMPS)/maturin
	$(BIN)/python -m venv --clear build/docs/venv
	build/docs/venv/bin/python -m pip install --quiet -r requirements/docs.txt
	@mkdir -p $(@D) && touch $@

$(STAMPS)/core: $(STAMPS)/maturin $(RUST_CORE)
	@echo "Compiling the native module; the first time takes a minute or two."
	@rm -f $(STAMPS)/release
	$(DEVELOP)
	@mkdir -p $(@D) && touch $@

$(STAMPS)/server: $(STAMPS)/maturin $(RUST_SERVER)
	@rm -f $(STAMPS)/release
	$(DEVELOP) --quiet --manifest-path crates/fullbloom-server/Cargo.toml
	@mkdir -p $(@D) && touch $@

$(STAMPS)/release: $(STAMPS)/tools $(RUST_CORE) $(RUST_SERVER)
	@rm -f $(STAMPS)/core $(STAMPS)/server
	$(BIN)/maturin develop --release --locked --quiet
	$(BIN)/maturin develop --release --locked --quiet --manifest-path crates/fullbloom-server/Cargo.toml
	@mkdir -p $(@D) && touch $@

$(STAMPS)/web: $(WEB)
	scripts/web.sh
	@mkdir -p $(@D) && touch $@ $(STAMPS)/dashboard

$(STAMPS)/dashboard: $(DASHBOARD)
	scripts/web.sh --dashboard
	@mkdir -p $(@D) && touch $@

$(STAMPS)/rivals: $(STAMPS)/tools requirements/bench.txt scripts/rivals.sh
	scripts/rivals.sh
	@mkdir -p $(@D) && touch $@
