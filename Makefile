# `make help` lists the targets.
PYTHON   ?= python3
VENV     ?= .venv
DEMO_DIR ?= kafkacore-demo
BIN      := $(VENV)/bin
COMPILE  := KAFKACORE_BUILD_ONLY=$(ONLY) $(BIN)/python setup.py -q build_ext --inplace
# Optimizing would take most of the time of a first `make demo`. Modules that are optimized already stay as they are.
QUICKLY  := KAFKACORE_OPTIMIZE=0
# Tests start hundreds of processes. Without byte code, each compiles the sources of kafkacore, in a CPU second.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo unit test reliability kafka-suite lint docs bench fuzz sanitize tsan audit sbom wheels build clean

help:  ## Show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.demo  ## Write real flight records through the embedded broker and Spark to Parquet; sets up a fresh machine
	@$(QUICKLY) $(COMPILE)
	$(BIN)/kafkacore demo --dir $(DEMO_DIR) $(DEMO_ARGS)

# Number of test processes. The tests wait for other programs more than they compute. With TEST_ARGS, the selected
# tests run in one process, which shows their output. tests/support/workers.py distributes the tests.
TEST_WORKERS ?= $(if $(TEST_ARGS),0,3)

unit: $(VENV)/.unit  ## Run the unit tests, in about two minutes; needs no Java, Maven, browser, Kerberos or Spark
	@$(COMPILE)
	$(BIN)/python -m pytest --numprocesses=$(TEST_WORKERS) $(or $(TEST_ARGS),tests/unit)

JARS := PYTHONPATH=tests/support $(BIN)/python -m peers.jars

test: build  ## Set everything up and run all tests; TEST_ARGS=tests/unit/record runs a part of them
	@$(JARS)
	$(BIN)/python -m pytest --numprocesses=$(TEST_WORKERS) --durations=60 --durations-min=4 $(TEST_ARGS)

# Tests that run longer here than in a run of all tests; they import `dose`. They are sorted because the first test that
# needs Spark starts the shared session, and tests/system/integration needs the built-in source in it.
RELIABILITY = $(sort $(shell grep -rlE "^from model.dose import .*\bdose\b" tests --include="test_*.py"))

# The measurements are printed even if a test fails; the findings of the kill tests are in a file next to them. A full
# run may exceed the default time limit of a test, so the limit is higher here.
reliability: build  ## Run the reliability tests in full, for hours: kills, network faults, exactly-once copies; docs/measured/reliability.md
	@$(JARS)
	@rm -f .cache/reliability.txt .cache/reliability.findings.txt
	@KAFKACORE_DOSE=release KAFKACORE_RELIABILITY_RESULTS=$(CURDIR)/.cache/reliability.txt \
		$(BIN)/python -m pytest --timeout=1800 $(RELIABILITY) $(TEST_ARGS); status=$$?; \
		cat .cache/reliability.txt; exit $$status

kafka-suite: build  ## Run Apache Kafka's own tests on the embedded cluster, for hours; SUITE_ARGS="--only ConsumerBounceTest"
	@$(JARS)
	PYTHONPATH=tests/support $(BIN)/python -m kafka_suite $(SUITE_ARGS); status=$$?; \
		$(BIN)/python bench/report.py; exit $$status

lint: build  ## Run all static checks: ruff, mypy, stubtest, cython-lint, loops without Python calls, generated files, prose
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

docs: build  ## Build the documentation site in build/docs; every warning is an error, for example a broken link
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --nitpicky docs build/docs

bench: build  ## Run the benchmarks against Apache Kafka and other clients, and update bench/results and docs/measured
	@$(JARS)
	$(BIN)/python bench/run.py $(BENCH_ARGS)

# Time for all targets together. tests/support/fuzz/targets.py lists the targets.
FUZZ_SECONDS ?= 600

fuzz: build  ## Fuzz every parser: FUZZ_SECONDS=600 FUZZ_TARGET="requests frames" FUZZ_ARGS=--guided
	PYTHONPATH=tests/support $(BIN)/python -m fuzz --strict --seconds $(FUZZ_SECONDS) $(FUZZ_TARGET:%=--target=%) $(FUZZ_ARGS)

sanitize: $(VENV)/.dev  ## Test the compiled modules with gcc's sanitizers; ONLY=wire,record,decode SANITIZE_ARGS=tests/unit/wire for a part
	@$(PYTHON) tools/check_tools.py sanitize
	KAFKACORE_BUILD_ONLY=$(ONLY) $(BIN)/python tools/sanitize.py address $(SANITIZE_ARGS)

tsan: $(VENV)/.dev  ## Test threads with gcc's ThreadSanitizer, which reports data races; TSAN_ARGS=tests/unit/network for a part
	@$(PYTHON) tools/check_tools.py tsan
	KAFKACORE_BUILD_ONLY=$(ONLY) $(BIN)/python tools/sanitize.py thread $(TSAN_ARGS)

audit: $(VENV)/.dev  ## Report known vulnerabilities of all installed packages; needs the network
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "pip-audit>=2.7"
	$(BIN)/python tools/audit.py

sbom: $(VENV)/.dev  ## Write a bill of materials (CycloneDX) to dist/kafkacore.cdx.json; EXTRAS="aws oauth" includes these extras
	$(BIN)/python tools/sbom.py dist/kafkacore.cdx.json $(EXTRAS)

wheels:  ## Build the sdist and a wheel for each installed Python in dist, and test each wheel in a clean environment
	$(PYTHON) tools/wheels.py $(WHEELS_ARGS)

build: $(VENV)/.dev  ## Compile the Cython modules that have changed; ONLY=wire,record compiles only these packages
	@$(COMPILE)

# ---- Set-up. Each stamp file records what is installed in the virtual environment. ------------------------------

$(VENV)/.python:
	@command -v $(PYTHON) > /dev/null || { echo "missing: Python 3.11 or newer ($(PYTHON)): on Debian and Ubuntu," \
		"apt-get install python3 python3-venv python3-dev; for another path: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) tools/check_tools.py unit
	$(PYTHON) -m venv $(VENV)
	@touch $@

# The sources are not prerequisites: `make build` compiles the changed ones without installing anything.
$(VENV)/.demo: $(VENV)/.python pyproject.toml setup.py
	@$(PYTHON) tools/check_tools.py demo
	@echo "Installing kafkacore with the demo extra and without optimization, which 'make build' adds (PySpark is large) ..."
	$(QUICKLY) $(BIN)/python tools/set_up.py --extra demo
	@touch $@

$(VENV)/.unit: $(VENV)/.python pyproject.toml setup.py
	@$(PYTHON) tools/check_tools.py unit
	@echo "Installing kafkacore with the groups test, lint and docs (PySpark is large: the first time takes a few minutes) ..."
	$(BIN)/python tools/set_up.py test lint docs
	@touch $@

$(VENV)/.dev: $(VENV)/.unit
	@$(PYTHON) tools/check_tools.py test
	@touch $(VENV)/.demo $@

clean:  ## Remove the virtual environment, build outputs, caches and the demo's data
	rm -rf $(VENV) build .cache kafkacore-demo .mypy_cache .ruff_cache .pytest_cache .hypothesis src/*.egg-info
	find src -name '*.so' -delete
