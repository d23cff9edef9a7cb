"""The configuration keys of a topic: text in, checked text out, with Kafka's names, types and defaults.

Values travel as text, as they do in CreateTopics and DescribeConfigs; the log turns those that it honours
into numbers. Does not know: topics, files, requests. Source: Kafka's ``TopicConfig``, ``LogConfig`` and
``ServerTopicConfigSynonyms``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from enum import IntEnum
from typing import NamedTuple

from kafkacore.errors import InvalidConfigurationError
from kafkacore.structs import CODEC_NAMES, INT32_MAX, INT64_MAX
from kafkacore.text import parse_boolean

INT_MIN = -(2**31)
LONG_MIN = -(2**63)


class ConfigType(IntEnum):
    """How a value is to be read; the numbers are DescribeConfigs' (KIP-569)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class TopicConfigKey(NamedTuple):
    """One key: its type, Kafka's default as text, and the broker's property that changes the default.

    Parameters
    ----------
    broker_name:
        Empty for what only a topic can say.
    low, high:
        Limits of a number, both allowed.
    choices:
        What a text, or each part of a list, may be.
    exception:
        A number outside the limits that is allowed all the same.
    fallback:
        Kafka's older property of the same meaning, and its default, which is in force as long as
        ``broker_name`` has none.
    """

    name: str
    type: ConfigType
    default: str
    broker_name: str = ""
    low: int = 0
    high: int = INT64_MAX
    choices: tuple[str, ...] = ()
    exception: int | None = None
    fallback: tuple[str, str] | None = None


_B, _S, _I, _L, _D, _LIST = (
    ConfigType.BOOLEAN,
    ConfigType.STRING,
    ConfigType.INT,
    ConfigType.LONG,
    ConfigType.DOUBLE,
    ConfigType.LIST,
)
_CODECS = ("uncompressed", *reversed(CODEC_NAMES), "producer")
_WEEK_MS = str(7 * 24 * 3600 * 1000)
_DAY_MS = str(24 * 3600 * 1000)
_FOREVER = str(INT64_MAX)
THROTTLED_REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")

# fmt: off
_KEYS = (
    TopicConfigKey("cleanup.policy", _LIST, "delete", "log.cleanup.policy", choices=("compact", "delete")),
    TopicConfigKey("compression.gzip.level", _I, "-1", "compression.gzip.level", 1, 9, exception=-1),
    TopicConfigKey("compression.lz4.level", _I, "9", "compression.lz4.level", 1, 17),
    TopicConfigKey("compression.type", _S, "producer", "compression.type", choices=_CODECS),
    TopicConfigKey("compression.zstd.level", _I, "3", "compression.zstd.level", -131072, 22),
    TopicConfigKey("delete.retention.ms", _L, _DAY_MS, "log.cleaner.delete.retention.ms"),
    TopicConfigKey("file.delete.delay.ms", _L, "60000", "log.segment.delete.delay.ms"),
    TopicConfigKey("flush.messages", _L, _FOREVER, "log.flush.interval.messages", 1),
    TopicConfigKey("flush.ms", _L, _FOREVER, "log.flush.interval.ms",
                   fallback=("log.flush.scheduler.interval.ms", _FOREVER)),
    TopicConfigKey("follower.replication.throttled.replicas", _LIST, ""),
    TopicConfigKey("index.interval.bytes", _I, "4096", "log.index.interval.bytes", 0, INT32_MAX),
    TopicConfigKey("leader.replication.throttled.replicas", _LIST, ""),
    TopicConfigKey("local.retention.bytes", _L, "-2", "log.local.retention.bytes", -2),
    TopicConfigKey("local.retention.ms", _L, "-2", "log.local.retention.ms", -2),
    TopicConfigKey("max.compaction.lag.ms", _L, _FOREVER, "log.cleaner.max.compaction.lag.ms", 1),
    TopicConfigKey("max.message.bytes", _I, "1048588", "message.max.bytes", 0, INT32_MAX),
    TopicConfigKey("message.timestamp.after.max.ms", _L, "3600000", "log.message.timestamp.after.max.ms"),
    TopicConfigKey("message.timestamp.before.max.ms", _L, _FOREVER, "log.message.timestamp.before.max.ms"),
    TopicConfigKey("message.timestamp.type", _S, "CreateTime", "log.message.timestamp.type",
                   choices=("CreateTime", "LogAppendTime")),
    TopicConfigKey("min.cleanable.dirty.ratio", _D, "0.5", "log.cleaner.min.cleanable.ratio", 0, 1),
    TopicConfigKey("min.compaction.lag.ms", _L, "0", "log.cleaner.min.compaction.lag.ms"),
    TopicConfigKey("min.insync.replicas", _I, "1", "min.insync.replicas", 1, INT32_MAX),
    TopicConfigKey("preallocate", _B, "false", "log.preallocate"),
    TopicConfigKey("remote.log.copy.disable", _B, "false"),
    TopicConfigKey("remote.log.delete.on.disable", _B, "false"),
    TopicConfigKey("remote.storage.enable", _B, "false"),
    TopicConfigKey("retention.bytes", _L, "-1", "log.retention.bytes", LONG_MIN),
    TopicConfigKey("retention.ms", _L, _WEEK_MS, "log.retention.ms", -1,
                   fallback=("log.retention.hours", "168")),
    # Kafka asks for 1048576 at least; a test of ours that wants many segments would have to write as much.
    TopicConfigKey("segment.bytes", _I, str(2**30), "log.segment.bytes", 14, INT32_MAX),
    TopicConfigKey("segment.index.bytes", _I, str(10 * 2**20), "log.index.size.max.bytes", 4, INT32_MAX),
    TopicConfigKey("segment.jitter.ms", _L, "0", "log.roll.jitter.ms",
                   fallback=("log.roll.jitter.hours", "0")),
    TopicConfigKey("segment.ms", _L, _WEEK_MS, "log.roll.ms", 1, fallback=("log.roll.hours", "168")),
    TopicConfigKey("unclean.leader.election.enable", _B, "false", "unclean.leader.election.enable"),
)
# fmt: on

