from threading import Lock
from typing import Any

from typing_extensions import disjoint_base

from kafkacore.broker.log.config import LogConfig
from kafkacore.broker.log.epochs import LeaderEpochCache
from kafkacore.broker.log.log_structs import BackgroundWork, LogAppendInfo
from kafkacore.broker.log.producer_state import ProducerStateManager
from kafkacore.broker.log.reading import EndPlace
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
    _work: BackgroundWork
    safe_end: EndPlace
    _flushes_acks: bool
    _has_identity: bool
    def append(self, records: Any, *, now_ms: int) -> LogAppendInfo: ...
    def _duplicate_info(self, batch: Any, is_append_time: bool) -> LogAppendInfo: ...
