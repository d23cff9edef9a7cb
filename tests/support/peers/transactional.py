"""Brokers for the tests of transactions: Apache Kafka and the embedded broker, with either version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from peers.apache_kafka import ApacheKafka

from kafkacore import KafkaAdminClient
from kafkacore.admin import UpdateFeatureType
from kafkacore.testing import EmbeddedBroker

FEATURE = "transaction.version"
NEWEST_VERSION = 2
#: Parameters of a fixture: whether the broker is Apache Kafka, and the transaction version.
KINDS = [(True, 2), (True, 1), (False, 2), (False, 1)]
KIND_NAMES = ["version 2", "version 1", "our broker, version 2", "our broker, version 1"]


class Broker(Protocol):
    """A broker that tests can kill and start again."""

    @property
    def bootstrap_servers(self) -> str: ...
    def kill(self) -> None: ...
    def start(self) -> object: ...


@contextmanager
def started(folder: Path, kind: tuple[bool, int], properties: Mapping[str, str]) -> Iterator[Broker]:
    """Yield a running broker of one of the :data:`KINDS`, with properties by Kafka's names."""
    is_apache_kafka, version = kind
    if is_apache_kafka:
        with ApacheKafka(folder, properties, features={FEATURE: version}) as kafka:
            yield kafka
        return
    config = {name.replace(".", "_"): value for name, value in properties.items()}
    # A commit of offsets may wait for the disk of a busy machine longer than Kafka's 5 s.
    config |= {"group_initial_rebalance_delay_ms": "0", "offsets_commit_timeout_ms": "60000"}
    with EmbeddedBroker(folder, **config) as broker:
        if version < NEWEST_VERSION:
            with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
                done = admin.update_features({FEATURE: (UpdateFeatureType.SAFE_DOWNGRADE, version)})
                assert done == {FEATURE: "OK"}
        yield broker
