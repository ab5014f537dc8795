# Two commands do everything, set-up included: `make conformance` and `make test`.

PYTHON ?= python3
IMPL ?= expertcache_reference
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: conformance test nightly lint docs bench clean

# One environment for everything, made again when the project's metadata changes.
$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[test,docs,lint,plot]'
	-$(BIN)/pip install --quiet --editable '.[oracle]'
	-$(BIN)/pip install --quiet --editable '.[mlx]'
	touch $@

conformance: $(VENV)/ready
	$(BIN)/pytest conformance --impl $(IMPL) -n 2

test: $(VENV)/ready
	$(BIN)/pytest tests -n 2

nightly: $(VENV)/ready
	$(BIN)/pip install --quiet --editable '.[search]'
	$(BIN)/pytest tests -n 2 --nightly

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright

docs: $(VENV)/ready
	$(BIN)/sphinx-build -W -n --keep-going -q -j 2 -d docs/_build/doctrees -b html docs docs/_build/html
	$(BIN)/sphinx-build -W -n --keep-going -q -d docs/_build/doctrees -b doctest docs docs/_build/doctest
	@echo "the book: docs/_build/html/index.html"

bench: $(VENV)/ready
	EXPERTCACHE_CONTRACTS=off $(BIN)/python -m tests.benchmarks --save bench.json --plot growth.svg
	EXPERTCACHE_CONTRACTS=off $(BIN)/python -m tests.benchmarks.runtime

clean:
	rm -rf $(VENV) docs/_build .pytest_cache .mypy_cache .ruff_cache .expertcache-failures bench.json growth.svg
