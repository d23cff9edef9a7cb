"""pytest plugin: fixtures that give a test a broker, or one behind a bad network.

Loaded by every pytest run of an environment that has kafkacore, so it imports nothing of it until a fixture
is used.
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
    """A broker for the whole test session, in a process and a temporary folder of its own.

    ``kafka_broker.bootstrap_servers`` is for the client's configuration. Tests share it: let each use
    topics with names of its own. ``flush`` is "os", because a test seldom pulls the plug, and a group begins
    at once.
    """
    from kafkacore.testing.embedded_broker import EmbeddedBroker

    with EmbeddedBroker(flush="os", group_initial_rebalance_delay_ms=0) as broker:
        yield broker


@pytest.fixture
def kafka_cluster() -> Iterator[EmbeddedCluster]:
    """Three nodes of its own for each test, to be moved, stopped and made to fail.

    ``kafka_cluster.bootstrap_servers`` is for the client's configuration, ``kafka_cluster.faults`` and
    ``kafka_cluster.disk`` say what goes wrong, ``kafka_cluster.move_leader(topic)`` what moves.
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
    """A network that can be made bad, with a broker of its own behind it for the whole session.

    ``kafka_proxy.bootstrap_servers`` is for the client's configuration. After each test its faults are lifted
    and its connections reset. Let each test use topics with names of its own.
    """
    yield _kafka_broker_behind_proxy
    _kafka_broker_behind_proxy.lift()
    _kafka_broker_behind_proxy.reset_connections()
