import sys
from collections.abc import Sequence
from typing import Self, final

from typing_extensions import Buffer

from kafkacore.structs import Compression, TimestampType

@final
class RecordBatchBuilder:
    def __new__(
        cls,
        batch_size: int,
        compression: Compression | int = ...,
        compression_level: int | None = None,
        timestamp_type: TimestampType | int = ...,
        compression_ratio: float = 1.0,
    ) -> Self: ...
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def base_timestamp(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...
    @property
    def record_count(self) -> int: ...
    @property
    def is_closed(self) -> bool: ...
    @property
    def size_in_bytes(self) -> int: ...
    @property
    def max_record_size(self) -> int: ...
    @property
    def is_full(self) -> bool: ...
    def append(
        self,
        timestamp_ms: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Sequence[tuple[str, Buffer | None]] = (),
    ) -> int: ...
    def close(
        self,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        is_transactional: bool = False,
        is_control: bool = False,
        base_offset: int = 0,
        partition_leader_epoch: int = -1,
    ) -> memoryview: ...
