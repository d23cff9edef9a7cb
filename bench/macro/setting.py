"""Shared code of the scripts in this folder: the broker to measure against, and the project's paths."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Broker:
    """A broker to measure against. Without ``bootstrap``, each run starts an embedded broker itself."""

    name: str
    bootstrap: str | None = None
    pid: int | None = None
    #: Arguments for a secure connection of our client.
    security: Mapping[str, str] = field(default_factory=dict)


def add_broker(parser: argparse.ArgumentParser) -> None:
    """Add ``--bootstrap`` and ``--embedded``. Without either, Apache Kafka is started."""
    parser.add_argument("--bootstrap", metavar="HOST:PORT", help="address of a running broker")
    parser.add_argument(
        "--embedded", action="store_true", help="measure against the embedded broker; needs no Java"
    )
    parser.add_argument(
        "--tls", action="store_true", help="connect to Apache Kafka with TLS 1.3 and verified certificates"
    )
    parser.add_argument(
        "--small",
        action="store_true",
        help="use tiny inputs to check that the script runs; the figures mean nothing",
    )


@contextmanager
def broker(arguments: argparse.Namespace) -> Iterator[Broker]:
    """Yield the broker selected by the arguments, and stop an Apache Kafka that was started for the block."""
    if arguments.bootstrap is not None:
        yield Broker(f"broker at {arguments.bootstrap}", arguments.bootstrap)
        return
    if arguments.embedded:
        yield Broker("embedded broker")
        return
    sys.path.insert(0, str(PROJECT / "tests" / "support"))
    if arguments.tls:
        with _kafka_with_tls() as secure:
            yield secure
        return
    from peers.apache_kafka import started_in_scratch_folder

    with started_in_scratch_folder(to_measure=True) as kafka:
        yield Broker("Apache Kafka 4.3.1", kafka.bootstrap_servers, kafka.pid)


@contextmanager
def _kafka_with_tls() -> Iterator[Broker]:
    """Start Apache Kafka with a P-256 certificate. Java's default order decides the cipher suite."""
    from model.certificates import Authority
    from peers.apache_kafka import ApacheKafka, free_ports

    with tempfile.TemporaryDirectory(prefix="apache-kafka-") as name:
        folder = Path(name)
        authority = Authority()
        kafka = ApacheKafka(folder / "kafka", to_measure=True)
        (port,) = free_ports(1)
        kafka.add_tls_listener(
            port,
            {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": authority.issue().write(folder, "server").both,
            },
        )
        security = {"security_protocol": "SSL", "ssl_cafile": authority.write(folder)}
        with kafka:
            yield Broker("Apache Kafka 4.3.1 by TLS", f"localhost:{port}", kafka.pid, security)


def java_classpath() -> str | None:
    """Return the class path of the Kafka jars that the tests fetch, or ``None`` if they are not available."""
    sys.path.insert(0, str(PROJECT / "tests" / "support"))
    from peers.jars import JavaToolError, kafka_classpath

    try:
        return kafka_classpath()
    except JavaToolError as missing:
        print(missing, file=sys.stderr)
        return None
