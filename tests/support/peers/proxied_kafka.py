"""Apache Kafka behind a proxy that can disturb the network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from peers.apache_kafka import ApacheKafka

from kafkacore.testing import FaultProxy


@contextmanager
def kafka_behind_proxy(folder: Path, features: Mapping[str, int] | None = None) -> Iterator[FaultProxy]:
    """Yield the proxy. The broker advertises the proxy's address, so that clients never bypass it."""
    with FaultProxy() as proxy:
        advertised = {"advertised.listeners": f"PLAINTEXT://{proxy.bootstrap_servers}"}
        with ApacheKafka(folder, advertised, features=features) as kafka:
            proxy.target = kafka.bootstrap_servers
            yield proxy