#: Keys that DescribeConfigs shows only where they are set, as Kafka's internal ones.
HIDDEN_TOPIC_CONFIG: dict[str, TopicConfigKey] = {
    # Kafka's tests have it because segment.bytes has a lower limit there; it is used instead of that.
    "internal.segment.bytes": TopicConfigKey("internal.segment.bytes", _I, "", low=14, high=INT32_MAX)
}
#: Topic key → its definition.
TOPIC_CONFIG: dict[str, TopicConfigKey] = {key.name: key for key in _KEYS}
#: Broker property → the topic key whose default it sets.
BROKER_SYNONYMS: dict[str, TopicConfigKey] = {key.broker_name: key for key in _KEYS if key.broker_name}

_LIMITS = {ConfigType.INT: (INT_MIN, INT32_MAX), ConfigType.LONG: (LONG_MIN, INT64_MAX)}
#: What Java reads as a whole number, and as one with a fraction; Python's own readers take more.
_WHOLE = re.compile(r"[+-]?0*[0-9]{1,19}")
_FRACTION = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[dDfF]?")
_REPLICA = re.compile(r"[0-9]+:[0-9]+")


def checked_value(key: TopicConfigKey, text: str) -> str:
    """``text``, as Kafka would write it, if ``key`` may have it.

    Raises
    ------
    InvalidConfigurationError
        Names the key, the value and what it may be.
    """
    text = text.strip()
    if key.type is ConfigType.BOOLEAN:
        if parse_boolean(text) is None:
            raise _refusal(key, text, "must be true or false")
        return text.lower()
    if key.type in _LIMITS:
        return str(_checked_whole(key, text))
    if key.type is ConfigType.DOUBLE:
        if _FRACTION.fullmatch(text) is None:
            raise _refusal(key, text, "not a number")
        number = float(text.rstrip("dDfF"))
        _check_limits(key, text, number)
        return java_double(number)
    if key.type is ConfigType.LIST:
        return _checked_list(key, text)
    if text not in key.choices:
        raise _refusal(key, text, f"must be one of {', '.join(key.choices)}")
    return text


def _refusal(key: TopicConfigKey, text: str, why: str) -> InvalidConfigurationError:
    return InvalidConfigurationError(f"Invalid value {text} for configuration {key.name}: {why}")


def _checked_whole(key: TopicConfigKey, text: str) -> int:
    low, high = _LIMITS[key.type]
    if _WHOLE.fullmatch(text) is None or not low <= int(text) <= high:
        raise _refusal(key, text, f"must be a whole number of {64 if low == LONG_MIN else 32} bits")
    number = int(text)
    if number != key.exception:
        _check_limits(key, text, number)
    return number


def _check_limits(key: TopicConfigKey, text: str, number: float) -> None:
    if not key.low <= number <= key.high:
        also = "" if key.exception is None else f", or {key.exception}"
        raise _refusal(key, text, f"must be between {key.low} and {key.high}{also}")


def _checked_list(key: TopicConfigKey, text: str) -> str:
    parts = [part.strip() for part in text.split(",")] if text else []
    if key.name in THROTTLED_REPLICAS:
        if parts != ["*"] and not all(_REPLICA.fullmatch(part) for part in parts):
            raise _refusal(key, text, "must be * or a list of partition:broker")
        return ",".join(parts)
    if any(part not in key.choices for part in parts):
        raise _refusal(key, text, f"must be a list of {', '.join(key.choices)}")
    return ",".join(dict.fromkeys(parts))


def java_double(number: float) -> str:
    """A number as Java's ``Double.toString`` writes it: ``1.0``, ``1.0E-5``."""
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(float(number))
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int), "a number of a configuration is finite"
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{rest}E{exponent + len(digits) - 1}"


def checked_topic_configs(configs: Mapping[str, str | None]) -> dict[str, str]:
    """Configs given for a topic, checked; a null value or an unknown key is refused.

    Raises
    ------
    InvalidConfigurationError
        Names the first key that is unknown or has a value that it may not have.
    """
    checked: dict[str, str] = {}
    for name, text in configs.items():
        key = TOPIC_CONFIG.get(name) or HIDDEN_TOPIC_CONFIG.get(name)
        if key is None:
            raise InvalidConfigurationError(f"Unknown topic config name: {name}")
        if text is None:
            raise InvalidConfigurationError(f"Null value not supported for topic config: {name}")
        checked[name] = checked_value(key, text)
    if checked.get("remote.storage.enable") == "true":
        raise InvalidConfigurationError("remote.storage.enable=true: this broker has no tiered storage")
    return checked
