# One entry for everything: `make help`.
PYTHON   ?= python3
VENV     ?= .venv
DEMO_DIR ?= kafkacore-demo
BIN      := $(VENV)/bin
COMPILE  := KAFKACORE_BUILD_ONLY=$(ONLY) $(BIN)/python setup.py -q build_ext --inplace

.PHONY: help demo unit test reliability lint docs bench fuzz sanitize audit sbom build clean

help:  ## Show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.demo  ## Real flight records through our broker and Spark to Parquet, on a fresh machine too
	@$(COMPILE)
	$(BIN)/kafkacore demo --dir $(DEMO_DIR) $(DEMO_ARGS)

# Processes that divide the tests; they wait for other programs more than they compute. A part of the tests,
# named by TEST_ARGS, runs in one, which shows what it does. How they are divided: tests/support/workers.py.
TEST_WORKERS ?= $(if $(TEST_ARGS),0,3)

unit: $(VENV)/.unit  ## The tests that start no server, in about two minutes; no Java, Maven, browser, Kerberos or Spark
	@$(COMPILE)
	$(BIN)/python -m pytest --numprocesses=$(TEST_WORKERS) $(or $(TEST_ARGS),tests/unit)

JARS := PYTHONPATH=tests/support $(BIN)/python -m peers.jars

test: build  ## Set everything up, then pass the tests; TEST_ARGS=tests/unit/record for a part of them
	@$(JARS)
	$(BIN)/python -m pytest --numprocesses=$(TEST_WORKERS) $(TEST_ARGS)

# Those of the tests that have a larger dose than fits a run of all, which they say by importing it. Sorted: the first
# one that needs Spark starts the session that all have, and those of tests/system/integration want the built-in source in it.
RELIABILITY = $(sort $(shell grep -rlE "^from model.dose import .*\bdose\b" tests --include="test_*.py"))

# What was measured is shown when a test has failed, too; findings of kills are beside it, word for word. A full dose
# may take longer than the test's time in a run of all, where it has none of its own.
reliability: build  ## Kills, bad links and exactly-once copies in full, for hours: docs/measured/reliability.md
	@$(JARS)
	@rm -f .cache/reliability.txt .cache/reliability.findings.txt
	@KAFKACORE_DOSE=release KAFKACORE_RELIABILITY_RESULTS=$(CURDIR)/.cache/reliability.txt \
		$(BIN)/python -m pytest --timeout=1800 $(RELIABILITY) $(TEST_ARGS); status=$$?; \
		cat .cache/reliability.txt; exit $$status

lint: build  ## ruff, mypy --strict, stubtest, cython-lint, inner loops free of Python, generated code up to date
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PATH="$(BIN):$$PATH" $(BIN)/cython-lint src
	$(BIN)/python tools/stubtest.py
	$(BIN)/python tools/annotate.py
	$(BIN)/python -m kafkacore.protocol.generate --check
	$(BIN)/python tools/ported_tests.py --check
	$(BIN)/python tools/settings.py --check
	$(BIN)/python bench/report.py --check
	$(BIN)/python tools/prose.py

docs: build  ## The documentation site in build/docs; every warning is an error, such as a link that leads nowhere
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --nitpicky docs build/docs

bench: build  ## Micro-benchmarks and whole clients, against Apache Kafka and the peers: bench/results, docs/measured
	@$(JARS)
	$(BIN)/python bench/run.py $(BENCH_ARGS)

# Of all targets together; which there are: tests/support/fuzz.
FUZZ_SECONDS ?= 600

fuzz: build  ## Hostile bytes for every parser: FUZZ_SECONDS=600 FUZZ_TARGET="requests frames" FUZZ_ARGS=--guided
	PYTHONPATH=tests/support $(BIN)/python -m fuzz --strict --seconds $(FUZZ_SECONDS) $(FUZZ_TARGET:%=--target=%) $(FUZZ_ARGS)

sanitize: $(VENV)/.dev  ## Tests of the compiled core under gcc's sanitizers; ONLY=wire SANITIZE_ARGS=tests/unit/wire for a part
	@$(PYTHON) tools/check_tools.py sanitize
	KAFKACORE_BUILD_ONLY=$(ONLY) $(BIN)/python tools/sanitize.py $(SANITIZE_ARGS)

audit: $(VENV)/.dev  ## Known defects of all installed packages, by the published advisories; needs the network
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "pip-audit>=2.7"
	$(BIN)/python tools/audit.py

sbom: $(VENV)/.dev  ## Bill of materials (CycloneDX): dist/kafkacore.cdx.json; EXTRAS="aws oauth" for more than the base install
	$(BIN)/python tools/sbom.py dist/kafkacore.cdx.json $(EXTRAS)

build: $(VENV)/.dev  ## Compile the Cython modules that have changed; ONLY=wire,record looks at these packages alone
	@$(COMPILE)

# ---- Set-up. Each stamp says what has been installed into the virtual environment. ------------------------------

$(VENV)/.python:
	@command -v $(PYTHON) > /dev/null || { echo "missing: Python 3.11 or newer ($(PYTHON)): on Debian and Ubuntu," \
		"apt-get install python3 python3-venv python3-dev; another one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) tools/check_tools.py unit
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	@touch $@

# The sources are not among the prerequisites: `make build` compiles those that have changed, and installs nothing.
$(VENV)/.demo: $(VENV)/.python pyproject.toml setup.py
	@$(PYTHON) tools/check_tools.py demo
	@echo "Installing kafkacore with the demo extra (PySpark is large: the first time takes a few minutes) ..."
	$(BIN)/python tools/set_up.py demo
	@touch $@

$(VENV)/.unit: $(VENV)/.python pyproject.toml setup.py
	@$(PYTHON) tools/check_tools.py unit
	@echo "Installing kafkacore with the test, lint and docs extras (PySpark is large: the first time takes a few minutes) ..."
	$(BIN)/python tools/set_up.py demo test lint docs
	@touch $@

$(VENV)/.dev: $(VENV)/.unit
	@$(PYTHON) tools/check_tools.py test
	@touch $(VENV)/.demo $@

clean:  ## Remove what was built and installed here, and the demo's data
	rm -rf $(VENV) build .cache kafkacore-demo .mypy_cache .ruff_cache .pytest_cache .hypothesis src/*.egg-info
	find src -name '*.so' -delete
