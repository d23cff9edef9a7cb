"""The settings of a subscription of client metrics (KIP-714), and the check of their values.

The table follows Kafka's ``ClientMetricsConfigs``. This broker does not collect metrics of clients: it
checks, stores and shows subscriptions, so that tools written for Apache Kafka work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafkacore.broker.config.patterns import is_pattern
from kafkacore.broker.config.topic_config import TopicSetting, checked_value
from kafkacore.errors import InvalidConfigurationError, InvalidRequestError
from kafkacore.settings import SettingType, table
from kafkacore.settings.texts import INT32_MIN
from kafkacore.structs import INT32_MAX

_NO_EFFECT: Final = "Accepted and stored, but has no effect on this broker: client telemetry is not served."
_MIN_INTERVAL_MS: Final = 100
_MAX_INTERVAL_MS: Final = 3_600_000
#: Properties of a client that ``match`` compares with a regular expression.
_MATCH_NAMES: Final = frozenset(
    {
        "client_id",
        "client_instance_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)

#: Settings of client metrics by name.
CLIENT_METRICS_CONFIG: Final = table(
    TopicSetting(
        "interval.ms",
        SettingType.INT,
        "300000",
        f"Time in milliseconds between two pushes of metrics. {_NO_EFFECT}",
        INT32_MIN,
        INT32_MAX,
    ),
    TopicSetting(
        "match",
        SettingType.LIST,
        "",
        f"Clients that push metrics, as a list of `<property>=<regular expression>`. {_NO_EFFECT}",
    ),
    TopicSetting(
        "metrics",
        SettingType.LIST,
        "",
        f"Prefixes of the names of the metrics to push; `*` for all. {_NO_EFFECT}",
    ),
)


def checked_client_metrics(name: str, configs: Mapping[str, str]) -> dict[str, str]:
    """Check the settings given for a subscription and return them in Kafka's notation.

    Raises
    ------
    InvalidRequestError
        The subscription has no name, a setting is unknown, or the interval is out of range.
    InvalidConfigurationError
        A value has the wrong type, or an item of a list is invalid.
    """
    if not name:
        raise InvalidRequestError("Subscription name can't be empty")
    for key in configs:
        if key not in CLIENT_METRICS_CONFIG:
            raise InvalidRequestError(f"Unknown client metrics configuration: {key}")
    return {key: _checked(key, text) for key, text in configs.items()}


def _checked(key: str, text: str) -> str:
    if key == "interval.ms":
        value = checked_value(CLIENT_METRICS_CONFIG[key], text)
        if not _MIN_INTERVAL_MS <= int(value) <= _MAX_INTERVAL_MS:
            raise InvalidRequestError(
                f"Invalid value {value} for {key}, interval must be between {_MIN_INTERVAL_MS} and "
                f"{_MAX_INTERVAL_MS} (1 hour)"
            )
        return value
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if "" in parts:
        raise InvalidConfigurationError(f"Configuration '{key}' values must not be empty.")
    if key == "match":
        for part in parts:
            _check_match(part)
    return ",".join(dict.fromkeys(parts))


def _check_match(part: str) -> None:
    pieces = part.split("=")
    is_whole = len(pieces) == 2 and bool(pieces[1])
    if not is_whole or pieces[0].strip() not in _MATCH_NAMES or not is_pattern(pieces[1].strip()):
        raise InvalidConfigurationError(f"Illegal client matching pattern: {part}")
