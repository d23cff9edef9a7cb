# One entry for everything: `make help`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.kafkacore

.PHONY: help demo test lint bench clean distclean build integration

help:  ## Show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build:  ## Compile the Cython modules in place; ONLY=wire,record builds these packages alone
	KAFKACORE_BUILD_ONLY=$(ONLY) $(BIN)/python setup.py -q build_ext --inplace
