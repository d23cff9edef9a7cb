from typing_extensions import disjoint_base

from kafkacore.broker.log.log_structs import LogAppendInfo
from kafkacore.broker.log.reading import LogOffsetMetadata
from kafkacore.broker.log.segment import LogSegment
from kafkacore.record._batch import RecordBatch

@disjoint_base
class LocalLog:
    segments: list[LogSegment]
    base_offsets: list[int]
    log_end_offset: int
    log_end_metadata: LogOffsetMetadata
    appended_bytes: int
    def __init__(self, segments: list[LogSegment], log_end_offset: int) -> None: ...
    def should_roll(self, batch: RecordBatch, max_timestamp: int, now_ms: int) -> bool: ...
    def append(
        self,
        batch: RecordBatch,
        leader_epoch: int,
        is_append_time: bool,
        max_timestamp: int,
        log_start_offset: int,
    ) -> LogAppendInfo: ...
    def roll(self, segment: LogSegment) -> None: ...
    def index_of(self, offset: int) -> int: ...
    def end_of(self, index: int) -> int: ...
    def count_below(self, offset: int) -> int: ...
    def remove_first(self, count: int) -> None: ...
    def replace(self, old: list[LogSegment], segment: LogSegment) -> None: ...
