"""librdkafka before 2.11 compresses only for brokers that announce Produce 0 (KAFKA-18659).

The shared environment has one newer confluent-kafka. The old one is installed into a folder under ``.cache``,
and runs in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from eventually import BUDGET_S
from peers.jars import filled, run

from kafkacore.record import Compression, read_batch_headers
from kafkacore.testing.embedded_broker import EmbeddedBroker

VERSION = "2.10.1"
CODECS = ("gzip", "snappy", "lz4", "zstd")
RECORDS = 200
VALUE_SIZE = 500
PROGRAM = """
import sys
from confluent_kafka import Producer, libversion
servers, records, value_size, *codecs = sys.argv[1:]
print(libversion()[0])
for codec in codecs:
    producer = Producer({"bootstrap.servers": servers, "compression.type": codec, "linger.ms": 50})
    for _ in range(int(records)):
        producer.produce(f"compressed-{codec}", b"x" * int(value_size), partition=0)
    print(producer.flush(60))
"""


def old_confluent_kafka() -> Path:
    """Return the folder with the old package, which pip installs if it is missing."""

    def fill(folder: Path) -> None:
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
        ]
        run([*command, "--only-binary=:all:", f"--target={folder}", f"confluent-kafka=={VERSION}"])

    return filled("wheels", f"confluent-kafka-{VERSION}-{sys.implementation.cache_tag}", fill)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="the old version has no wheel for Python 3.14")
def test_old_librdkafka_writes_compressed_batches() -> None:
    with EmbeddedBroker() as broker:
        command = [sys.executable, "-c", PROGRAM, broker.bootstrap_servers, str(RECORDS), str(VALUE_SIZE)]
        environment = {**os.environ, "PYTHONPATH": str(old_confluent_kafka())}
        done = subprocess.run(
            [*command, *CODECS],
            env=environment,
            capture_output=True,
            text=True,
            timeout=2 * BUDGET_S,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.split() == [VERSION, *("0" for _ in CODECS)]
        logs = {
            codec: (Path(broker.data_dir) / f"compressed-{codec}-0" / f"{0:020}.log").read_bytes()
            for codec in CODECS
        }
    for codec, log in logs.items():
        headers = list(read_batch_headers(memoryview(log)))
        assert {header.compression for header in headers} == {Compression[codec.upper()]}
        assert sum(header.record_count for header in headers) == RECORDS
        assert len(log) < RECORDS * VALUE_SIZE / 4
