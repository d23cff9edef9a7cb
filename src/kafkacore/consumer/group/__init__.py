"""Group membership of a consumer: joining, heartbeats, and committed offsets."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    # kafka-python has its consumer in this package. An import at the top would be circular.
    if name == "KafkaConsumer":
        return import_module("kafkacore.consumer.kafka_consumer").KafkaConsumer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
