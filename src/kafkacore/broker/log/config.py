"""The configuration of a log: the part of a topic's configuration that a log acts on, as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

from kafkacore.broker.config.topic_config import TOPIC_CONFIG
from kafkacore.errors import InvalidConfigurationError
from kafkacore.record.compression import CODECS, DEFAULT_MAX_DECOMPRESSED_SIZE
from kafkacore.structs import TimestampType

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


def _default(key: str) -> Any:
    """Return the default that a topic's configuration key has."""
    return _typed(key, TOPIC_CONFIG[key].default)


@dataclass(frozen=True, kw_only=True)
class LogConfig:
    """The part of Kafka's ``TopicConfig`` that a log acts on. Sizes in bytes, durations in milliseconds.

    ``retention_ms`` and ``retention_bytes`` below 0 mean without limit. Field names are Kafka's keys
    with underscores, but for ``compression_levels``.
    """

    segment_bytes: int = _default("segment.bytes")
    segment_ms: int = _default("segment.ms")
    segment_index_bytes: int = _default("segment.index.bytes")
    index_interval_bytes: int = _default("index.interval.bytes")
    retention_ms: int = _default("retention.ms")
    retention_bytes: int = _default("retention.bytes")
    max_message_bytes: int = _default("max.message.bytes")
    message_timestamp_type: TimestampType = _TIMESTAMP_TYPES[TOPIC_CONFIG["message.timestamp.type"].default]
    message_timestamp_before_max_ms: int = _default("message.timestamp.before.max.ms")
    message_timestamp_after_max_ms: int = _default("message.timestamp.after.max.ms")
    cleanup_policy: str = _default("cleanup.policy")
    compression_type: str = _default("compression.type")
    #: By codec, from ``compression.<codec>.level``. A codec at its default level is not in it.
    compression_levels: Mapping[int, int] = field(default_factory=dict, hash=False)
    min_cleanable_dirty_ratio: float = _default("min.cleanable.dirty.ratio")
    min_compaction_lag_ms: int = _default("min.compaction.lag.ms")
    max_compaction_lag_ms: int = _default("max.compaction.lag.ms")
    delete_retention_ms: int = _default("delete.retention.ms")
    #: The broker's, not a topic's: most bytes of a compressed batch after decompression.
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
