"""The consumer's settings: keyword arguments in, a checked dictionary out.

Names and defaults are kafka-python's. What all clients share is in ``client.config``; here is what only a
consumer has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from kafkacore.client.config import defaults
from kafkacore.client.config import resolve as resolve_settings
from kafkacore.consumer.offset_reset import OffsetResetStrategy
from kafkacore.consumer.subscription_state import ensure_valid_topic_name
from kafkacore.coordinator.assignors import assignors_for
from kafkacore.coordinator.assignors.range import RangePartitionAssignor
from kafkacore.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafkacore.errors import KafkaConfigurationError
from kafkacore.record import DEFAULT_MAX_DECOMPRESSED_SIZE
from kafkacore.settings import Config, SettingType, table
from kafkacore.settings.checks import (
    anything,
    at_least,
    boolean,
    checks,
    finite,
    int32,
    objects_with,
    one_of,
    refuse,
    setting,
    text_or_none,
)
from kafkacore.structs import INT32_MAX, MAX_TOPIC_NAME_LENGTH

_STRATEGY = (RangePartitionAssignor, RoundRobinPartitionAssignor)
_OLD_RESETS = {"smallest": "earliest", "largest": "latest"}


@checks("str | None", "`earliest`, `latest`, `none` or `by_duration:` with a duration as `PT1H`")
def _offset_reset(name: str, value: object) -> str:
    text = _OLD_RESETS.get(value, value) if isinstance(value, str) else "none" if value is None else None
    try:
        return OffsetResetStrategy.parse(text or repr(value)).name
    except ValueError as error:
        allowed = "'earliest', 'latest', 'none' or 'by_duration:' with a duration as PT1H"
        raise refuse(name, value, f"{allowed} ({error})") from None


@checks("float", "at least 0; -1 for no limit", None)
def _timeout(name: str, value: object) -> float:
    # -1 is how kafka-python says "for ever".
    return at_least(0)(name, math.inf if value == -1 else value)


@checks("str | None", "not blank")
def _group_id(name: str, value: object) -> str | None:
    group = text_or_none(name, value)
    if group is not None and not group.strip():
        raise refuse(name, value, "None or the name of a group")
    return group


@checks("str | None", "a name as that of a topic")
def _instance_id(name: str, value: object) -> str | None:
    if value is None:
        return None
    try:
        if not isinstance(value, str):
            raise TypeError
        ensure_valid_topic_name(value)
    except (TypeError, ValueError):
        # Kafka's rule for both is the same.
        raise refuse(
            name, value, f"None, or 1 to {MAX_TOPIC_NAME_LENGTH} of a-z, A-Z, 0-9, '.', '_', '-'"
        ) from None
    return value


@checks("float", "at least 1", SettingType.INT)
def _int32_ms(name: str, value: object) -> float:
    """Milliseconds that a request can carry."""
    number = at_least(1)(name, value)
    if number > INT32_MAX:
        raise refuse(name, value, f"at most {INT32_MAX}")
    return number


@checks("Callable[..., object] | None", kind=SettingType.CLASS)
def _callback(name: str, value: object) -> object:
    if value is not None and not callable(value):
        raise refuse(name, value, "None, or a function of the offsets and the error")
    return value


@checks("object", "assignors, by class, object or name: one or several", SettingType.LIST)
def _strategy(name: str, value: object) -> object:
    # Tried only: each consumer has assignors of its own.
    try:
        assignors_for(value)
    except KafkaConfigurationError as error:
        raise KafkaConfigurationError(f"{name}={value!r}: {error}") from None
    return value


@checks('Literal["classic"]')
def _group_protocol(name: str, value: object) -> str:
    if isinstance(value, str) and value.lower() == "consumer":
        raise KafkaConfigurationError(
            f"{name}={value!r}: kafkacore does not have the protocol of KIP-848 yet; leave it out, the "
            "classic one is understood by every broker"
        )
    return one_of("classic")(name, value.lower() if isinstance(value, str) else value)


_ISOLATION: Final = one_of("read_uncommitted", "read_committed")
_INTERCEPTORS: Final = objects_with("on_consume", "on_commit", "close")
_DESERIALIZER: Final = anything("SupportsDeserialize | Callable[..., object] | None")

# fmt: off
#: Times in milliseconds, sizes in bytes.
CONSUMER_SETTINGS: Final = table(
    setting("group_id", None, _group_id,
            "Name of the consumer group; without one no partitions are assigned by a group and no offsets "
            "committed."),
    setting("group_instance_id", None, _instance_id,
            "Name of a static member, which may restart without a rebalance (KIP-345)."),
    setting("key_deserializer", None, _DESERIALIZER,
            "Function of the key's bytes, or `Deserializer`; without one keys are bytes."),
    setting("value_deserializer", None, _DESERIALIZER,
            "Function of the value's bytes, or `Deserializer`; without one values are bytes."),
    setting("auto_offset_reset", "latest", _offset_reset,
            "Where a partition without a valid offset is read from; with `none` an error is raised."),
    setting("isolation_level", "read_uncommitted", _ISOLATION,
            "Whether records of open and aborted transactions are returned."),
    setting("fetch_min_bytes", 1, int32(0), "Bytes that a broker waits for before it answers a fetch."),
    setting("fetch_max_bytes", 52_428_800, int32(1),
            "Most bytes of records in a response, unless the first batch is larger."),
    setting("fetch_max_wait_ms", 500, int32(0), "How long a broker waits for `fetch_min_bytes`."),
    setting("max_partition_fetch_bytes", 1_048_576, int32(1),
            "Most bytes of records of one partition in a response, unless the first batch is larger."),
    setting("max_poll_records", 500, int32(1), "Most records that `poll()` returns."),
    setting("consumer_timeout_ms", math.inf, _timeout,
            "How long iteration waits for a record before it ends."),
    setting("check_crcs", True, boolean, "Whether the checksum of each batch is checked."),
    setting("max_decompressed_size", DEFAULT_MAX_DECOMPRESSED_SIZE, at_least(1),
            "Largest batch after decompression, so that a small response cannot fill the memory."),
    setting("enable_incremental_fetch_sessions", True, boolean,
            "Whether fetches name only the partitions that have changed (KIP-227)."),
    setting("exclude_internal_topics", True, boolean,
            "Whether a pattern leaves out the internal topics of Kafka."),
    setting("allow_auto_create_topics", True, boolean,
            "Whether brokers may create a topic that does not exist."),
    setting("client_rack", "", text_or_none,
            "Rack of the consumer; it fetches from a replica there if there is one (KIP-392)."),
    setting("client_id", None, text_or_none,
            "Name of the consumer in the logs, metrics and quotas of brokers; made up if not given."),
    setting("metric_group_prefix", "consumer", text_or_none, "Prefix of the names of metric groups."),
    setting("interceptors", (), _INTERCEPTORS,
            "Objects that see records before they are returned and offsets once they are committed "
            "(KIP-42)."),
    setting("enable_auto_commit", True, boolean, "Whether positions are committed in the background."),
    setting("auto_commit_interval_ms", 5000, finite(0), "Time between two such commits."),
    setting("default_offset_commit_callback", None, _callback,
            "Called with the offsets and the error, or `None`, after a commit in the background."),
    setting("group_protocol", "classic", _group_protocol,
            "Protocol of the group (KIP-848); only the classic one is supported."),
    setting("partition_assignment_strategy", _STRATEGY, _strategy,
            "How the group divides its partitions, best first."),
    setting("max_poll_interval_ms", 300_000, _int32_ms,
            "Time between two calls of `poll()` after which the consumer leaves its group."),
    setting("session_timeout_ms", 45_000, _int32_ms,
            "Time without a heartbeat after which the group goes on without the member."),
    setting("heartbeat_interval_ms", 3000, _int32_ms, "Time between two heartbeats."),
)
# fmt: on
DEFAULTS: Final = defaults(CONSUMER_SETTINGS)


def resolve(given: Mapping[str, object]) -> Config:
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
