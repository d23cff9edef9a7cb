"""pytest plugin: fixtures for a broker, a cluster, and a broker behind a faulty network.

pytest loads the plugin in every run of an environment that has kafkacore, so kafkacore itself is imported
only when a fixture is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kafkacore.testing.embedded_broker import EmbeddedBroker
    from kafkacore.testing.embedded_cluster import EmbeddedCluster
    from kafkacore.testing.fault_proxy import FaultProxy


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[EmbeddedBroker]:
    """Start a broker process with a temporary folder, shared by all tests of the session.

    Pass ``kafka_broker.bootstrap_servers`` to the client. Use different topic names in each test. The broker
    does not wait for the disk (``flush="os"``), and groups start without an initial delay.
    """
    from kafkacore.testing.embedded_broker import EmbeddedBroker

    with EmbeddedBroker(flush="os", group_initial_rebalance_delay_ms=0) as broker:
        yield broker


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
