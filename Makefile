# A fresh machine needs python3 (3.11 or newer) with its headers and pip, make and a C++ compiler; the package index has
# the rest. `make PYTHON=python3.12 ...` picks the interpreter, `make test ARGS='-k forget'` hands on arguments.
PYTHON ?= python3
JOBS ?= 2
# Not `?=`: a VENV that the shell happens to export must not be taken for ours, and emptied.
VENV := .venv
BIN := $(VENV)/bin

# hnswlib comes as source. Tuned to this processor, the wheel that pip caches would crash on another one.
export HNSWLIB_NO_NATIVE := 1

.PHONY: demo test test-oldest-mcp lint wheel check bench eval clean
.DELETE_ON_ERROR:

demo: $(VENV)/.runtime
	$(BIN)/muniment demo $(if $(DATA),--data "$(DATA)")

test: $(VENV)/.test
	$(BIN)/python -m pytest -n $(JOBS) $(ARGS)

# `test` runs against the newest `mcp`; this is the other end of the range that pyproject.toml gives.
test-oldest-mcp: $(VENV)/.test
	rm -rf $(VENV)/oldest-mcp
	$(BIN)/python -m pip install --quiet --no-deps --target $(VENV)/oldest-mcp mcp==2.0.0 mcp-types==2.0.0
	PYTHONPATH=$(CURDIR)/$(VENV)/oldest-mcp $(BIN)/python -m pytest -n $(JOBS) tests/mcp $(ARGS)

lint: $(VENV)/.lint
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/python -m mypy
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

# The sdist is made first and the wheel from it, elsewhere: setuptools would pack deleted modules again from build/.
wheel: $(VENV)/.lint
	rm -rf build dist
	$(BIN)/python -m build --quiet --outdir dist
	$(BIN)/python .ci/check_wheel.py dist/*.whl

check: lint test wheel

bench: $(VENV)/.test
	$(BIN)/python -m eval bench $(ARGS)

eval: $(VENV)/.eval
	$(BIN)/python -m eval reproduce $(ARGS)

clean:
	rm -rf .venv build dist .demo *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- The virtual environment ------------------------------------------------------------------------------------------
# A stamp is touched when its install is complete, so an interrupted one is repeated and a finished one is not.

# A checkout that was moved or copied has an environment that still runs the code of the first place: make it anew.
ifneq ($(CURDIR),$(shell cat $(VENV)/.made 2>/dev/null))
.PHONY: $(VENV)/.made
endif

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(v < (3, 11) and \
	  "muniment needs Python 3.11 or newer and `$(PYTHON)` is %d.%d: make PYTHON=..." % v)'
	@if [ -e $(VENV)/pyvenv.cfg ]; then rm -rf $(VENV); fi
	$(PYTHON) -m venv $(VENV)
	@# `--group` came with pip 25.1.
	$(BIN)/python -m pip install --quiet 'pip>=25.1'
	@echo '$(CURDIR)' > $@

$(VENV)/.runtime: $(VENV)/.made pyproject.toml
	@# setuptools warns of every editable install.
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.runtime
	$(BIN)/python -m pip install --quiet --group test
	@touch $@

$(VENV)/.eval: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --group eval
	@touch $@

$(VENV)/.lint: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --group lint
	@touch $@
