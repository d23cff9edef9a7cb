"""The client kafka-python."""

from __future__ import annotations

from importlib import import_module

from kafkacore.bench.peers.kafka_python_api import PollLoop, SendLoop
from kafkacore.bench.task import ClientSettings


class Producer(SendLoop):
    """Loop over kafka-python's ``KafkaProducer``."""

    def __init__(self, settings: ClientSettings) -> None:
        super().__init__(import_module("kafka").KafkaProducer(**settings))


class Consumer(PollLoop):
    """Loop over kafka-python's ``KafkaConsumer``."""

    def __init__(self, settings: ClientSettings, poll_records: int) -> None:
        module = import_module("kafka")
        super().__init__(module.KafkaConsumer(**settings), module.TopicPartition)
