"""The settings of a topic, with Kafka's names, types and defaults, and the check of their values.

Values are text, as in CreateTopics and DescribeConfigs; the log converts the values that it uses to numbers.
The table follows Kafka's ``TopicConfig``, ``LogConfig`` and ``ServerTopicConfigSynonyms``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from kafkacore.errors import InvalidConfigurationError
from kafkacore.settings import SettingType, table
from kafkacore.settings.setting import Setting
from kafkacore.settings.texts import (
    INT32_MIN,
    INT64_MIN,
    InvalidTextError,
    read_boolean,
    read_java_number,
    read_java_whole,
)
from kafkacore.structs import CODEC_NAMES, INT32_MAX, INT64_MAX


@dataclass(frozen=True, slots=True)
class TopicSetting(Setting):
    """A setting of a topic. Its default is Kafka's, as text.

    Parameters
    ----------
    broker_name:
        The broker setting that changes the default; empty if only a topic can set it.
    fallback:
        Name and default of Kafka's older setting with the same meaning as ``broker_name``. The older setting
        applies unless ``broker_name`` is set.
    """

    default: str = ""
    broker_name: str = ""
    fallback: tuple[str, str] | None = None

    @property
    def broker_documentation(self) -> str:
        """Description of the broker setting ``broker_name``."""
        return f"Default for topics that do not set `{self.name}`. {self.documentation}"


_B, _S, _I, _L, _D, _LIST = (
    SettingType.BOOLEAN,
    SettingType.STRING,
    SettingType.INT,
    SettingType.LONG,
    SettingType.DOUBLE,
    SettingType.LIST,
)
_CODECS = ("uncompressed", *reversed(CODEC_NAMES), "producer")
_WEEK_MS = str(7 * 24 * 3600 * 1000)
_DAY_MS = str(24 * 3600 * 1000)
_FOREVER = str(INT64_MAX)
_KEPT: Final = "Accepted and stored, but has no effect on this broker: "
THROTTLED_REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


def _key(
    name: str,
    kind: SettingType,
    default: str,
    broker_name: str = "",
    low: float = 0,
    high: float = INT64_MAX,
    *,
    documentation: str,
    choices: tuple[str, ...] = (),
    exception: int | None = None,
    fallback: tuple[str, str] | None = None,
) -> TopicSetting:
    return TopicSetting(
        name,
        kind,
        default,
        documentation,
        low,
        high,
        choices,
        exception,
        broker_name=broker_name,
        fallback=fallback,
    )


# fmt: off
_KEYS = (
    _key("cleanup.policy", _LIST, "delete", "log.cleanup.policy", choices=("compact", "delete"),
         documentation="How old data is removed: `delete` deletes old segments by age and size, `compact` "
                       "keeps the last record of each key. Both may be given. An empty value keeps all "
                       "records."),
    _key("compression.gzip.level", _I, "-1", "compression.gzip.level", 1, 9, exception=-1,
         documentation="Compression level of gzip if `compression.type` is `gzip`. -1 is gzip's own "
                       "default."),
    _key("compression.lz4.level", _I, "9", "compression.lz4.level", 1, 17,
         documentation="Compression level of lz4 if `compression.type` is `lz4`."),
    _key("compression.type", _S, "producer", "compression.type", choices=_CODECS,
         documentation="Compression codec of batches in the log. `producer` keeps the codec that the "
                       "producer used."),
    _key("compression.zstd.level", _I, "3", "compression.zstd.level", -131072, 22,
         documentation="Compression level of zstd if `compression.type` is `zstd`."),
    _key("delete.retention.ms", _L, _DAY_MS, "log.cleaner.delete.retention.ms",
         documentation="Time in milliseconds that tombstones stay in a compacted log, so that a consumer "
                       "reading from the beginning sees the deletions."),
    _key("file.delete.delay.ms", _L, "60000", "log.segment.delete.delay.ms",
         documentation=_KEPT + "deleted segment files are removed as soon as no reader uses them."),
    _key("flush.messages", _L, _FOREVER, "log.flush.interval.messages", 1,
         documentation=_KEPT + "the broker setting `flush` determines when data is written to disk."),
    _key("flush.ms", _L, _FOREVER, "log.flush.interval.ms",
         fallback=("log.flush.scheduler.interval.ms", _FOREVER),
         documentation=_KEPT + "the broker setting `flush` determines when data is written to disk."),
    _key("follower.replication.throttled.replicas", _LIST, "",
         documentation=_KEPT + "there are no followers to throttle."),
    _key("index.interval.bytes", _I, "4096", "log.index.interval.bytes", 0, INT32_MAX,
         documentation="Approximate number of log bytes between two entries of the offset index."),
    _key("leader.replication.throttled.replicas", _LIST, "",
         documentation=_KEPT + "there are no followers to throttle."),
    _key("local.retention.bytes", _L, "-2", "log.local.retention.bytes", -2,
         documentation=_KEPT + "tiered storage is unsupported."),
    _key("local.retention.ms", _L, "-2", "log.local.retention.ms", -2,
         documentation=_KEPT + "tiered storage is unsupported."),
    _key("max.compaction.lag.ms", _L, _FOREVER, "log.cleaner.max.compaction.lag.ms", 1,
         documentation="Maximum time in milliseconds that a record may remain uncompacted, regardless of "
                       "`min.cleanable.dirty.ratio`."),
    _key("max.message.bytes", _I, "1048588", "message.max.bytes", 0, INT32_MAX,
         documentation="Maximum size in bytes of a record batch, as the producer sent it."),
    _key("message.timestamp.after.max.ms", _L, "3600000", "log.message.timestamp.after.max.ms",
         documentation="Maximum time in milliseconds that a record's timestamp may be later than the "
                       "broker's clock."),
    _key("message.timestamp.before.max.ms", _L, _FOREVER, "log.message.timestamp.before.max.ms",
         documentation="Maximum time in milliseconds that a record's timestamp may be earlier than the "
                       "broker's clock."),
    _key("message.timestamp.type", _S, "CreateTime", "log.message.timestamp.type",
         choices=("CreateTime", "LogAppendTime"),
         documentation="Timestamp stored with each record: the producer's (`CreateTime`), or the broker's "
                       "time of the append (`LogAppendTime`)."),
    _key("min.cleanable.dirty.ratio", _D, "0.5", "log.cleaner.min.cleanable.ratio", 0, 1,
         documentation="Minimum fraction of a compacted log that must be uncompacted before the cleaner "
                       "cleans it."),
    _key("min.compaction.lag.ms", _L, "0", "log.cleaner.min.compaction.lag.ms",
         documentation="Minimum time in milliseconds that a record stays uncompacted."),
    _key("min.insync.replicas", _I, "1", "min.insync.replicas", 1, INT32_MAX,
         documentation="Number of in-sync replicas that `acks=all` requires. Each partition has one "
                       "replica, so with a value above 1 the broker rejects such writes with "
                       "NOT_ENOUGH_REPLICAS."),
    _key("preallocate", _B, "false", "log.preallocate",
         documentation=_KEPT + "segment files grow as they are written."),
    _key("remote.log.copy.disable", _B, "false",
         documentation=_KEPT + "tiered storage is unsupported."),
    _key("remote.log.delete.on.disable", _B, "false",
         documentation=_KEPT + "tiered storage is unsupported."),
    _key("remote.storage.enable", _B, "false",
         documentation="Whether the topic uses tiered storage. This broker does not support it and rejects "
                       "`true`."),
    _key("retention.bytes", _L, "-1", "log.retention.bytes", INT64_MIN,
         documentation="Maximum size in bytes of a partition before its oldest segments are deleted. A "
                       "negative value means no limit."),
    _key("retention.ms", _L, _WEEK_MS, "log.retention.ms", -1,
         fallback=("log.retention.hours", "168"),
         documentation="Time in milliseconds after which old segments may be deleted. -1 keeps records "
                       "forever."),
    # Kafka's minimum is 1048576. It is lower here so that tests can create many segments with little data.
    _key("segment.bytes", _I, str(2**30), "log.segment.bytes", 14, INT32_MAX,
         documentation="Maximum size in bytes of a segment file. The broker then starts a new segment."),
    _key("segment.index.bytes", _I, str(10 * 2**20), "log.index.size.max.bytes", 4, INT32_MAX,
         documentation="Maximum size in bytes of a segment's index. When the index is full, the broker "
                       "starts a new segment."),
    _key("segment.jitter.ms", _L, "0", "log.roll.jitter.ms",
         fallback=("log.roll.jitter.hours", "0"),
         documentation=_KEPT + "segments are rolled after exactly `segment.ms`."),
    _key("segment.ms", _L, _WEEK_MS, "log.roll.ms", 1, fallback=("log.roll.hours", "168"),
         documentation="Time in milliseconds after which the broker starts a new segment even if the "
                       "current one is not full."),
    _key("unclean.leader.election.enable", _B, "false", "unclean.leader.election.enable",
         documentation=_KEPT + "a partition has one replica, which is always in sync."),
)
# fmt: on

#: Kafka's internal settings, which DescribeConfigs shows only if they are set.
HIDDEN_TOPIC_CONFIG = table(
    # Kafka's tests use this setting to get segments smaller than the minimum of segment.bytes.
    _key(
        "internal.segment.bytes",
        _I,
        "",
        low=14,
        high=INT32_MAX,
        documentation="Maximum size in bytes of a segment file. If set, it replaces `segment.bytes`.",
    )
)
#: Topic settings by name.
TOPIC_CONFIG = table(*_KEYS)
#: Topic settings by the broker setting that changes their default.
BROKER_SYNONYMS = {key.broker_name: key for key in _KEYS if key.broker_name}

_LIMITS = {SettingType.INT: (INT32_MIN, INT32_MAX), SettingType.LONG: (INT64_MIN, INT64_MAX)}
_REPLICA = re.compile(r"[0-9]+:[0-9]+")


def checked_value(key: Setting, text: str) -> str:
    """Check a value and return it in Kafka's notation.

    Raises
    ------
    InvalidConfigurationError
        The value is invalid. The message names the setting, the value and the valid values.
    """
    text = text.strip()
    try:
        return _canonical(key, text)
    except InvalidTextError as error:
        raise InvalidConfigurationError(
            f"Invalid value {text} for configuration {key.name}: {error}"
        ) from None


def _canonical(key: Setting, text: str) -> str:
    if key.type is SettingType.BOOLEAN:
        return str(read_boolean(text)).lower()
    if key.type in _LIMITS:
        whole = read_java_whole(text)
        low, high = _LIMITS[key.type]
        if whole is None or not low <= whole <= high:
            raise InvalidTextError(f"Not a number of type {key.type.name}")
        _check_limits(key, whole)
        return str(whole)
    if key.type is SettingType.DOUBLE:
        number = read_java_number(text)
        _check_limits(key, number)
        return java_double(number)
    if key.type is SettingType.LIST:
        return _checked_list(key, text)
    if key.choices and text not in key.choices:
        raise InvalidTextError(f"String must be one of: {', '.join(key.choices)}")
    return text


def _check_limits(key: Setting, number: float) -> None:
    """Check the limits of a number as Kafka's ``ConfigDef.Range`` and ``CompressionType`` do."""
    low, high = key.low, key.high
    if low is None or high is None or low <= number <= high or number == key.exception:
        return
    if key.exception is not None:
        raise InvalidTextError(f"Value must be between {low} and {high} or equal to {key.exception}")
    if number < low:
        raise InvalidTextError(f"Value must be at least {low}")
    raise InvalidTextError(f"Value must be no more than {high}")


