"""The configuration keys of a topic: text in, checked text out, with Kafka's names, types and defaults.

Values travel as text, as they do in CreateTopics and DescribeConfigs; the log turns those that it honours
into numbers. Does not know: topics, files, requests. Source: Kafka's ``TopicConfig``, ``LogConfig`` and
``ServerTopicConfigSynonyms``.
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
    check_choice,
    check_limits,
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
        The broker's property that changes the default; empty for what only a topic can say.
    fallback:
        Kafka's older property of the same meaning, and its default, which is in force as long as
        ``broker_name`` has none.
    """

    default: str = ""
    broker_name: str = ""
    fallback: tuple[str, str] | None = None

    @property
    def broker_documentation(self) -> str:
        """What ``broker_name`` does."""
        return f"Of topics that do not say otherwise. {self.documentation}"


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
_KEPT: Final = "Kept and shown, without effect on this broker: "
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
         documentation="What happens to old segments: delete removes them by time and size, compact "
                       "keeps the last record of each key. Both may be given; with neither, records stay "
                       "for ever."),
    _key("compression.gzip.level", _I, "-1", "compression.gzip.level", 1, 9, exception=-1,
         documentation="How hard gzip tries where compression.type is gzip: 1 to 9, or -1 for its own "
                       "default."),
    _key("compression.lz4.level", _I, "9", "compression.lz4.level", 1, 17,
         documentation="How hard lz4 tries where compression.type is lz4: 1 to 17."),
    _key("compression.type", _S, "producer", "compression.type", choices=_CODECS,
         documentation="The codec of batches in the log. producer keeps each as it was sent."),
    _key("compression.zstd.level", _I, "3", "compression.zstd.level", -131072, 22,
         documentation="How hard zstd tries where compression.type is zstd: -131072 to 22."),
    _key("delete.retention.ms", _L, _DAY_MS, "log.cleaner.delete.retention.ms",
         documentation="How long, in ms, a deletion marker stays in a compacted log, so that readers "
                       "from the beginning see it."),
    _key("file.delete.delay.ms", _L, "60000", "log.segment.delete.delay.ms",
         documentation=_KEPT + "files of removed segments go as soon as nobody reads them."),
    _key("flush.messages", _L, _FOREVER, "log.flush.interval.messages", 1,
         documentation=_KEPT + "the broker's property flush says when data is on disk."),
    _key("flush.ms", _L, _FOREVER, "log.flush.interval.ms",
         fallback=("log.flush.scheduler.interval.ms", _FOREVER),
         documentation=_KEPT + "the broker's property flush says when data is on disk."),
    _key("follower.replication.throttled.replicas", _LIST, "",
         documentation=_KEPT + "there are no followers to slow down."),
    _key("index.interval.bytes", _I, "4096", "log.index.interval.bytes", 0, INT32_MAX,
         documentation="About how many bytes of a segment lie between two entries of its offset index."),
    _key("leader.replication.throttled.replicas", _LIST, "",
         documentation=_KEPT + "there are no followers to slow down."),
    _key("local.retention.bytes", _L, "-2", "log.local.retention.bytes", -2,
         documentation=_KEPT + "there is no tiered storage."),
    _key("local.retention.ms", _L, "-2", "log.local.retention.ms", -2,
         documentation=_KEPT + "there is no tiered storage."),
    _key("max.compaction.lag.ms", _L, _FOREVER, "log.cleaner.max.compaction.lag.ms", 1,
         documentation="After how many ms at the latest a record may be compacted, however little there "
                       "is to gain."),
    _key("max.message.bytes", _I, "1048588", "message.max.bytes", 0, INT32_MAX,
         documentation="The largest batch, in bytes as it arrives, that is taken."),
    _key("message.timestamp.after.max.ms", _L, "3600000", "log.message.timestamp.after.max.ms",
         documentation="How many ms a timestamp may be ahead of the broker's clock."),
    _key("message.timestamp.before.max.ms", _L, _FOREVER, "log.message.timestamp.before.max.ms",
         documentation="How many ms a timestamp may be behind the broker's clock."),
    _key("message.timestamp.type", _S, "CreateTime", "log.message.timestamp.type",
         choices=("CreateTime", "LogAppendTime"),
         documentation="Whose clock records carry: the producer's (CreateTime), or the broker's at the "
                       "append (LogAppendTime)."),
    _key("min.cleanable.dirty.ratio", _D, "0.5", "log.cleaner.min.cleanable.ratio", 0, 1,
         documentation="Which part of a compacted log must be uncompacted before it is worth a run of "
                       "the cleaner."),
    _key("min.compaction.lag.ms", _L, "0", "log.cleaner.min.compaction.lag.ms",
         documentation="For how many ms a record stays as it is before it may be compacted."),
    _key("min.insync.replicas", _I, "1", "min.insync.replicas", 1, INT32_MAX,
         documentation="How many replicas acks=all needs. Every partition here has one; with more than 1 "
                       "such writes are refused."),
    _key("preallocate", _B, "false", "log.preallocate",
         documentation=_KEPT + "segments grow as they are written."),
    _key("remote.log.copy.disable", _B, "false",
         documentation=_KEPT + "there is no tiered storage."),
    _key("remote.log.delete.on.disable", _B, "false",
         documentation=_KEPT + "there is no tiered storage."),
    _key("remote.storage.enable", _B, "false",
         documentation="Tiered storage, which this broker does not have; only false is taken."),
    _key("retention.bytes", _L, "-1", "log.retention.bytes", INT64_MIN,
         documentation="How many bytes a partition may hold before its oldest segments go; a negative "
                       "number is no limit."),
    _key("retention.ms", _L, _WEEK_MS, "log.retention.ms", -1,
         fallback=("log.retention.hours", "168"),
         documentation="For how many ms a record is kept at least; -1 is for ever."),
    # Kafka asks for 1048576 at least; a test of ours that wants many segments would have to write as much.
    _key("segment.bytes", _I, str(2**30), "log.segment.bytes", 14, INT32_MAX,
         documentation="How many bytes a segment may have before the next one begins."),
    _key("segment.index.bytes", _I, str(10 * 2**20), "log.index.size.max.bytes", 4, INT32_MAX,
         documentation="How many bytes a segment's index may have before the next segment begins."),
    _key("segment.jitter.ms", _L, "0", "log.roll.jitter.ms",
         fallback=("log.roll.jitter.hours", "0"),
         documentation=_KEPT + "segments begin when segment.ms says so."),
    _key("segment.ms", _L, _WEEK_MS, "log.roll.ms", 1, fallback=("log.roll.hours", "168"),
         documentation="After how many ms the next segment begins, even if this one is not full."),
    _key("unclean.leader.election.enable", _B, "false", "unclean.leader.election.enable",
         documentation=_KEPT + "a partition has one replica, which is always in sync."),
)
# fmt: on

