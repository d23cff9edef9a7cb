#!/usr/bin/env bash
# Lint, the tests by the README's command, and the demo by the README's command, from a clean checkout.
# Installs all it needs; stops at the first failure. Target: under 25 minutes on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s (%ss since start)\n' "$1" "$SECONDS"; }

# No tool may be missing here, and no test left out for it.
export KAFKACORE_REQUIRE_ALL=1

step "what this machine has"
python3 --version
java -version 2>&1 | head -n 1

# A browser looks at the broker's status page; only root can install it, and says so otherwise.
if ! command -v chromedriver > /dev/null; then
    step "install Chromium and its driver"
    apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver > /dev/null
fi

# Kerberos: the headers that its package is compiled against, and a KDC for the tests.
if ! command -v krb5-config > /dev/null || ! [ -x /usr/sbin/krb5kdc ] || ! [ -x /usr/sbin/kadmin.local ]; then
    step "install Kerberos"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        libkrb5-dev krb5-kdc krb5-admin-server > /dev/null
fi

# Java's side of the tests comes over the network while the compiler has the processor.
PYTHONPATH=tests/support python3 -m peers.jars &
jars=$!
step "install and compile"
make build
wait "$jars"

step "make lint, make docs and make sanitize, side by side"
make --jobs=2 --output-sync=recurse lint docs sanitize ONLY=wire,record,decode SANITIZE_ARGS="tests/unit/wire tests/unit/record tests/unit/decode tests/system/record"

step "make test"
make test

step "make demo"
make demo DEMO_DIR="$(mktemp -d)/kafkacore-demo"

step "done"
