# `make` lists the targets. A fresh clone needs Python 3.10 or newer with pip, and make.
PYTHON ?= python3
OLDER_PYTHON ?= python3.10
BIN := .venv/bin
STAMP := .venv/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input

.DEFAULT_GOAL := help
.PHONY: help install demo test test-all oracles vectors keras conversions bench lint docs screenshot format lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(STAMP) ## make .venv with traindx and all that its development needs
	@echo "Installed: $(BIN)/traindx"

# torch first: nothing installed after it can then pull in another build of it.
$(STAMP): requirements-dev.lock pyproject.toml hatch_build.py src/traindx/stats/sums.c
	@test -x $(BIN)/python || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  2>/dev/null || { echo "traindx needs Python 3.10 or newer, which \`$(PYTHON)\` is not." \
	    "Name another one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || { echo "Making .venv with $$($(PYTHON) -V)"; $(PYTHON) -m venv .venv; }
	@echo "Installing torch (up to some gigabytes, once)"
	@$(PIP) install -qq "$$(grep '^torch==' requirements-dev.lock)"
	@echo "Installing the other packages of requirements-dev.lock"
	@$(PIP) install -qq -r requirements-dev.lock
	@$(PIP) install -qq --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(STAMP) ## train three small networks and diagnose them
	@$(BIN)/traindx demo

test: $(STAMP) ## run the fast tests
	@$(BIN)/python -m pytest -q -m "not slow" -n 2 --dist loadfile

test-all: $(STAMP) ## run all tests, the slow ones too
	@$(BIN)/python -m pytest -q

oracles: vectors keras conversions ## ask the oracles: ONNX, torch, Keras, Flax; downloads some

# ONNX's test vectors, out of a wheel that is never installed, and torch's own samples.
vectors: $(STAMP)
	@$(PIP) download -qq --no-deps --only-binary :all: --dest .venv/oracles \
	  -r requirements-oracles.lock
	@$(BIN)/python -m tests.norm.oracles .venv/oracles/onnx-*.whl

# Keras' own tests of its normalizations, answered by ours.
keras: .venv/oracles/keras
	@cd .venv/oracles && KERAS_BACKEND=torch PYTHONPATH=keras:$(CURDIR) ../bin/python -m pytest -q \
	  -c /dev/null --rootdir=keras -W ignore -p no:cacheprovider -p tests.norm.oracles.keras_layers \
	  keras/keras/src/layers/normalization

# Every direction of `norm convert`, by the frameworks' own hands.
conversions: .venv/oracles/keras .venv/oracles/frameworks
	@KERAS_BACKEND=torch JAX_PLATFORMS=cpu PYTHONPATH=.venv/oracles/keras:.venv/oracles/frameworks \
	  $(BIN)/python -W ignore -m tests.norm.oracles.conversions

# Beside the environment, which stays without them.
.venv/oracles/%: requirements-%.lock $(STAMP)
	@$(PIP) install -qq --no-deps --upgrade --target $@ -r $<
	@touch $@

# What it finds takes hours: docs/detection.md, docs/preflight.md and docs/peers.md say how.
COSTS := overhead scaling stats norm_modules store rules page

bench: $(STAMP) ## measure what traindx costs; needs Chromium
	@for name in $(COSTS); do echo "== benchmarks/$$name.py"; \
	  $(BIN)/python benchmarks/$$name.py || exit 1; done

lint: $(STAMP) ## check style, types, imports, changelog and generated pages
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet || { echo "Not formatted: make format"; exit 1; }
	@$(BIN)/pyright --warnings
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python scripts/changelog.py check
	@$(BIN)/python scripts/docs.py --check

docs: $(STAMP) ## write the generated pages of docs/
	@$(BIN)/python scripts/docs.py

screenshot: $(STAMP) ## take the README's picture of the page; needs Chromium
	@$(BIN)/python scripts/screenshot.py

format: $(STAMP) ## format the code and mend what can be mended
	@$(BIN)/ruff check --quiet --fix
	@$(BIN)/ruff format --quiet

lock: $(STAMP) ## resolve the newest packages into requirements-dev.lock; needs a Python 3.10 too
	@$(BIN)/python scripts/lock.py $(BIN)/python $(OLDER_PYTHON)

clean: ## remove .venv, caches and builds; runs in traindx-runs/ stay
	@rm -rf .venv dist build .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
