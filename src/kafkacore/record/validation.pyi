from typing_extensions import Buffer

from kafkacore.record.batch import RecordBatch

def validate_batch(
    buffer: Buffer, check_records: bool = True, max_decompressed_size: int = ...
) -> RecordBatch: ...
