"""The consumer's settings: keyword arguments in, a checked dictionary out.

Names and defaults are kafka-python's. What all clients share is in ``client.config``; here is what only a
consumer has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from kafkacore.client.config import (
    CLIENT_SETTINGS,
    Check,
    Setting,
    at_least,
    boolean,
    finite,
    one_of,
    refuse,
    text_or_none,
    whole,
)
from kafkacore.client.config import resolve as resolve_settings
from kafkacore.client.interceptors import objects_with
from kafkacore.consumer.offset_reset import OffsetResetStrategy
from kafkacore.consumer.subscription_state import ensure_valid_topic_name
from kafkacore.coordinator.assignors import assignors_for
from kafkacore.coordinator.assignors.range import RangePartitionAssignor
from kafkacore.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafkacore.errors import KafkaConfigurationError
from kafkacore.record import DEFAULT_MAX_DECOMPRESSED_SIZE
from kafkacore.structs import INT32_MAX, MAX_TOPIC_NAME_LENGTH

_ISOLATION_LEVELS = ("read_uncommitted", "read_committed")
_INTERCEPTOR_METHODS = ("on_consume", "on_commit", "close")
_STRATEGY = (RangePartitionAssignor, RoundRobinPartitionAssignor)
_OLD_RESETS = {"smallest": "earliest", "largest": "latest"}


def _offset_reset(name: str, value: Any) -> str:
    text = _OLD_RESETS.get(value, value) if isinstance(value, str) else "none" if value is None else None
    try:
        return OffsetResetStrategy.parse(text or repr(value)).name
    except ValueError as error:
        allowed = "'earliest', 'latest', 'none' or 'by_duration:' with a duration as PT1H"
        raise refuse(name, value, f"{allowed} ({error})") from None


def _int32(least: int) -> Check:
    """A whole number that a request can carry."""
    checked = whole(least)

    def check(name: str, value: Any) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if checked(name, value) > INT32_MAX:
            raise refuse(name, value, f"at most {INT32_MAX}")
        return int(value)

    return check


def _timeout(name: str, value: Any) -> Any:
    # -1 is how kafka-python says "for ever".
    return at_least(0)(name, math.inf if value == -1 else value)


def _group_id(name: str, value: Any) -> Any:
    text_or_none(name, value)
    if value is not None and not value.strip():
        raise refuse(name, value, "None or the name of a group")
    return value


def _instance_id(name: str, value: Any) -> Any:
    if value is None:
        return None
    try:
        ensure_valid_topic_name(value)
    except (TypeError, ValueError):
        # Kafka's rule for both is the same.
        raise refuse(
            name, value, f"None, or 1 to {MAX_TOPIC_NAME_LENGTH} of a-z, A-Z, 0-9, '.', '_', '-'"
        ) from None
    return value


def _int32_ms(name: str, value: Any) -> Any:
    """Milliseconds that a request can carry."""
    if at_least(1)(name, value) > INT32_MAX:
        raise refuse(name, value, f"at most {INT32_MAX}")
    return value


def _callback(name: str, value: Any) -> Any:
    if value is not None and not callable(value):
        raise refuse(name, value, "None, or a function of the offsets and the error")
    return value


def _strategy(name: str, value: Any) -> Any:
    # Tried only: each consumer has assignors of its own.
    try:
        assignors_for(value)
    except KafkaConfigurationError as error:
        raise KafkaConfigurationError(f"{name}={value!r}: {error}") from None
    return value


def _group_protocol(name: str, value: Any) -> Any:
    if isinstance(value, str) and value.lower() == "consumer":
        raise KafkaConfigurationError(
            f"{name}={value!r}: kafkacore does not have the protocol of KIP-848 yet; leave it out, the "
            "classic one is understood by every broker"
        )
    return one_of("classic")(name, value.lower() if isinstance(value, str) else value)


# fmt: off
#: Name → setting; times in milliseconds, sizes in bytes.
CONSUMER_SETTINGS: dict[str, Setting] = {
    "group_id":                          Setting(None, _group_id),
    "group_instance_id":                 Setting(None, _instance_id),  # KIP-345
    "key_deserializer":                  Setting(None),
    "value_deserializer":                Setting(None),
    "auto_offset_reset":                 Setting("latest", _offset_reset),
    "isolation_level":                   Setting("read_uncommitted", one_of(*_ISOLATION_LEVELS)),
    "fetch_min_bytes":                   Setting(1, _int32(0)),
    "fetch_max_bytes":                   Setting(52_428_800, _int32(1)),
    "fetch_max_wait_ms":                 Setting(500, _int32(0)),
    "max_partition_fetch_bytes":         Setting(1_048_576, _int32(1)),
    "max_poll_records":                  Setting(500, _int32(1)),
    "consumer_timeout_ms":               Setting(math.inf, _timeout),
    "check_crcs":                        Setting(True, boolean),
    # Ours: of one batch, so that a small response cannot fill the memory.
    "max_decompressed_size":             Setting(DEFAULT_MAX_DECOMPRESSED_SIZE, at_least(1)),
    "enable_incremental_fetch_sessions": Setting(True, boolean),
    "exclude_internal_topics":           Setting(True, boolean),
    "allow_auto_create_topics":          Setting(True, boolean),
    "client_rack":                       Setting("", text_or_none),
    # Made up, and another for each consumer of a process, if none is given.
    "client_id":                         Setting(None, text_or_none),
    "metric_group_prefix":               Setting("consumer", text_or_none),
    "interceptors":                      Setting((), objects_with(*_INTERCEPTOR_METHODS)),  # KIP-42
    # Of a group, and of who commits for one.
    "enable_auto_commit":                Setting(True, boolean),
    "auto_commit_interval_ms":           Setting(5000, finite(0)),
    "default_offset_commit_callback":    Setting(None, _callback),
    "group_protocol":                    Setting("classic", _group_protocol),  # KIP-848
    "partition_assignment_strategy":     Setting(_STRATEGY, _strategy),
    "max_poll_interval_ms":              Setting(300_000, _int32_ms),
    "session_timeout_ms":                Setting(45_000, _int32_ms),
    "heartbeat_interval_ms":             Setting(3000, _int32_ms),
}
# fmt: on
DEFAULTS: dict[str, Any] = {
    name: setting.default for name, setting in (CLIENT_SETTINGS | CONSUMER_SETTINGS).items()
}


def resolve(given: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of a consumer, each checked, and put right where one asks it of another.

    Raises
    ------
    KafkaConfigurationError
        With the name, the value and what it may be.
    """
    config = resolve_settings(CONSUMER_SETTINGS, given)
    if not config["fetch_max_wait_ms"] < config["request_timeout_ms"]:
        raise KafkaConfigurationError(
            f"request_timeout_ms={config['request_timeout_ms']} must be larger than "
            f"fetch_max_wait_ms={config['fetch_max_wait_ms']}: a fetch may wait that long on the broker"
        )
    if not config["request_timeout_ms"] < config["connections_max_idle_ms"]:
        raise KafkaConfigurationError(
            f"connections_max_idle_ms={config['connections_max_idle_ms']} must be larger than "
            f"request_timeout_ms={config['request_timeout_ms']}: a connection that waits is idle"
        )
    if config["group_id"] is None:
        if config["group_instance_id"] is not None:
            raise KafkaConfigurationError("group_instance_id needs a group_id")
        # Nowhere to commit to.
        config["enable_auto_commit"] = False
    if not config["heartbeat_interval_ms"] < config["session_timeout_ms"]:
        raise KafkaConfigurationError(
            f"session_timeout_ms={config['session_timeout_ms']} must be larger than "
            f"heartbeat_interval_ms={config['heartbeat_interval_ms']}, better three times: it ends when no "
            "heartbeat has come"
        )
    # A response holds more than its records, and at least one batch however large.
    config["receive_message_max_bytes"] = max(
        config["receive_message_max_bytes"], config["fetch_max_bytes"] + config["max_partition_fetch_bytes"]
    )
    return config
