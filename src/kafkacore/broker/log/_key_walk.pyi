from typing import Final

from typing_extensions import Buffer

from kafkacore.broker.log._offset_map import OffsetMap
from kafkacore.record._batch import RecordBatch

STOPPED_AT_BATCH: Final[int]
STOPPED_FULL: Final[int]

def map_keys(offsets: OffsetMap, chunk: Buffer, start_offset: int) -> tuple[int, int, int]: ...
def map_batch(offsets: OffsetMap, batch: RecordBatch, start_offset: int) -> bool: ...