#: Keys that DescribeConfigs shows only where they are set, as Kafka's internal ones.
HIDDEN_TOPIC_CONFIG = table(
    # Kafka's tests have it because segment.bytes has a lower limit there; it is used instead of that.
    _key(
        "internal.segment.bytes",
        _I,
        "",
        low=14,
        high=INT32_MAX,
        documentation="How many bytes a segment may have; used instead of segment.bytes where it is set.",
    )
)
#: Topic key → its definition.
TOPIC_CONFIG = table(*_KEYS)
#: Broker property → the topic key whose default it sets.
BROKER_SYNONYMS = {key.broker_name: key for key in _KEYS if key.broker_name}

_LIMITS = {SettingType.INT: (INT32_MIN, INT32_MAX), SettingType.LONG: (INT64_MIN, INT64_MAX)}
_REPLICA = re.compile(r"[0-9]+:[0-9]+")


def checked_value(key: Setting, text: str) -> str:
    """``text``, as Kafka would write it, if ``key`` may have it.

    Raises
    ------
    InvalidConfigurationError
        Names the key, the value and what it may be.
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
            bits = 64 if key.type is SettingType.LONG else 32
            raise InvalidTextError(f"must be a whole number of {bits} bits")
        check_limits(key, whole)
        return str(whole)
    if key.type is SettingType.DOUBLE:
        number = read_java_number(text)
        check_limits(key, number)
        return java_double(number)
    if key.type is SettingType.LIST:
        return _checked_list(key, text)
    check_choice(key, text)
    return text


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
