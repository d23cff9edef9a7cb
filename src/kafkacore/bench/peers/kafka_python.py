"""kafka-python."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kafkacore.bench.peers.kafka_python_api import PollLoop, SendLoop


class Producer(SendLoop):
    """Its ``KafkaProducer``."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(import_module("kafka").KafkaProducer(**settings))


class Consumer(PollLoop):
    """Its ``KafkaConsumer``."""

    def __init__(self, settings: dict[str, Any], poll_records: int) -> None:
        module = import_module("kafka")
        super().__init__(module.KafkaConsumer(**settings), module.TopicPartition)
