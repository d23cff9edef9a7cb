from collections.abc import Mapping
from typing import Any, Self, final

from typing_extensions import disjoint_base

from kafkacore.consumer._record import ConsumerRecord
from kafkacore.structs import TopicPartition

@final
class RecordIteration:
    def start(self, records: Mapping[TopicPartition, list[ConsumerRecord]]) -> None: ...
    def end(self) -> None: ...
    def take(self) -> ConsumerRecord | None: ...
    def untaken(self) -> dict[TopicPartition, ConsumerRecord]: ...

@disjoint_base
class RecordLoop:
    _iteration: Any
    def __iter__(self) -> Self: ...
    def __next__(self) -> ConsumerRecord: ...
