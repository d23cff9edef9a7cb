"""The broker's storage of record batches, in Apache Kafka's on-disk format.

It covers segments, indexes, recovery, retention, compaction and producer state.
"""

from kafkacore.broker.log.cleaner import CleanerConfig
from kafkacore.broker.log.config import LogConfig
from kafkacore.broker.log.log_manager import LogManager
from kafkacore.broker.log.log_structs import FetchDataInfo, LogAppendInfo, TimestampAndOffset
from kafkacore.broker.log.topics_file import TopicState
from kafkacore.broker.log.unified_log import UnifiedLog

__all__ = [
    "CleanerConfig",
    "FetchDataInfo",
    "LogAppendInfo",
    "LogConfig",
    "LogManager",
    "TimestampAndOffset",
    "TopicState",
    "UnifiedLog",
]
