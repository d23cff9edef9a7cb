"""pytest plugin: fixtures for a broker, topics, a cluster, and a broker behind a faulty network.

pytest loads the plugin in every run of an environment that has kafkacore, so kafkacore itself is imported
only when a fixture is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kafkacore.testing.aio_kafka_topic import AIOKafkaTopic
    from kafkacore.testing.embedded_broker import EmbeddedBroker
    from kafkacore.testing.embedded_cluster import EmbeddedCluster
    from kafkacore.testing.existing_cluster import ExistingCluster
    from kafkacore.testing.fault_proxy import FaultProxy
    from kafkacore.testing.kafka_topic import KafkaTopic


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--kafka-bootstrap``."""
    parser.getgroup("kafkacore").addoption(
        "--kafka-bootstrap",
        metavar="HOST:PORT[,...]",
        help="let the fixtures kafka_broker and kafka_topic use this Kafka cluster, not an embedded broker",
    )


@pytest.fixture(scope="session")
def kafka_broker(pytestconfig: pytest.Config) -> Iterator[EmbeddedBroker | ExistingCluster]:
    """Start a broker process with a temporary folder, shared by all tests of the session.

    Pass ``kafka_broker.bootstrap_servers`` to the client. Use different topic names in each test. The broker
    does not wait for the disk (``flush="os"``), and groups start without an initial delay.

    With ``--kafka-bootstrap`` nothing is started: this is an ``ExistingCluster``, with ``bootstrap_servers``
    and ``client_settings()``.
    """
    existing: str | None = pytestconfig.getoption("--kafka-bootstrap")
    if existing is not None:
        from kafkacore.testing.existing_cluster import ExistingCluster

        yield ExistingCluster(existing)
        return
    from kafkacore.testing.embedded_broker import EmbeddedBroker

    with EmbeddedBroker(flush="os", group_initial_rebalance_delay_ms=0) as broker:
        yield broker


@pytest.fixture
def kafka_topic(
    kafka_broker: EmbeddedBroker | ExistingCluster, request: pytest.FixtureRequest
) -> Iterator[KafkaTopic]:
    """Create a topic with a new name, and delete it after the test.

    The name begins with the name of the test. Pass ``kafka_topic.name`` and ``kafka_topic.bootstrap_servers``
    to the program under test. ``kafka_topic.wait_for(3)`` waits for three records and returns them, and
    ``kafka_topic.records()`` returns what the topic has now.
    """
    from uuid import uuid4

    from kafkacore.admin import KafkaAdminClient, NewTopic
    from kafkacore.testing.kafka_topic import KafkaTopic

    test = re.sub(r"[^A-Za-z0-9._-]+", "-", request.node.name).strip("-")
    name = f"{test[:200]}-{uuid4().hex[:8]}"
    settings = kafka_broker.client_settings()
    with KafkaAdminClient(**settings) as admin:
        admin.create_topics([NewTopic(name)], wait_for_metadata=True)
    yield KafkaTopic(name, settings)
    with KafkaAdminClient(**settings) as admin:
        admin.delete_topics([name])


@pytest.fixture
def aio_kafka_topic(kafka_topic: KafkaTopic) -> AIOKafkaTopic:
    """Return ``kafka_topic`` with ``wait_for()`` and ``records()`` as coroutines.

    The fixture works with pytest-asyncio, with anyio's plugin, and with ``asyncio.run``.
    """
    from kafkacore.testing.aio_kafka_topic import AIOKafkaTopic

    return AIOKafkaTopic(kafka_topic)


@pytest.fixture
def kafka_cluster() -> Iterator[EmbeddedCluster]:
    """Start a new cluster of three nodes for each test.

    Pass ``kafka_cluster.bootstrap_servers`` to the client. ``kafka_cluster.faults`` and
    ``kafka_cluster.disk`` inject faults, ``kafka_cluster.move_leader(topic)`` moves a leader, and
    ``kafka_cluster.stop_node(2)`` stops a node.
    """
    from kafkacore.testing.embedded_cluster import EmbeddedCluster

    with EmbeddedCluster(nodes=3) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def _kafka_broker_behind_proxy() -> Iterator[FaultProxy]:
    from kafkacore.testing.embedded_broker import EmbeddedBroker
    from kafkacore.testing.fault_proxy import FaultProxy

    with (
        FaultProxy() as proxy,
        EmbeddedBroker(flush="os", group_initial_rebalance_delay_ms=0, advertised_port=proxy.port) as broker,
    ):
        proxy.target = broker.bootstrap_servers
        yield proxy


@pytest.fixture
def kafka_proxy(_kafka_broker_behind_proxy: FaultProxy) -> Iterator[FaultProxy]:
    """Start a TCP proxy that injects network faults, in front of a broker.

    All tests of the session share the broker and the proxy. Pass ``kafka_proxy.bootstrap_servers`` to the
    client. After each test the fixture removes all faults and resets all connections. Use different topic
    names in each test.
    """
    yield _kafka_broker_behind_proxy
    _kafka_broker_behind_proxy.lift()
    _kafka_broker_behind_proxy.reset_connections()
