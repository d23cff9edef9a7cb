"""How many segments of a log are past the limits of its topic.

Segments and a config in, a count out. Does not know: files, the high watermark. Source of the rules: Kafka's
``UnifiedLog.deleteOldSegments``.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkacore.broker.log.config import LogConfig
from kafkacore.broker.log.segment import LogSegment


def count_expired(segments: Sequence[LogSegment], config: LogConfig, now_ms: int) -> int:
    """How many of the first segments are too old (``retention.ms``) or too much (``retention.bytes``).

    Parameters
    ----------
    now_ms:
        Wall time.
    """
    return max(_count_by_time(segments, config, now_ms), _count_by_size(segments, config))


def _count_by_time(segments: Sequence[LogSegment], config: LogConfig, now_ms: int) -> int:
    if config.retention_ms < 0:
        return 0
    for index, segment in enumerate(segments):
        timestamp = segment.max_timestamp.timestamp
        if not segment.size:
            # Emptied by compaction, or the active one that nothing has been written to.
            continue
        if timestamp < 0 or now_ms - timestamp <= config.retention_ms:
            return index
    return len(segments)


def _count_by_size(segments: Sequence[LogSegment], config: LogConfig) -> int:
    if config.retention_bytes < 0:
        return 0
    excess = sum(segment.size for segment in segments) - config.retention_bytes
    for index, segment in enumerate(segments):
        if excess < segment.size or segment is segments[-1]:
            return index
        excess -= segment.size
    return 0
