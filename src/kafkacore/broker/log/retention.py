"""Finds the segments that exceed a topic's retention.

The code follows Kafka's ``UnifiedLog.deleteOldSegments``.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkacore.broker.log.config import LogConfig
from kafkacore.broker.log.segment import LogSegment


def count_expired(segments: Sequence[LogSegment], config: LogConfig, now_ms: int) -> int:
    """Count the oldest segments that exceed ``retention.ms`` or ``retention.bytes``.

    Parameters
    ----------
    segments:
        All segments of the log, in order.
    config:
        Configuration of the topic.
    now_ms:
        Wall-clock time in milliseconds since the epoch.

    Returns
    -------
    int
        Number of segments at the start of the log that can be removed.
    """
    return max(_count_by_time(segments, config, now_ms), _count_by_size(segments, config))


def _count_by_time(segments: Sequence[LogSegment], config: LogConfig, now_ms: int) -> int:
    if config.retention_ms < 0:
        return 0
    for index, segment in enumerate(segments):
        timestamp = segment.max_timestamp.timestamp
        if not segment.size:
            # The segment is empty: compaction has removed all records, or it is a new active segment.
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
