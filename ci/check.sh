#!/usr/bin/env bash
# Run lint, the tests and the demo from a clean checkout, with the README's commands. The script installs what it
# needs and stops at the first failure. It should take less than 25 minutes on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s (%ss since start)\n' "$1" "$SECONDS"; }

# A missing tool is a failure here; no test may be skipped for it.
export KAFKACORE_REQUIRE_ALL=1

step "tool versions"
python3 --version
java -version 2>&1 | head -n 1

# A test opens the status page in a browser. Only root can install it; apt-get reports an error otherwise.
if ! command -v chromedriver > /dev/null; then
    step "install Chromium and its driver"
    apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver > /dev/null
fi

# Kerberos: C headers to compile the package gssapi, and a KDC for the tests.
if ! command -v krb5-config > /dev/null || ! [ -x /usr/sbin/krb5kdc ] || ! [ -x /usr/sbin/kadmin.local ]; then
    step "install Kerberos"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        libkrb5-dev krb5-kdc krb5-admin-server > /dev/null
fi

# Download the Java part of the tests while the compiler uses the CPU.
PYTHONPATH=tests/support python3 -m peers.jars &
jars=$!
step "install and compile"
make build
wait "$jars"

step "make lint, make docs and make sanitize, in parallel"
make --jobs=2 --output-sync=recurse lint docs sanitize ONLY=wire,record,decode SANITIZE_ARGS="tests/unit/wire tests/unit/record tests/unit/decode tests/system/record"

step "make test"
make test

step "make demo"
make demo DEMO_DIR="$(mktemp -d)/kafkacore-demo"

step "done"
