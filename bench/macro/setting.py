"""What the scripts of this folder share: the broker to measure on, and where the project's parts lie."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Broker:
    """A broker to measure on; without ``bootstrap`` the embedded one, which each run starts itself."""

    name: str
    bootstrap: str | None = None
    pid: int | None = None


def add_broker(parser: argparse.ArgumentParser) -> None:
    """``--bootstrap`` and ``--embedded``; without either Apache Kafka is started."""
    parser.add_argument("--bootstrap", metavar="HOST:PORT", help="a running broker")
    parser.add_argument("--embedded", action="store_true", help="our own broker: needs no Java")
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
    sys.path.insert(0, str(PROJECT / "tests"))
    from integration.apache_kafka import started_in_scratch_folder

    with started_in_scratch_folder(to_measure=True) as kafka:
        yield Broker("Apache Kafka 4.3.1", kafka.bootstrap_servers, kafka.pid)


def java_classpath() -> str | None:
    """Kafka's jars as the tests fetch them, or ``None`` where they cannot be had."""
    sys.path.insert(0, str(PROJECT / "tests"))
    from integration.jars import JavaToolError, kafka_classpath

    try:
        return kafka_classpath()
    except JavaToolError as missing:
        print(missing, file=sys.stderr)
        return None
