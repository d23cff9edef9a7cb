from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

from kafkacore.clock import Clock
from kafkacore.producer._future import FutureRecordMetadata, ProduceResult
from kafkacore.structs import TopicPartition

_Bytes = bytes | bytearray | memoryview

@final
class ProducerBatch:
    topic_partition: TopicPartition
    result: ProduceResult
    created_ms: float
    reserved_bytes: int
    attempts: int
    last_attempt_ms: float
    backoff_ms: float
    in_flight: bool
    possibly_persisted: bool
    leader_epoch: int
    attempts_at_leader_change: int
    payload: memoryview | None
    record_count: int
    place: float
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    sequence_has_been_reset: bool
    def __init__(
        self,
        topic_partition: TopicPartition,
        builder: Any,
        clock: Clock,
        created_ms: float,
        reserved_bytes: int = 0,
    ) -> None: ...
    @property
    def is_full(self) -> bool: ...
    @property
    def size_in_bytes(self) -> int: ...
    @property
    def max_record_size(self) -> int: ...
    @property
    def done(self) -> bool: ...
    def append(
        self,
        timestamp_ms: int,
        key: _Bytes | None,
        value: _Bytes | None,
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> FutureRecordMetadata | None: ...
    @property
    def has_sequence(self) -> bool: ...
    @property
    def last_sequence(self) -> int: ...
    def set_producer_state(
        self, producer_id: int, producer_epoch: int, base_sequence: int, is_transactional: bool = False
    ) -> None: ...
    def seal(self) -> memoryview: ...
    def has_leader_changed(self, leader_epoch: int) -> bool: ...
    def complete(self, base_offset: int = -1, log_append_time_ms: int = -1) -> None: ...
    def fail(
        self, error: BaseException, record_errors: Mapping[int, BaseException] | None = None
    ) -> None: ...
    def split(self, make_builder: Callable[[int], Any]) -> list[ProducerBatch]: ...
