from threading import Lock
from typing import Any, overload

from typing_extensions import disjoint_base

from kafkacore.broker.log._validation import ValidationBudget
from kafkacore.broker.log.config import LogConfig
from kafkacore.broker.log.epochs import LeaderEpochCache
from kafkacore.broker.log.log_structs import BackgroundWork, LogAppendInfo, ValidatedBatch
from kafkacore.broker.log.producer_state import ProducerStateManager
from kafkacore.broker.log.reading import LogOffsetMetadata
from kafkacore.broker.log.segment import LogSegment
from kafkacore.structs import TopicPartition

@disjoint_base
class GrowingLog:
    topic_partition: TopicPartition
    config: LogConfig
    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    appended_bytes: int
    _lock: Lock
    _segments: list[LogSegment]
    _producers: ProducerStateManager
    _epochs: LeaderEpochCache
    _work: BackgroundWork[Any]
    high_watermark_metadata: LogOffsetMetadata
    _flushes_acks: bool
    _has_identity: bool
    @overload
    def append(self, records: Any, *, now_ms: int) -> LogAppendInfo: ...
    @overload
    def append(
        self, records: Any, *, now_ms: int, budget: ValidationBudget | None
    ) -> LogAppendInfo | None: ...
    def validate(self, records: Any, *, now_ms: int) -> ValidatedBatch: ...
    def append_validated(self, batch: ValidatedBatch, now_ms: int) -> LogAppendInfo: ...
    def _duplicate_info(self, batch: Any, is_append_time: bool) -> LogAppendInfo: ...
