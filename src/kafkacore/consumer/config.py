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
    Setting,
    at_least,
    boolean,
    no_effect,
    one_of,
    text_or_none,
)
from kafkacore.client.config import resolve as resolve_settings
from kafkacore.errors import KafkaConfigurationError
from kafkacore.record import DEFAULT_MAX_DECOMPRESSED_SIZE

_ISOLATION_LEVELS = ("read_uncommitted", "read_committed")
_OLD_RESETS = {"smallest": "earliest", "largest": "latest"}


def _offset_reset(name: str, value: Any) -> Any:
    return one_of("earliest", "latest", "none")(name, _OLD_RESETS.get(value, value))


def _timeout(name: str, value: Any) -> Any:
    # -1 is how kafka-python says "for ever".
    return at_least(0)(name, math.inf if value == -1 else value)


# fmt: off
#: Name → setting; times in milliseconds, sizes in bytes.
CONSUMER_SETTINGS: dict[str, Setting] = {
    "group_id":                          Setting(None, text_or_none),
    "group_instance_id":                 Setting(None, text_or_none),
    "key_deserializer":                  Setting(None),
    "value_deserializer":                Setting(None),
    "auto_offset_reset":                 Setting("latest", _offset_reset),
    "isolation_level":                   Setting("read_uncommitted", one_of(*_ISOLATION_LEVELS)),
    "fetch_min_bytes":                   Setting(1, at_least(0)),
    "fetch_max_bytes":                   Setting(52_428_800, at_least(1)),
    "fetch_max_wait_ms":                 Setting(500, at_least(0)),
    "max_partition_fetch_bytes":         Setting(1_048_576, at_least(1)),
    "max_poll_records":                  Setting(500, at_least(1)),
    "consumer_timeout_ms":               Setting(math.inf, _timeout),
    "check_crcs":                        Setting(True, boolean),
    # Ours: of one batch, so that a small response cannot fill the memory.
    "max_decompressed_size":             Setting(DEFAULT_MAX_DECOMPRESSED_SIZE, at_least(1)),
    "enable_incremental_fetch_sessions": Setting(True, boolean),
    "exclude_internal_topics":           Setting(True, boolean),
    "allow_auto_create_topics":          Setting(True, boolean),
    "client_rack":                       Setting("", text_or_none),
    # Of a group's members; accepted, and without meaning before there are groups.
    "enable_auto_commit":                Setting(True, no_effect),
    "auto_commit_interval_ms":           Setting(5000, no_effect),
    "default_offset_commit_callback":    Setting(None, no_effect),
    "partition_assignment_strategy":     Setting(None, no_effect),
    "max_poll_interval_ms":              Setting(300_000, no_effect),
    "session_timeout_ms":                Setting(45_000, no_effect),
    "heartbeat_interval_ms":             Setting(3000, no_effect),
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
    if config["group_instance_id"] is not None and config["group_id"] is None:
        raise KafkaConfigurationError("group_instance_id needs a group_id")
    # A response holds more than its records, and at least one batch however large.
    config["receive_message_max_bytes"] = max(
        config["receive_message_max_bytes"], config["fetch_max_bytes"] + config["max_partition_fetch_bytes"]
    )
    return config
