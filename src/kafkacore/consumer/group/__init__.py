"""Group membership of a consumer: joining, heartbeats, and committed offsets."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    # In kafka-python, this package has KafkaConsumer. Import it here, because an import at the top is
    # circular.
    if name == "KafkaConsumer":
        return import_module("kafkacore.consumer.kafka_consumer").KafkaConsumer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
