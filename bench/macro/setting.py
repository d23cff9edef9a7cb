"""What the scripts of this folder share: the broker to measure on, and where the project's parts lie."""

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
    """A broker to measure on; without ``bootstrap`` the embedded one, which each run starts itself."""

    name: str
    bootstrap: str | None = None
    pid: int | None = None
    #: Arguments of our client for a secure connection.
    security: Mapping[str, str] = field(default_factory=dict)


def add_broker(parser: argparse.ArgumentParser) -> None:
    """``--bootstrap`` and ``--embedded``; without either Apache Kafka is started."""
    parser.add_argument("--bootstrap", metavar="HOST:PORT", help="a running broker")
    parser.add_argument("--embedded", action="store_true", help="our own broker: needs no Java")
    parser.add_argument("--tls", action="store_true", help="Apache Kafka by TLS 1.3, certificates verified")
    parser.add_argument("--small", action="store_true", help="tiny inputs: their figures mean nothing")


@contextmanager
def broker(arguments: argparse.Namespace) -> Iterator[Broker]:
    """The broker that the arguments ask for; Apache Kafka by the tests' jars is gone behind the block."""
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
    """With a certificate of the elliptic curve P-256; Java's broker takes the ciphers that it likes best."""
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
    """Kafka's jars as the tests fetch them, or ``None`` where they cannot be had."""
    sys.path.insert(0, str(PROJECT / "tests" / "support"))
    from peers.jars import JavaToolError, kafka_classpath

    try:
        return kafka_classpath()
    except JavaToolError as missing:
        print(missing, file=sys.stderr)
        return None
