from typing import Final

from typing_extensions import disjoint_base

from kafkacore.broker.log._indexes import OffsetIndex, TimeIndex, TimestampOffset
from kafkacore.broker.log._log_file import LogFile
from kafkacore.broker.log.config import LogConfig
from kafkacore.record import BatchHeader

MAX_SEGMENT_SIZE: Final[int]

class AppendNotUndoneError(OSError): ...

@disjoint_base
class SegmentAppender:
    base_offset: int
    size: int
    offset_index: OffsetIndex
    time_index: TimeIndex
    config: LogConfig
    max_timestamp: TimestampOffset
    file: LogFile
    def __init__(
        self,
        file: LogFile,
        size: int,
        offset_index: OffsetIndex,
        time_index: TimeIndex,
        base_offset: int,
        config: LogConfig,
        created_ms: int,
    ) -> None: ...
    def begin_entries(self, last_size: int) -> None: ...
    def should_roll(self, size: int, max_timestamp: int, last_offset: int, now_ms: int) -> bool: ...
    def fits_offset(self, offset: int) -> bool: ...
    def first_timestamp(self) -> int: ...
    def index(self, header: BatchHeader) -> None: ...
