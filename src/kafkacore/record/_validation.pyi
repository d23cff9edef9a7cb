from typing_extensions import Buffer

from kafkacore.record._batch import RecordBatch

def judge_records(
    batch: RecordBatch,
    *,
    needs_keys: bool = False,
    earliest_ms: int = ...,
    latest_ms: int = ...,
    max_refused: int = 1000,
) -> tuple[int, int, list[tuple[int, int | None]]]: ...
def first_at_time(batch: RecordBatch, timestamp_ms: int, start_offset: int = 0) -> tuple[int, int] | None: ...
def validate_batch(
    buffer: Buffer, check_records: bool = True, max_decompressed_size: int = ...
) -> RecordBatch: ...
def with_codec(batch: RecordBatch, codec: int, level: int | None = None) -> bytearray: ...
