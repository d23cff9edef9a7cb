"""Fixtures with the parts of a consumer, on a model cluster and a virtual clock."""

from types import SimpleNamespace

import pytest
from model.consumer_cluster import ModelCluster, ModelMetadata, ModelNetwork
from model.group_coordinator import ModelCoordinator

from kafkacore.consumer import kafka_consumer
from kafkacore.consumer.completed_fetch import ReadOptions
from kafkacore.consumer.consumer_network_client import ConsumerNetworkClient
from kafkacore.consumer.fetcher import FetchConfig, Fetcher
from kafkacore.consumer.kafka_consumer import KafkaConsumer
from kafkacore.consumer.offset_reset import OffsetResetStrategy
from kafkacore.consumer.subscription_state import FetchPosition, SubscriptionState
from kafkacore.testing import VirtualClock

DEFAULTS = {"auto_offset_reset": "earliest", "bootstrap_timeout_ms": 0}


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def make_network_client(clock):
    """Return ``make_network_client(logs)``, which returns cluster, metadata, network and client."""

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


@pytest.fixture
def make_consumer(clock, monkeypatch):
    """Return ``make_consumer(logs, *topics, **configs)``; the consumer's ``.model`` is its cluster.

    The constructor does not wait for a broker unless ``bootstrap_timeout_ms`` is given. The brokers ``down``
    do not respond.
    """
    made = []

    def make(logs, *topics, node_count=1, down=(), **configs):
        cluster = ModelCluster(clock, logs, node_count=node_count)
        cluster.down.update(down)
        cluster.coordinator = ModelCoordinator(cluster)
        metadata = ModelMetadata(cluster)
        network = ModelNetwork(cluster, metadata)
        monkeypatch.setattr(kafka_consumer, "bootstrap_client", lambda config, clock: (network, metadata))
        consumer = KafkaConsumer(*topics, clock=clock, **DEFAULTS | configs)
        consumer.model, consumer.network, consumer.known = cluster, network, metadata
        made.append(consumer)
        return consumer

    yield make
    for consumer in made:
        consumer.close(timeout_ms=0)


@pytest.fixture
def make_fetcher(make_network_client):
    """Return ``make_fetcher(logs, read=…)``, which creates a fetcher positioned at offset 0 of every log."""

    def make(logs, reset=OffsetResetStrategy.EARLIEST, node_count=1, read=None, **config):
        parts = make_network_client(logs, node_count=node_count)
        parts.subscriptions = SubscriptionState(reset)
        parts.fetcher = Fetcher(
            parts.client,
            parts.metadata,
            parts.subscriptions,
            FetchConfig(read=read or ReadOptions(), **config),
            parts.clock,
        )
        parts.subscriptions.assign_from_user(logs)
        for tp in logs:
            parts.subscriptions.seek(tp, FetchPosition(0))
        parts.metadata.set_topics({tp.topic for tp in logs})
        parts.client.poll_no_wakeup()
        return parts

    return make
