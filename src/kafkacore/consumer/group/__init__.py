"""Group membership of a consumer: joining, heartbeats, and committed offsets."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    # As in kafka-python, this package provides KafkaConsumer. An import at the top of this module would be
    # circular.
    if name == "KafkaConsumer":
        return import_module("kafkacore.consumer.kafka_consumer").KafkaConsumer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