def _checked_list(key: Setting, text: str) -> str:
    parts = [part.strip() for part in text.split(",")] if text else []
    if key.name in THROTTLED_REPLICAS:
        if parts != ["*"] and not all(_REPLICA.fullmatch(part) for part in parts):
            raise InvalidTextError("must be * or a list of partition:broker")
        return ",".join(parts)
    if any(part not in key.choices for part in parts):
        raise InvalidTextError(f"must be a list of {', '.join(key.choices)}")
    return ",".join(dict.fromkeys(parts))


def java_double(number: float) -> str:
    """Format a number as Java's ``Double.toString`` does: ``1.0``, ``1.0E-5``."""
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(float(number))
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int), "numbers in a configuration are finite"
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{rest}E{exponent + len(digits) - 1}"


def checked_topic_configs(configs: Mapping[str, str | None]) -> dict[str, str]:
    """Check the settings given for a topic and return them in Kafka's notation.

    Raises
    ------
    InvalidConfigurationError
        A value is null, or a setting is unknown or its value is invalid. The message names the null values,
        or the first invalid setting.
    """
    without_value = ",".join(name for name, text in configs.items() if text is None)
    if without_value:
        raise InvalidConfigurationError(f"Null value not supported for topic configs: {without_value}")
    checked: dict[str, str] = {}
    for name, text in configs.items():
        key = TOPIC_CONFIG.get(name) or HIDDEN_TOPIC_CONFIG.get(name)
        if key is None:
            raise InvalidConfigurationError(f"Unknown topic config name: {name}")
        assert text is not None, "checked before"
        checked[name] = checked_value(key, text)
    if checked.get("remote.storage.enable") == "true":
        raise InvalidConfigurationError(
            "remote.storage.enable=true is not supported: this broker has no tiered storage"
        )
    return checked
