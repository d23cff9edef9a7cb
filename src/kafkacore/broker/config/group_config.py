"""The settings of a group, with Kafka's names, types, defaults and limits, and the check of their values.

The table follows Kafka's ``GroupConfig``. Settings of share and streams groups belong to protocols that this
broker does not serve: it checks, stores and shows them, so that tools written for Apache Kafka work.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafkacore.broker.config.group_limits import (
    HEARTBEAT_INTERVAL,
    SESSION_TIMEOUT,
    bounds_of_consumer_groups,
)
from kafkacore.broker.config.topic_config import checked_value
from kafkacore.errors import InvalidConfigurationError, InvalidRequestError
from kafkacore.settings import SettingType, table
from kafkacore.settings.setting import Setting
from kafkacore.structs import INT32_MAX

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig

_AUTO_OFFSET_RESET: Final = "share.auto.offset.reset"
_BY_DURATION: Final = re.compile(
    r"by_duration:P(?=\d|T)(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+([.,]\d{0,9})?S)?)?", re.ASCII | re.IGNORECASE
)
_WHY: Final = {
    "share": "share groups are not served",
    "streams": "streams groups are not served",
}


@dataclass(frozen=True, slots=True)
class GroupSetting(Setting):
    """A setting of a group. Its default is Kafka's, as text.

    Parameters
    ----------
    broker_name:
        Kafka's broker setting for the default of all groups; empty if only a group can set it.
    least, most:
        Minimum and maximum of the value; ``None`` for no limit. In Kafka, broker settings limit the value.
        The limits here are Kafka's defaults of these broker settings. They apply to settings of share and
        streams groups. Settings of consumer groups have the limits of the broker's configuration.
    least_name, most_name:
        Names of these broker settings, for error messages.
    """

    default: str = ""
    broker_name: str = ""
    least: int | None = None
    most: int | None = None
    least_name: str = ""
    most_name: str = ""


def _number(
    name: str,
    default: int,
    least: int | None,
    most: int | None,
    about: str,
    *,
    most_name: str = "",
    low: int = 0,
) -> GroupSetting:
    protocol, _, rest = name.partition(".")
    return GroupSetting(
        name,
        SettingType.INT,
        str(default),
        _documentation(protocol, about),
        low,
        INT32_MAX,
        broker_name=f"group.{name}",
        least=least,
        most=most,
        least_name=f"group.{protocol}.min.{rest}",
        most_name=most_name or f"group.{protocol}.max.{rest}",
    )


def _choice(
    name: str, kind: SettingType, default: str, about: str, choices: tuple[str, ...] = ()
) -> GroupSetting:
    return GroupSetting(name, kind, default, _documentation(name.partition(".")[0], about), choices=choices)


def _documentation(protocol: str, about: str) -> str:
    why = _WHY.get(protocol)
    return about if why is None else f"{about} Accepted and stored, but has no effect on this broker: {why}."


def _timing(protocol: str) -> tuple[GroupSetting, ...]:
    """Return the settings that every group protocol with heartbeats has."""
    return (
        _number(
            f"{protocol}.assignment.interval.ms", 1000, 0, 15_000,
            "Minimum time in milliseconds between two assignments of the group.",
        ),
        _number(
            f"{protocol}.heartbeat.interval.ms", 5000, 5000, 15_000,
            "Time in milliseconds between two heartbeats of a member.", low=1,
        ),
        _number(
            f"{protocol}.session.timeout.ms", 45_000, 45_000, 60_000,
            "Time in milliseconds without a heartbeat after which a member has failed.", low=1,
        ),
    )  # fmt: skip


# fmt: off
#: Settings of groups by name. In Kafka, the session timeout must be longer than the heartbeat interval. For
#: share and streams groups, the limits of the settings already ensure this.
GROUP_CONFIG: Final = table(
    *_timing("consumer"),
    *_timing("share"),
    _choice(
        _AUTO_OFFSET_RESET, SettingType.STRING, "latest",
        "Where a share group starts: `earliest`, `latest`, or `by_duration:` and an ISO 8601 duration.",
    ),
    _number(
        "share.delivery.count.limit", 5, 2, 10, "Maximum number of times that a record is delivered.", low=1
    ),
    _choice(
        "share.isolation.level", SettingType.STRING, "read_uncommitted",
        "Whether records of aborted transactions are delivered.", ("read_committed", "read_uncommitted"),
    ),
    _number(
        "share.partition.max.record.locks", 2000, 100, 4000,
        "Maximum number of records of a partition that are locked at the same time.", low=1,
    ),
    _number(
        "share.record.lock.duration.ms", 30_000, 15_000, 60_000,
        "Time in milliseconds for which a record is locked for a member.", low=1,
    ),
    _choice(
        "share.renew.acknowledge.enable", SettingType.BOOLEAN, "true",
        "Whether a member may renew the lock of a record.",
    ),
    *_timing("streams"),
    _number(
        "streams.initial.rebalance.delay.ms", 3000, None, None,
        "Time in milliseconds that a new group waits for more members.",
    ),
    _number(
        "streams.num.standby.replicas", 0, None, 2, "Number of standby replicas of each task.",
        most_name="group.streams.max.standby.replicas",
    ),
)
# fmt: on


def checked_group_configs(name: str, configs: Mapping[str, str], broker: BrokerConfig) -> dict[str, str]:
    """Check the settings given for a group and return them in Kafka's notation.

    Parameters
    ----------
    name:
        Name of the group.
    configs:
        All settings of the group.
    broker:
        The configuration of the broker, whose limits apply to settings of consumer groups.

    Raises
    ------
    InvalidRequestError
        The group has no name.
    InvalidConfigurationError
        A setting is unknown or its value is invalid. The message names the first such setting.
    """
    if not name:
        raise InvalidRequestError("Default group resources are not allowed.")
    for key in configs:
        if key not in GROUP_CONFIG:
            raise InvalidConfigurationError(f"Unknown group config name: {key}")
    bounds = bounds_of_consumer_groups(broker)
    checked = {}
    for key, text in configs.items():
        setting = GROUP_CONFIG[key]
        _, least, most = bounds.get(key, (None, setting.least, setting.most))
        checked[key] = _checked(setting, text, least, most)
    session_ms, heartbeat_ms = (
        int(checked.get(key, bounds[key].default)) for key in (SESSION_TIMEOUT, HEARTBEAT_INTERVAL)
    )
    if session_ms <= heartbeat_ms:
        raise InvalidConfigurationError(f"{SESSION_TIMEOUT} must be greater than {HEARTBEAT_INTERVAL}")
    return checked


def _checked(key: GroupSetting, text: str, least: int | None, most: int | None) -> str:
    value = checked_value(key, text)
    if key.name == _AUTO_OFFSET_RESET:
        if value not in ("earliest", "latest") and _BY_DURATION.fullmatch(value) is None:
            raise InvalidConfigurationError(
                f"Invalid value {value} for configuration {key.name}: must be earliest, latest, or "
                f"by_duration: and an ISO 8601 duration such as PT1H"
            )
    elif least is not None and int(value) < least:
        raise InvalidConfigurationError(f"{key.name} must be greater than or equal to {key.least_name}")
    elif most is not None and int(value) > most:
        raise InvalidConfigurationError(f"{key.name} must be less than or equal to {key.most_name}")
    return value
