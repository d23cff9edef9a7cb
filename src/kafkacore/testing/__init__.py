"""Helpers for tests of Kafka programs: brokers, topics, a cluster with faults, a faulty network, a clock.

kafkacore's own tests also use a scripted network client (``mock_client``) and a disk that fails (``disk``).
"""

from importlib import import_module
from typing import TYPE_CHECKING

from kafkacore.testing.clock import VirtualClock

if TYPE_CHECKING:
    from kafkacore.testing.aio_kafka_topic import AIOKafkaTopic
    from kafkacore.testing.broker_faults import BrokerFaults
    from kafkacore.testing.embedded_broker import EmbeddedBroker
    from kafkacore.testing.embedded_cluster import EmbeddedCluster
    from kafkacore.testing.existing_cluster import ExistingCluster
    from kafkacore.testing.fault_proxy import FaultProxy, ProxyCounters
    from kafkacore.testing.kafka_topic import KafkaTopic
    from kafkacore.testing.proxy_connection import Direction, Ending
    from kafkacore.testing.proxy_frames import RequestSeen

__all__ = [
    "AIOKafkaTopic",
    "BrokerFaults",
    "Direction",
    "EmbeddedBroker",
    "EmbeddedCluster",
    "Ending",
    "ExistingCluster",
    "FaultProxy",
    "KafkaTopic",
    "ProxyCounters",
    "RequestSeen",
    "VirtualClock",
]

# Because of the plugin, pytest imports this package in every run. These modules are imported on first use.
_MODULES = {
    "AIOKafkaTopic": "aio_kafka_topic",
    "Direction": "proxy_connection",
    "BrokerFaults": "broker_faults",
    "EmbeddedBroker": "embedded_broker",
    "EmbeddedCluster": "embedded_cluster",
    "Ending": "proxy_connection",
    "ExistingCluster": "existing_cluster",
    "FaultProxy": "fault_proxy",
    "KafkaTopic": "kafka_topic",
    "ProxyCounters": "fault_proxy",
    "RequestSeen": "proxy_frames",
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return getattr(import_module(f"kafkacore.testing.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
