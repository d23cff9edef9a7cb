"""The configuration keys of a topic: text in, checked text out, with Kafka's names, types and defaults.

Values travel as text, as they do in CreateTopics and DescribeConfigs; the log turns those that it honours
into numbers. Does not know: topics, files, requests. Source: Kafka's ``TopicConfig``, ``LogConfig`` and
``ServerTopicConfigSynonyms``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from kafkacore.errors import InvalidConfigurationError

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


class ConfigType(IntEnum):
    """How a value is to be read; the numbers are DescribeConfigs' (KIP-569)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


class TopicConfigKey(NamedTuple):
    """One key: its type, Kafka's default as text, and the broker's property that changes the default."""

    name: str
    type: ConfigType
    default: str
    broker_name: str
    low: int = 0
    high: int = LONG_MAX
    choices: tuple[str, ...] = ()
    #: Numbers between the limits that are none of its values.
    excluded: tuple[int, ...] = ()


_B, _S, _I, _L, _D, _LIST = (
    ConfigType.BOOLEAN,
    ConfigType.STRING,
    ConfigType.INT,
    ConfigType.LONG,
    ConfigType.DOUBLE,
    ConfigType.LIST,
)
_CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_WEEK_MS = str(7 * 24 * 3600 * 1000)
_DAY_MS = str(24 * 3600 * 1000)

# fmt: off
_KEYS = (
    TopicConfigKey("cleanup.policy", _LIST, "delete", "log.cleanup.policy", choices=("compact", "delete")),
    TopicConfigKey("compression.gzip.level", _I, "-1", "compression.gzip.level", -1, 9,
                   excluded=(0,)),
    TopicConfigKey("compression.lz4.level", _I, "9", "compression.lz4.level", 1, 17),
    TopicConfigKey("compression.type", _S, "producer", "compression.type", choices=_CODECS),
    TopicConfigKey("compression.zstd.level", _I, "3", "compression.zstd.level", -131072, 22),
    TopicConfigKey("delete.retention.ms", _L, _DAY_MS, "log.cleaner.delete.retention.ms"),
    TopicConfigKey("file.delete.delay.ms", _L, "60000", "log.segment.delete.delay.ms"),
    TopicConfigKey("flush.messages", _L, str(LONG_MAX), "log.flush.interval.messages", 1),
    TopicConfigKey("flush.ms", _L, str(LONG_MAX), "log.flush.interval.ms"),
    TopicConfigKey("index.interval.bytes", _I, "4096", "log.index.interval.bytes", 0, INT_MAX),
    TopicConfigKey("max.compaction.lag.ms", _L, str(LONG_MAX), "log.cleaner.max.compaction.lag.ms", 1),
    TopicConfigKey("max.message.bytes", _I, "1048588", "message.max.bytes", 0, INT_MAX),
    TopicConfigKey("message.timestamp.after.max.ms", _L, "3600000", "log.message.timestamp.after.max.ms"),
    TopicConfigKey("message.timestamp.before.max.ms", _L, str(LONG_MAX),
                   "log.message.timestamp.before.max.ms"),
    TopicConfigKey("message.timestamp.type", _S, "CreateTime", "log.message.timestamp.type",
                   choices=("CreateTime", "LogAppendTime")),
    TopicConfigKey("min.cleanable.dirty.ratio", _D, "0.5", "log.cleaner.min.cleanable.ratio", 0, 1),
    TopicConfigKey("min.compaction.lag.ms", _L, "0", "log.cleaner.min.compaction.lag.ms"),
    TopicConfigKey("min.insync.replicas", _I, "1", "min.insync.replicas", 1, INT_MAX),
    TopicConfigKey("preallocate", _B, "false", "log.preallocate"),
    TopicConfigKey("retention.bytes", _L, "-1", "log.retention.bytes", -1),
    TopicConfigKey("retention.ms", _L, _WEEK_MS, "log.retention.ms", -1),
    TopicConfigKey("segment.bytes", _I, str(2**30), "log.segment.bytes", 14, INT_MAX),
    TopicConfigKey("segment.index.bytes", _I, str(10 * 2**20), "log.index.size.max.bytes", 4, INT_MAX),
    TopicConfigKey("segment.jitter.ms", _L, "0", "log.roll.jitter.ms"),
    TopicConfigKey("segment.ms", _L, _WEEK_MS, "log.roll.ms", 1),
    TopicConfigKey("unclean.leader.election.enable", _B, "false", "unclean.leader.election.enable"),
)
# fmt: on

#: Topic key → its definition.
TOPIC_CONFIG: dict[str, TopicConfigKey] = {key.name: key for key in _KEYS}
#: Broker property → the topic key whose default it sets.
BROKER_SYNONYMS: dict[str, TopicConfigKey] = {key.broker_name: key for key in _KEYS}


def checked_value(key: TopicConfigKey, text: str) -> str:
    """``text`` if ``key`` may have it, else :class:`InvalidConfigurationError` with key, value and limits."""

    def refuse(why: str) -> InvalidConfigurationError:
        return InvalidConfigurationError(f"Invalid value {text} for configuration {key.name}: {why}")

    text = text.strip()
    if key.type is ConfigType.BOOLEAN:
        if text.lower() not in ("true", "false"):
            raise refuse("must be true or false")
        return text.lower()
    if key.type in (ConfigType.INT, ConfigType.LONG, ConfigType.DOUBLE):
        try:
            number = float(text) if key.type is ConfigType.DOUBLE else int(text)
        except ValueError:
            raise refuse("not a number") from None
        if not key.low <= number <= key.high or number in key.excluded:
            but = "".join(f", not {number}" for number in key.excluded)
            raise refuse(f"must be between {key.low} and {key.high}{but}")
        return text
    parts = [part.strip() for part in text.split(",")] if key.type is ConfigType.LIST else [text]
    if not parts or any(part not in key.choices for part in parts):
        raise refuse(f"must be one of {', '.join(key.choices)}")
    return ",".join(parts)


def checked_topic_configs(configs: Mapping[str, str | None]) -> dict[str, str]:
    """Configs given for a topic, checked; a null value or an unknown key is refused.

    Raises
    ------
    InvalidConfigurationError
        Names the first key that is unknown or has a value that it may not have.
    """
    checked: dict[str, str] = {}
    for name, text in configs.items():
        key = TOPIC_CONFIG.get(name)
        if key is None:
            raise InvalidConfigurationError(f"Unknown topic config name: {name}")
        if text is None:
            raise InvalidConfigurationError(f"Null value not supported for topic config: {name}")
        checked[name] = checked_value(key, text)
    return checked
