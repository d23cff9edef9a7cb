"""Broker settings that Apache Kafka 4.3 can change at run time and that have no effect on this broker.

AlterConfigs accepts them so that tools written for Apache Kafka work. The broker checks their type and limits
and keeps them across restarts; DescribeConfigs documents that they have no effect. A test compares names and
types with Apache Kafka.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kafkacore.broker.config.kafka_keys import CLIENT_OR_JAVA, WITHOUT_EFFECT
from kafkacore.broker.config.listener_keys import LISTENER_PREFIX
from kafkacore.broker.config.topic_config import (
    TopicSetting,
    checked_value,
)
from kafkacore.settings import SettingType
from kafkacore.settings.texts import INT32_MIN, INT64_MIN
from kafkacore.structs import INT32_MAX, INT64_MAX

_B, _S, _I, _L = SettingType.BOOLEAN, SettingType.STRING, SettingType.INT, SettingType.LONG
_D, _SHORT, _LIST = SettingType.DOUBLE, SettingType.SHORT, SettingType.LIST
_NUMBERS: Final = (_I, _L, _D)


def _key(name: str, kind: SettingType, low: float = 0, high: float | None = None) -> TopicSetting:
    if high is None:
        high = INT32_MAX if kind is _I else INT64_MAX
    return TopicSetting(name, kind, low=low, high=high)


_MIN_BUFFER_BYTES: Final = 512 * 1024
_FOR_ALL_OR_ONE: Final = (
    _key("background.threads", _I, 1),
    _key("config.providers", _LIST),
    _key("follower.fetch.last.tiered.offset.enable", _B),
    _key("follower.replication.throttled.rate", _L),
    _key("group.coordinator.cached.buffer.max.bytes", _I, _MIN_BUFFER_BYTES),
    _key("group.share.assignment.interval.ms", _I),
    _key("group.streams.assignment.interval.ms", _I),
    _key("leader.replication.throttled.rate", _L),
    _key("log.cleaner.threads", _I),
    _key("metric.reporters", _LIST),
    _key("num.io.threads", _I, 1),
    _key("num.network.threads", _I, 1),
    _key("num.recovery.threads.per.data.dir", _I, 1),
    _key("num.replica.fetchers", _I, INT32_MIN),
    _key("remote.fetch.max.wait.ms", _I, 1),
    _key("remote.list.offsets.request.timeout.ms", _L, 1),
    _key("remote.log.index.file.cache.total.size.bytes", _L, 1),
    _key("remote.log.manager.copier.thread.pool.size", _I, 1),
    _key("remote.log.manager.copy.max.bytes.per.second", _L, 1),
    _key("remote.log.manager.expiration.thread.pool.size", _I, 1),
    _key("remote.log.manager.fetch.max.bytes.per.second", _L, 1),
    _key("remote.log.manager.follower.thread.pool.size", _I, 1),
    _key("remote.log.reader.threads", _I, 1),
    _key("replica.alter.log.dirs.io.max.bytes.per.second", _L),
    _key("share.coordinator.cached.buffer.max.bytes", _I, _MIN_BUFFER_BYTES),
)
#: Limits that accept every number, for settings whose limits Apache Kafka does not check at run time.
_ANY: Final = (float("-inf"), float("inf"))
_ANY_SHORT: Final = (-(2**15), 2**15 - 1)
#: Settings for one broker or, with a listener's prefix, for one listener. They cannot be set for all
#: brokers.
_FOR_ONE: Final = (
    _key("cordoned.log.dirs", _LIST),
    _key("sasl.kerberos.kinit.cmd", _S),
    _key("sasl.kerberos.min.time.before.relogin", _L, INT64_MIN),
    _key("sasl.kerberos.ticket.renew.jitter", _D, *_ANY),
    _key("sasl.kerberos.ticket.renew.window.factor", _D, *_ANY),
    _key("sasl.login.refresh.buffer.seconds", _SHORT, *_ANY_SHORT),
    _key("sasl.login.refresh.min.period.seconds", _SHORT, *_ANY_SHORT),
    _key("sasl.login.refresh.window.factor", _D, *_ANY),
    _key("sasl.login.refresh.window.jitter", _D, *_ANY),
    _key("sasl.mechanism.inter.broker.protocol", _S),
    _key("ssl.endpoint.identification.algorithm", _S),
    _key("ssl.keymanager.algorithm", _S),
    _key("ssl.protocol", _S),
    _key("ssl.secure.random.implementation", _S),
    _key("ssl.trustmanager.algorithm", _S),
)
KEPT_KEYS: Final = {key.name: key for key in (*_FOR_ALL_OR_ONE, *_FOR_ONE)}
_NAMES_FOR_ONE: Final = frozenset(key.name for key in _FOR_ONE)
#: Settings for all brokers that may also have a listener's prefix.
_OF_LISTENERS: Final = frozenset({"num.network.threads"})


def kept_key(name: str) -> TopicSetting | None:
    """Return a setting without effect, or ``None`` for other names. The name may have a listener prefix."""
    bare = _bare(name)
    return KEPT_KEYS.get(bare) if bare == name or bare in _NAMES_FOR_ONE | _OF_LISTENERS else None


def is_for_one_broker(name: str) -> bool:
    """Return whether a setting without effect can be set only per broker, not for all brokers at once."""
    return _bare(name) in _NAMES_FOR_ONE


def checked_kept(name: str, text: str) -> str:
    """Return the value of a setting that the broker accepts but ignores, in Kafka's notation.

    Raises
    ------
    InvalidConfigurationError
        The value has the wrong type or is out of range.
    """
    key = kept_key(name)
    assert key is not None, name
    if key.type in (*_NUMBERS, _B, _SHORT):
        return checked_value(replace(key, name=name, type=_I if key.type is _SHORT else key.type), text)
    return text.strip()


def why_kept(name: str) -> str:
    """Return the documentation of a setting without effect."""
    bare = _bare(name)
    client = CLIENT_OR_JAVA if bare in _NAMES_FOR_ONE else ""
    reason = WITHOUT_EFFECT.get(bare) or client or "this broker does not replicate partitions"
    return f"Accepted and stored, but has no effect on this broker: {reason}."


def _bare(name: str) -> str:
    """Return the name without a listener prefix."""
    if not name.startswith(LISTENER_PREFIX):
        return name
    return name.removeprefix(LISTENER_PREFIX).partition(".")[2]
