"""What a log is told: Kafka's topic configuration, as text in and as numbers out.

Does not know: topics, files, which keys a client may set (the broker checks that).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

from kafkacore.errors import InvalidConfigurationError
from kafkacore.record.compression import CODECS, DEFAULT_MAX_DECOMPRESSED_SIZE
from kafkacore.structs import INT64_MAX, TimestampType

WEEK_MS = 7 * 24 * 3600 * 1000
HOUR_MS = 3600 * 1000
DAY_MS = 24 * HOUR_MS

_TIMESTAMP_TYPES = {
    "CreateTime": TimestampType.CREATE_TIME,
    "LogAppendTime": TimestampType.LOG_APPEND_TIME,
}


#: Used instead of ``segment.bytes`` where a topic has it.
_INTERNAL_SEGMENT_BYTES = "internal.segment.bytes"
#: Key → its codec and that codec's default level.
_LEVEL_KEYS = {
    f"compression.{codec.name}.level": (codec.id, codec.levels.default)
    for codec in CODECS.values()
    if codec.levels is not None
}


@dataclass(frozen=True, kw_only=True)
class LogConfig:
    """The part of Kafka's ``TopicConfig`` that a log acts on. Sizes in bytes, durations in milliseconds.

    ``retention_ms`` and ``retention_bytes`` below 0 mean without limit. Field names are Kafka's keys
    with underscores, but for ``compression_levels``.
    """

    segment_bytes: int = 2**30
    segment_ms: int = WEEK_MS
    segment_index_bytes: int = 10 * 2**20
    index_interval_bytes: int = 4096
    retention_ms: int = WEEK_MS
    retention_bytes: int = -1
    max_message_bytes: int = 1_048_588
    message_timestamp_type: TimestampType = TimestampType.CREATE_TIME
    message_timestamp_before_max_ms: int = INT64_MAX
    message_timestamp_after_max_ms: int = HOUR_MS
    cleanup_policy: str = "delete"
    compression_type: str = "producer"
    #: By codec, from ``compression.<codec>.level``. A codec at its default level is not in it.
    compression_levels: Mapping[int, int] = field(default_factory=dict, hash=False)
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = INT64_MAX
    delete_retention_ms: int = DAY_MS
    #: The broker's, not a topic's: what a compressed batch may have in it.
    max_decompressed_batch_bytes: int = DEFAULT_MAX_DECOMPRESSED_SIZE

    @property
    def deletes(self) -> bool:
        """Whether old segments are removed by time and size."""
        return "delete" in self.cleanup_policy.split(",")

    @cached_property
    def max_segment_ms(self) -> int:
        """Age at which a segment is closed: only then can it be compacted."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compacts else self.segment_ms

    @cached_property
    def compacts(self) -> bool:
        """Whether only the last record of each key has to be kept, so that every record must have one."""
        return "compact" in self.cleanup_policy.split(",")

    @classmethod
    def from_configs(cls, *configs: Mapping[str, str], base: Self | None = None) -> Self:
        """From Kafka's keys (``segment.bytes``), later mappings over earlier ones over ``base``.

        Keys that a log does not act on are passed over.

        Raises
        ------
        InvalidConfigurationError
            A value that is not of its key's type.
        """
        arguments: dict[str, Any] = {}
        known = {each.name.replace("_", "."): each.name for each in fields(cls)}
        levels = {} if base is None else dict(base.compression_levels)
        for mapping in configs:
            for key, text in mapping.items():
                if key in known:
                    arguments[known[key]] = _typed(key, text)
                elif key in _LEVEL_KEYS:
                    codec, default = _LEVEL_KEYS[key]
                    levels.pop(codec, None)
                    level = _typed(key, text)
                    assert isinstance(level, int), "levels are whole numbers"
                    if level != default:
                        levels[codec] = level
            if _INTERNAL_SEGMENT_BYTES in mapping:
                text = mapping[_INTERNAL_SEGMENT_BYTES]
                arguments["segment_bytes"] = _typed(_INTERNAL_SEGMENT_BYTES, text)
        arguments["compression_levels"] = levels
        return cls(**arguments) if base is None else replace(base, **arguments)


#: Keys whose values are texts, and those that are fractions; the others are whole numbers.
_TEXTS = ("cleanup.policy", "compression.type")
_FRACTIONS = ("min.cleanable.dirty.ratio",)


def _typed(key: str, text: str) -> object:
    if key in _TEXTS:
        return text
    try:
        if key == "message.timestamp.type":
            return _TIMESTAMP_TYPES[text]
        return float(text) if key in _FRACTIONS else int(text)
    except (KeyError, ValueError):
        raise InvalidConfigurationError(f"Invalid value {text} for configuration {key}") from None
