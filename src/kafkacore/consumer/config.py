"""The consumer's settings: keyword arguments in, a checked dictionary out, and the client made of it.

Names and defaults are kafka-python's. What all clients share is in ``client.config``; here is what only a
consumer has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from kafkacore.errors import KafkaConfigurationError

# fmt: off
#: Name → default; times in milliseconds, sizes in bytes.
CONSUMER_DEFAULTS: dict[str, Any] = {
    "group_id": None,
    "group_instance_id": None,
    "key_deserializer": None,
    "value_deserializer": None,
    "enable_incremental_fetch_sessions": True,
    "fetch_max_wait_ms": 500,
    "fetch_min_bytes": 1,
    "fetch_max_bytes": 52_428_800,
    "max_partition_fetch_bytes": 1_048_576,
    "auto_offset_reset": "latest",
    "enable_auto_commit": True,
    "auto_commit_interval_ms": 5000,
    "check_crcs": True,
    "isolation_level": "read_uncommitted",
    "allow_auto_create_topics": True,
    "max_poll_records": 500,
    "max_poll_interval_ms": 300_000,
    "session_timeout_ms": 45_000,
    "heartbeat_interval_ms": 3000,
    "consumer_timeout_ms": math.inf,
    "exclude_internal_topics": True,
    "client_rack": "",
}
# fmt: on

_CHOICES = {
    "auto_offset_reset": ("earliest", "latest", "none"),
    "isolation_level": ("read_uncommitted", "read_committed"),
}
_AT_LEAST = {
    "fetch_max_wait_ms": 0,
    "fetch_min_bytes": 0,
    "fetch_max_bytes": 1,
    "max_partition_fetch_bytes": 1,
    "max_poll_records": 1,
    "consumer_timeout_ms": 0,
}
_OLD_RESETS = {"smallest": "earliest", "largest": "latest"}


def check(config: dict[str, Any]) -> dict[str, Any]:
    """Check the values together, and put right what one asks of another.

    Raises
    ------
    KafkaConfigurationError
        With the name, the value and what it may be.
    """
    config["auto_offset_reset"] = _OLD_RESETS.get(config["auto_offset_reset"], config["auto_offset_reset"])
    for name, choices in _CHOICES.items():
        if config[name] not in choices:
            raise KafkaConfigurationError(f"{name}={config[name]!r}: it must be one of {', '.join(choices)}")
    for name, least in _AT_LEAST.items():
        if config[name] < least:
            raise KafkaConfigurationError(f"{name}={config[name]!r}: it must be at least {least}")
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


def servers_text(config: Mapping[str, Any]) -> str:
    """``bootstrap_servers`` as one text, for messages."""
    servers = config["bootstrap_servers"]
    return servers if isinstance(servers, str) else ",".join(map(str, servers))
