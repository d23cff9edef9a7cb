from typing import final

from kafkacore.producer.partition_queue import PartitionQueue

@final
class TopicState:
    name: str
    available: tuple[int, ...]
    def __init__(self, name: str, queues: list[PartitionQueue], available: tuple[int, ...]) -> None: ...
    @property
    def partition_count(self) -> int: ...
