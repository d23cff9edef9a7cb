"""The broker's log: segments, indexes, recovery, retention, producers' state, in Kafka's on-disk format."""

from kafkacore.broker.log.config import LogConfig
from kafkacore.broker.log.log_manager import LogManager
from kafkacore.broker.log.topics_file import TopicState
from kafkacore.broker.log.unified_log import FetchDataInfo, LogAppendInfo, TimestampAndOffset, UnifiedLog

__all__ = [
    "FetchDataInfo",
    "LogAppendInfo",
    "LogConfig",
    "LogManager",
    "TimestampAndOffset",
    "TopicState",
    "UnifiedLog",
]
