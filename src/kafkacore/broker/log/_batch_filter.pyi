from collections.abc import Mapping

from typing_extensions import Buffer, disjoint_base

from kafkacore.broker.log._offset_map import OffsetMap
from kafkacore.record._batch import RecordBatch

@disjoint_base
class BatchFilter:
    records_read: int
    records_kept: int
    bytes_read: int
    bytes_kept: int
    def __init__(
        self,
        offsets: OffsetMap,
        *,
        base_offset: int,
        end_offset: int,
        last_offsets: Mapping[int, int],
        now_ms: int,
        delete_retention_ms: int,
        index_interval_bytes: int,
        max_index_bytes: int,
    ) -> None: ...
    def filter(self, chunk: Buffer) -> tuple[int, int, int]: ...
    def filter_batch(
        self,
        batch: RecordBatch,
        *,
        discard_all: bool = False,
        retain_all: bool = False,
        marks_empty_txn: bool = False,
    ) -> None: ...
    @property
    def position(self) -> int: ...
    def take(self) -> bytes: ...
    def indexes(self) -> tuple[bytes, bytes]: ...
