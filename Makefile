# The one way to do each thing. Needs Python 3.11 or later and nothing else; everything goes into .venv.
#
#   make demo          run the example project end to end (YES=1: approve every write)
#   make test          set up and run all tests
#   make check         lint, format check, types
#   make clients       fetch the clients of other people's that some tests use (a Node from PyPI where there is none that
#                      is new enough, programs from npm); without them these tests are skipped, and say so
#   make conformance   run the protocol's own suite against the server, for both eras; prints how many checks passed
#   make llama         fetch llama.cpp and run the tests that want a real local server; without it they are skipped.
#                      LLM_DO_TEST_GGUF=FILE names a model, else a tiny one is written
#   make torture       the long forms of the tests: races of 30 s, hundreds of kills
#   make bench         speed and memory, side by side with fastmcp and a bare MCP server, pydantic-ai's loop and ripgrep;
#                      how well te ranks (fetches trees of source, 3 GB unpacked, into the cache folder)
#   make setup         only set up; PYTHON=python3.12 chooses the interpreter

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo test check clients conformance llama torture bench

setup: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "llm-do-mcp needs Python 3.11 or later: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(RUN)/python -m pip install --quiet --editable . --group dev
	@touch $(STAMP)

demo: $(STAMP)
	@$(RUN)/llm-do demo $(if $(YES),--yes)

test: $(STAMP)
	$(RUN)/python -m pytest --numprocesses 2 --dist loadfile

check: $(STAMP)
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy

clients: $(STAMP)
	@$(RUN)/python -m pip install --quiet --group clients || true
	@$(RUN)/python -m tests.javascript

conformance: clients
	@$(RUN)/python -m tests.conformance

llama: $(STAMP)
	@$(RUN)/python -m pip install --quiet --group llama
	$(RUN)/python -m pytest tests/models/test_llama.py

torture: $(STAMP)
	$(RUN)/python -m pytest --torture -m torture

bench: clients
	$(RUN)/python -m pip install --quiet --group bench
	$(RUN)/python -m tests.bench
