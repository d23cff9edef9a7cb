"""Our producer sends to Apache Kafka through a proxy that cuts each request and response at every byte."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from model.cut_producer import (
    RECORDS,
    Sender,
    check_idempotent_sweep,
    check_sweep_with_retries,
    connected,
    log_of,
    said,
    sweep,
)
from peers.proxied_kafka import kafka_behind_proxy

from kafkacore import KafkaConsumer, TopicPartition
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.testing import Ending, FaultProxy


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultProxy]:
    with kafka_behind_proxy(tmp_path_factory.mktemp("apache-kafka")) as proxy:
        yield proxy


@pytest.mark.parametrize("ending", [Ending.FIN, Ending.RST])
def test_cut_after_every_byte_loses_nothing_and_doubles_only_what_the_broker_had(
    proxy: FaultProxy, ending: Ending
) -> None:
    check_sweep_with_retries(proxy, f"sweep-retried-{ending.name}", ending)


@pytest.mark.parametrize("ending", [Ending.FIN, Ending.RST])
def test_cut_after_every_byte_loses_doubles_and_reorders_nothing_with_idempotence(
    proxy: FaultProxy, ending: Ending
) -> None:
    check_idempotent_sweep(proxy, f"sweep-idempotent-{ending.name}", ending)


def test_cut_after_every_byte_without_retries_is_told_truly(proxy: FaultProxy) -> None:
    with KafkaAdminClient(bootstrap_servers=proxy.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("sweep-once", num_partitions=1)])
    with KafkaConsumer(bootstrap_servers=proxy.bootstrap_servers) as consumer:
        # Retry until the leader serves the new partition, because the producer does not retry.
        consumer.end_offsets([TopicPartition("sweep-once", 0)])
    with connected(proxy, retries=0) as producer:
        sender = Sender(producer, "sweep-once")
        _, cuts = sweep(proxy, sender, Ending.FIN)
    assert len(sender.failures) == (cuts - 1) * RECORDS
    assert said(sender.history.check(log_of(proxy, "sweep-once"))) == ""
