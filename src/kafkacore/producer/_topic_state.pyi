from typing import Self, final

from kafkacore.producer._partition_queue import PartitionQueue

@final
class TopicState:
    name: str
    available: tuple[int, ...]
    def __new__(
        cls, name: str, queues: list[PartitionQueue], available: tuple[int, ...], is_adaptive: bool = False
    ) -> Self: ...
    @property
    def partition_count(self) -> int: ...
