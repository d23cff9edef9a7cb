from collections.abc import Sequence
from typing import Protocol, final

from kafkacore.clock import Clock
from kafkacore.errors import KafkaError
from kafkacore.producer._batch import ProducerBatch
from kafkacore.producer._batch_memory import BatchMemory
from kafkacore.producer._direct_sender import DirectSender
from kafkacore.producer._future import FutureRecordMetadata
from kafkacore.producer._partition_queue import PartitionQueue
from kafkacore.producer._sender_wakeup import SenderWakeup
from kafkacore.producer._topic_state import TopicState
from kafkacore.structs import TopicPartition

_Bytes = bytes | bytearray | memoryview

class _Admission(Protocol):
    def add_partition(self, topic_partition: TopicPartition, /) -> None: ...

@final
class RecordAppender:
    active: dict[PartitionQueue, None]
    incomplete: dict[ProducerBatch, None]
    closed: bool
    sender_wakeup: SenderWakeup
    memory: BatchMemory
    transactions: _Admission | None
    direct: DirectSender | None
    def __init__(
        self,
        clock: Clock,
        sender_wakeup: SenderWakeup,
        memory: BatchMemory,
        *,
        batch_size: int,
        linger_ms: float,
        max_request_size: int,
        max_block_ms: float,
        is_adaptive: bool,
        ignores_keys: bool,
    ) -> None: ...
    def append(
        self,
        topic: str,
        value: _Bytes | None,
        key: _Bytes | None,
        headers: Sequence[tuple[str, bytes | None]] | None,
        partition: int | None,
        timestamp_ms: int | None,
        max_block_ms: float | None = None,
    ) -> FutureRecordMetadata | None: ...
    def release(self, batch: ProducerBatch) -> None: ...
    def check_usable(self) -> None: ...
    @property
    def is_forked(self) -> bool: ...
    def topic_state(self, topic: str) -> TopicState | None: ...
    def set_topic(self, topic: str, queues: list[PartitionQueue], available: tuple[int, ...]) -> None: ...
    def forget_topic(self, topic: str) -> None: ...
    def topic_names(self) -> list[str]: ...
    def forget_if_empty(self, queue: PartitionQueue) -> None: ...
    def close_for_appends(self) -> None: ...
    def fail_appends(self, error: KafkaError) -> None: ...
