from typing import Final

from typing_extensions import Buffer

from kafkacore.record.batch import RecordBatch
from kafkacore.record.header import BatchHeader

BATCH_OVERHEAD: Final[int]

def walk_batches(
    chunk: Buffer, position: int, end: int, check_crcs: bool
) -> tuple[list[BatchHeader], int, int, str | None]: ...
def find_batch(chunk: Buffer, target_offset: int) -> tuple[bool, int, int]: ...
def whole_batches(chunk: Buffer, limit_offset: int) -> tuple[int, int]: ...
def placed_header(
    batch: RecordBatch, base_offset: int, leader_epoch: int, is_append_time: bool, max_timestamp: int
) -> bytearray: ...
