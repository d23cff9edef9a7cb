"""The parts of a consumer on a model cluster and a virtual clock."""

from types import SimpleNamespace

import pytest
from model.consumer_cluster import ModelCluster, ModelMetadata, ModelNetwork

from kafkacore.consumer.consumer_network_client import ConsumerNetworkClient
from kafkacore.testing import VirtualClock


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def make_parts(clock):
    """``make_parts(logs)`` → cluster, metadata, network and client."""

    def make(logs, **options):
        cluster = ModelCluster(clock, logs, **options)
        metadata = ModelMetadata(cluster)
        network = ModelNetwork(cluster, metadata)
        client = ConsumerNetworkClient(
            network, metadata, clock=clock, retry_backoff_ms=100, request_timeout_ms=30_000
        )
        return SimpleNamespace(
            clock=clock, cluster=cluster, metadata=metadata, network=network, client=client
        )

    return make
