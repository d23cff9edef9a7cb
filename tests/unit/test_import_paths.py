"""kafka-python's import paths: a program changes only the name of the package."""

from __future__ import annotations

from importlib import import_module

import pytest

from kafkacore.future import Future
from kafkacore.producer.future import FutureRecordMetadata


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("admin", "KafkaAdminClient"),
        ("admin.client", "KafkaAdminClient"),
        ("cluster", "ClusterMetadata"),
        ("consumer", "KafkaConsumer"),
        ("consumer.fetcher", "ConsumerRecord"),
        ("consumer.group", "KafkaConsumer"),
        ("consumer.subscription_state", "AsyncConsumerRebalanceListener"),
        ("consumer.subscription_state", "ConsumerRebalanceListener"),
        ("coordinator.assignors.range", "RangePartitionAssignor"),
        ("errors", "KafkaError"),
        ("future", "Future"),
        ("metrics", "DictReporter"),
        ("net.sasl.oauth", "AbstractTokenProvider"),
        ("partitioner", "murmur2"),
        ("partitioner.abc", "Partitioner"),
        ("partitioner.default", "DefaultPartitioner"),
        ("partitioner.sticky", "StickyPartitioner"),
        ("producer", "KafkaProducer"),
        ("producer.future", "FutureRecordMetadata"),
        ("producer.future", "RecordMetadata"),
        ("producer.kafka", "KafkaProducer"),
        ("serializer", "Serializer"),
        ("structs", "TopicPartition"),
    ],
)
def test_name_is_where_kafka_python_has_it(module: str, name: str) -> None:
    assert getattr(import_module(f"kafka.{module}"), name).__name__ == name
    assert getattr(import_module(f"kafkacore.{module}"), name).__name__ == name


def test_group_package_has_no_other_names() -> None:
    with pytest.raises(ImportError, match="NoSuchName"):
        exec("from kafkacore.consumer.group import NoSuchName")


def test_future_of_send_is_a_future() -> None:
    assert issubclass(FutureRecordMetadata, Future)
