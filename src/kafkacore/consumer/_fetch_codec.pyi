from typing import final

from kafkacore.consumer.subscription_state import TopicPartitionState
from kafkacore.structs import TopicPartition
from kafkacore.wire import Cursor, Writer

@final
class SessionPart:
    @property
    def partition(self) -> TopicPartition: ...
    @property
    def state(self) -> TopicPartitionState: ...
    @property
    def high_watermark(self) -> int: ...
    @property
    def last_stable_offset(self) -> int: ...
    @property
    def log_start_offset(self) -> int: ...
    @property
    def records(self) -> memoryview | None: ...
    def __init__(
        self,
        partition: TopicPartition,
        state: TopicPartitionState,
        topic_id: bytes,
        offset: int,
        max_bytes: int,
        leader_epoch: int,
    ) -> None: ...

@final
class FetchSettings:
    def __init__(
        self, max_wait_ms: int, min_bytes: int, max_bytes: int, isolation_level: int, rack_id: str
    ) -> None: ...
    def write(
        self, writer: Writer, version: int, session_id: int, epoch: int, parts: list[SessionPart]
    ) -> None: ...

def read_usual(
    cursor: Cursor, parts: dict[bytes, dict[int, SessionPart]], session_id: int, number: int
) -> list[SessionPart] | None: ...
