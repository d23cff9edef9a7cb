"""The part of a topic's configuration that a log uses, with typed values."""

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


#: Key that overrides ``segment.bytes``.
_INTERNAL_SEGMENT_BYTES = "internal.segment.bytes"
#: Key of a compression level → id of the codec and its default level.
_LEVEL_KEYS = {
    f"compression.{codec.name}.level": (codec.id, codec.levels.default)
    for codec in CODECS.values()
    if codec.levels is not None
}
#: Keys whose values are strings.
_TEXTS = ("cleanup.policy", "compression.type")
#: Keys whose values are floats. All other values are integers.
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
    """Return the default value of a topic's configuration key."""
    return _typed(key, TOPIC_CONFIG[key].default)


@dataclass(frozen=True, kw_only=True)
class LogConfig:
    """The part of Kafka's ``TopicConfig`` that a log uses. Sizes are in bytes, durations in milliseconds.

    Field names are Kafka's keys with underscores, except ``compression_levels`` and
    ``max_decompressed_batch_bytes``. Negative ``retention_ms`` or ``retention_bytes`` means no limit.
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
    #: Codec id → level, from ``compression.<codec>.level``. Default levels are left out.
    compression_levels: Mapping[int, int] = field(default_factory=dict, hash=False)
    min_cleanable_dirty_ratio: float = _default("min.cleanable.dirty.ratio")
    min_compaction_lag_ms: int = _default("min.compaction.lag.ms")
    max_compaction_lag_ms: int = _default("max.compaction.lag.ms")
    delete_retention_ms: int = _default("delete.retention.ms")
    #: Maximum size of a compressed batch after decompression. This is a broker setting, not a topic setting.
    max_decompressed_batch_bytes: int = DEFAULT_MAX_DECOMPRESSED_SIZE

    @property
    def deletes(self) -> bool:
        """Whether ``cleanup.policy`` contains ``delete``. If so, old segments are removed by age and size."""
        return "delete" in self.cleanup_policy.split(",")

    @cached_property
    def max_segment_ms(self) -> int:
        """Age at which a segment is rolled.

        In a compacted topic, the age is at most ``max.compaction.lag.ms``, because only closed segments are
        compacted.
        """
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compacts else self.segment_ms

    @cached_property
    def compacts(self) -> bool:
        """Whether ``cleanup.policy`` contains ``compact``. If so, every record must have a key."""
        return "compact" in self.cleanup_policy.split(",")

    @classmethod
    def from_configs(cls, *configs: Mapping[str, str], base: Self | None = None) -> Self:
        """Build a configuration from mappings of Kafka's keys, such as ``segment.bytes``, to strings.

        Keys that a log does not use are ignored.

        Parameters
        ----------
        *configs:
            Mappings of keys to values. Later mappings override earlier mappings.
        base:
            Configuration that supplies all other values. Default: Kafka's defaults.

        Raises
        ------
        InvalidConfigurationError
            A value does not have the type of its key.
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
