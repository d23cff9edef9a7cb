"""The settings of a consumer, with their defaults and checks.

Names and defaults are kafka-python's. ``client.config`` has the settings that all clients share; this module
adds the settings of a consumer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import IntEnum
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
from kafkacore.structs import INT32_MAX, MAX_TOPIC_NAME_LENGTH, IsolationLevel

_STRATEGY = (RangePartitionAssignor, RoundRobinPartitionAssignor)
_OLD_RESETS = {"smallest": "earliest", "largest": "latest"}


@checks("str | None", "`earliest`, `latest`, `none`, or `by_duration:` with a duration such as `PT1H`")
def _offset_reset(name: str, value: object) -> str:
    text = _OLD_RESETS.get(value, value) if isinstance(value, str) else "none" if value is None else None
    try:
        return OffsetResetStrategy.parse(text or repr(value)).name
    except ValueError as error:
        allowed = "'earliest', 'latest', 'none', or 'by_duration:' with a duration such as PT1H"
        raise refuse(name, value, f"{allowed} ({error})") from None


@checks("float", "at least 0; -1 for no limit", None)
def _timeout(name: str, value: object) -> float:
    # kafka-python uses -1 for no limit.
    return at_least(0)(name, math.inf if value == -1 else value)


@checks("str | None", "not blank")
def _group_id(name: str, value: object) -> str | None:
    group = text_or_none(name, value)
    if group is not None and not group.strip():
        raise refuse(name, value, "None or the name of a group")
    return group


@checks("str | None", "the same rules as for a topic name")
def _instance_id(name: str, value: object) -> str | None:
    if value is None:
        return None
    try:
        if not isinstance(value, str):
            raise TypeError
        ensure_valid_topic_name(value)
    except (TypeError, ValueError):
        # Kafka applies the rule for topic names to instance ids too.
        raise refuse(
            name, value, f"None, or 1 to {MAX_TOPIC_NAME_LENGTH} of a-z, A-Z, 0-9, '.', '_', '-'"
        ) from None
    return value


@checks("float", "at least 1", SettingType.INT)
def _int32_ms(name: str, value: object) -> float:
    """Check that a number of milliseconds fits the int32 field of a request."""
    number = at_least(1)(name, value)
    if number > INT32_MAX:
        raise refuse(name, value, f"at most {INT32_MAX}")
    return number


@checks("Callable[..., object] | None", kind=SettingType.CLASS)
def _callback(name: str, value: object) -> object:
    if value is not None and not callable(value):
        raise refuse(name, value, "None, or a function that takes the offsets and the error")
    return value


@checks("object", "one or more assignors, each a class, an object or a name", SettingType.LIST)
def _strategy(name: str, value: object) -> object:
    # Create the assignors only to check the value, because each consumer creates its own.
    try:
        assignors_for(value)
    except KafkaConfigurationError as error:
        raise KafkaConfigurationError(f"{name}={value!r}: {error}") from None
    return value


#: Group protocol → settings that cannot be set with this protocol, each with the reason.
_WITHOUT_MEANING: Final = {
    "consumer": {
        "session_timeout_ms": "the broker decides (group.consumer.session.timeout.ms)",
        "heartbeat_interval_ms": "the broker decides (group.consumer.heartbeat.interval.ms)",
        "partition_assignment_strategy": "the broker assigns the partitions; use group_remote_assignor",
    },
    "classic": {"group_remote_assignor": "a member of the group assigns the partitions"},
}


def _refuse_settings_without_meaning(given: Mapping[str, object], protocol: str) -> None:
    for name, reason in _WITHOUT_MEANING[protocol].items():
        if given.get(name) not in (None, ""):
            raise KafkaConfigurationError(
                f"{name} cannot be set with group_protocol={protocol!r}: {reason}. Leave the setting out"
            )


@checks('Literal["classic", "consumer"]')
def _group_protocol(name: str, value: object) -> str:
    return one_of("classic", "consumer")(name, value.lower() if isinstance(value, str) else value)


_ISOLATION_NAMES: Final = one_of(*(level.name.lower() for level in IsolationLevel))


@checks(f"IsolationLevel | {_ISOLATION_NAMES.annotation}")
def _isolation(name: str, value: object) -> str:
    # Compare by value: kafka-python's IsolationLevel is another class, but its members are the same integers.
    if isinstance(value, IntEnum) and value in tuple(IsolationLevel):
        return IsolationLevel(value).name.lower()
    return _ISOLATION_NAMES(name, value)


_INTERCEPTORS: Final = objects_with("on_consume", "on_commit", "close")
_DESERIALIZER: Final = anything("SupportsDeserialize | Callable[..., object] | None")

# fmt: off
#: The settings that only a consumer has.
CONSUMER_SETTINGS: Final = table(
    setting("group_id", None, _group_id,
            "Name of the consumer group. All consumers with the same name share the partitions of "
            "their topics, and each continues at the offsets that the group has committed. With "
            "`None` the consumer belongs to no group: it reads all partitions and cannot commit "
            "offsets."),
    setting("group_instance_id", None, _instance_id,
            "Name that identifies this member of the group across restarts (static membership, "
            "KIP-345). A member that returns within `session_timeout_ms` gets the same partitions "
            "without a rebalance. Each member needs a name of its own."),
    setting("key_deserializer", None, _DESERIALIZER,
            "Function or `Deserializer` that converts the bytes of a key to an object. By default "
            "keys are bytes."),
    setting("value_deserializer", None, _DESERIALIZER,
            "Function or `Deserializer` that converts the bytes of a value to an object. By default "
            "values are bytes."),
    setting("auto_offset_reset", "latest", _offset_reset,
            "Where to start in a partition that has no committed offset, or whose offset has been "
            "deleted from the log: `earliest` is the first record, `latest` is the end, "
            "`by_duration:PT1H` is one hour ago, and `none` raises an error. It has no effect "
            "where a valid offset is committed."),
    setting("isolation_level", "read_uncommitted", _isolation,
            "Whether to return records of transactions that are open or aborted. `read_committed` "
            "returns only records of committed transactions and records outside of transactions, "
            "and reads up to the first open transaction."),
    setting("fetch_min_bytes", 1, int32(0),
            "Minimum amount of data, in bytes, that a broker collects before it answers a fetch, "
            "unless `fetch_max_wait_ms` passes first. A larger value costs latency and saves "
            "requests."),
    setting("fetch_max_bytes", 52_428_800, int32(1),
            "Maximum number of record bytes in the response to one fetch. A first batch that is larger is "
            "returned nevertheless, so that the consumer can make progress."),
    setting("fetch_max_wait_ms", 500, int32(0),
            "How long a broker waits for `fetch_min_bytes`, in milliseconds. The time must be less than "
            "`request_timeout_ms`."),
    setting("busy_poll_ms", 0, finite(0),
            "How long `poll()` looks for responses without sleeping, in milliseconds, before it waits for "
            "them. A record that arrives in this time is returned sooner by the time that a thread needs to "
            "wake up, some 0.05 ms. In return the consumer uses up to a whole processor core."),
    setting("max_partition_fetch_bytes", 1_048_576, int32(1),
            "Maximum number of record bytes of one partition in the response to one fetch. A first batch "
            "that is larger is returned nevertheless. To load large partitions faster, raise this limit "
            "together with `fetch_max_bytes`."),
    setting("max_poll_records", 500, int32(1),
            "Maximum number of records that one call of `poll()` returns. This limit does not change how "
            "much is fetched: the consumer keeps the other records for the next call. Use a lower value if "
            "the program cannot process so many records within `max_poll_interval_ms`."),
    setting("consumer_timeout_ms", math.inf, _timeout,
            "How long a `for` loop over the consumer waits for the next record, in milliseconds, "
            "before the loop ends. By default the loop waits without limit."),
    setting("check_crcs", True, boolean,
            "Whether to verify the checksum of each batch. Without this check the consumer may return "
            "records that were damaged on the disk or in the network."),
    setting("max_decompressed_size", DEFAULT_MAX_DECOMPRESSED_SIZE, at_least(1),
            "Largest size of a batch after decompression, in bytes. A larger batch raises "
            "`DecompressedTooLargeError`, so that a small response cannot exhaust the memory."),
    setting("enable_incremental_fetch_sessions", True, boolean,
            "Whether a fetch request names only the partitions that have changed since the "
            "previous request (KIP-227). This saves bandwidth when the consumer reads many partitions."),
    setting("exclude_internal_topics", True, boolean,
            "Whether a subscription by pattern leaves out Kafka's internal topics, such as "
            "`__consumer_offsets`."),
    setting("allow_auto_create_topics", True, boolean,
            "Whether the broker may create a topic that the consumer subscribes to and that does "
            "not exist. The broker's `auto.create.topics.enable` must allow it too."),
    setting("client_rack", "", text_or_none,
            "Rack or availability zone of the consumer, such as `eu-west-1a`. The consumer then "
            "fetches from a replica in the same rack if the brokers have a replica selector "
            "(KIP-392)."),
    setting("client_id", None, text_or_none,
            "Name of this consumer in the logs, metrics and quotas of the brokers. By default the "
            "client generates a name with a number."),
    setting("metric_group_prefix", "consumer", text_or_none,
            "First word of the names of metric groups: `consumer` gives "
            "`consumer-fetch-manager-metrics`."),
    setting("interceptors", (), _INTERCEPTORS,
            "Objects whose methods are called with the records before `poll()` returns them, and "
            "with the offsets after a commit (KIP-42). See `ConsumerInterceptor`."),
    setting("enable_auto_commit", True, boolean,
            "Whether the consumer commits its positions by itself: every "
            "`auto_commit_interval_ms`, in `close()`, and before it gives up partitions. Records "
            "that `poll()` has returned may be committed before the program has processed them. If no "
            "record may be lost, commit offsets yourself. Without a `group_id` nothing is committed."),
    setting("auto_commit_interval_ms", 5000, finite(0),
            "Time between two automatic commits, in milliseconds, if `enable_auto_commit` is "
            "true. After a crash, records read since the last commit may be read again."),
    setting("default_offset_commit_callback", None, _callback,
            "Function that is called after each automatic commit, and after `commit_async()` "
            "without a callback, with the offsets and the error (`None` on success)."),
    setting("group_protocol", "classic", _group_protocol,
            "Protocol of group membership. With `classic` a member of the group assigns the partitions. "
            "With `consumer` the broker assigns them (KIP-848). This protocol requires Apache Kafka 4.0 or "
            "newer."),
    setting("group_remote_assignor", None, text_or_none,
            "Name of the broker's assignor, such as `uniform` or `range`, with "
            "`group_protocol=\"consumer\"`. With `None` the broker uses the first assignor of its "
            "`group.consumer.assignors`."),
    setting("partition_assignment_strategy", _STRATEGY, _strategy,
            "How the group assigns partitions to its members: one or several assignors, each a class, an "
            "object or a name (`range`, `roundrobin`, `sticky`, `cooperative-sticky`). The group "
            "uses the first assignor that all members support. It cannot be set with "
            "`group_protocol=\"consumer\"`: use `group_remote_assignor`."),
    setting("max_poll_interval_ms", 300_000, _int32_ms,
            "Longest time between two calls of `poll()`, in milliseconds. After that time the "
            "consumer leaves the group, and its partitions are assigned to other members. If processing "
            "takes longer, raise this time, lower `max_poll_records`, or use `hold()`."),
    setting("session_timeout_ms", 45_000, _int32_ms,
            "How long the group waits for a heartbeat, in milliseconds, before it considers the "
            "member dead and assigns its partitions to other members. It must be larger than "
            "`heartbeat_interval_ms`, and within the broker's `group.min.session.timeout.ms` and "
            "`group.max.session.timeout.ms`. It cannot be set with `group_protocol=\"consumer\"`: the "
            "broker's `group.consumer.session.timeout.ms` applies."),
    setting("heartbeat_interval_ms", 3000, _int32_ms,
            "Time between two heartbeats, in milliseconds. A heartbeat shows that the member is "
            "alive, and its response announces rebalances. The interval should be at most a third of "
            "`session_timeout_ms`. Heartbeats do not depend on calls of `poll()` and "
            "do not need the GIL. The interval cannot be set with `group_protocol=\"consumer\"`: the "
            "broker's `group.consumer.heartbeat.interval.ms` applies."),
)
# fmt: on
DEFAULTS: Final = defaults(CONSUMER_SETTINGS)


def resolve(given: Mapping[str, object]) -> Config:
    """Check the settings in ``given``, add the defaults, and adjust settings that depend on others.

    Raises
    ------
    KafkaConfigurationError
        If a setting is invalid. The message contains the name and value of the setting, and the valid values.
    """
    config = resolve_settings(CONSUMER_SETTINGS, given)
    _refuse_settings_without_meaning(given, config["group_protocol"])
    if not config["fetch_max_wait_ms"] < config["request_timeout_ms"]:
        raise KafkaConfigurationError(
            f"request_timeout_ms={config['request_timeout_ms']} must be larger than "
            f"fetch_max_wait_ms={config['fetch_max_wait_ms']}: a broker may delay a fetch response that long"
        )
    if not config["request_timeout_ms"] < config["connections_max_idle_ms"]:
        raise KafkaConfigurationError(
            f"connections_max_idle_ms={config['connections_max_idle_ms']} must be larger than "
            f"request_timeout_ms={config['request_timeout_ms']}: a connection is idle while it waits for "
            "a response"
        )
    if config["group_id"] is None:
        if config["group_instance_id"] is not None:
            raise KafkaConfigurationError("group_instance_id needs a group_id")
        # Without a group, offsets cannot be committed.
        config["enable_auto_commit"] = False
    if not config["heartbeat_interval_ms"] < config["session_timeout_ms"]:
        raise KafkaConfigurationError(
            f"session_timeout_ms={config['session_timeout_ms']} must be larger than "
            f"heartbeat_interval_ms={config['heartbeat_interval_ms']}, preferably three times as large: the "
            "session expires if no heartbeat arrives within session_timeout_ms"
        )
    # Raise receive_message_max_bytes if necessary: a response contains more than records, and its first batch
    # may exceed the fetch limits.
    config["receive_message_max_bytes"] = max(
        config["receive_message_max_bytes"], config["fetch_max_bytes"] + config["max_partition_fetch_bytes"]
    )
    return config
