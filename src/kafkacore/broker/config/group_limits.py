"""The settings of consumer groups (KIP-848) as the group coordinator uses them, and their checks.

The rules are those of Kafka's ``GroupCoordinatorConfig``, ``GroupConfig`` and ``GroupConfigManager``. A group
may override some settings of the broker; the broker's limits also apply to values that were stored before
the limits changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkacore.broker.log_lines import NameLogger
from kafkacore.errors import KafkaConfigurationError

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig

logger = NameLogger(__name__)

#: Assignors of consumer groups.
ASSIGNOR_NAMES: Final = ("uniform", "range")
_PACKAGE: Final = "org.apache.kafka.coordinator.group.assignor."
#: Name of the assignor for each name that ``group.consumer.assignors`` may contain.
_ASSIGNORS: Final = {
    **{name: name for name in ASSIGNOR_NAMES},
    **{f"{_PACKAGE}{name.title()}Assignor": name for name in ASSIGNOR_NAMES},
}
CLASSIC, CONSUMER = "classic", "consumer"
#: Protocols that Apache Kafka 4.3 knows. This broker serves the first two protocols.
_PROTOCOLS: Final = (CLASSIC, CONSUMER, "share", "streams")
#: Values of ``group.consumer.migration.policy``.
MIGRATION_POLICIES: Final = ("bidirectional", "upgrade", "downgrade", "disabled")
#: First level of the feature ``group.version`` with consumer groups.
MIN_GROUP_VERSION: Final = 1

SESSION_TIMEOUT: Final = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL: Final = "consumer.assignment.interval.ms"


class Bounds(NamedTuple):
    """The broker's default and limits for a setting of consumer groups."""

    default: int
    least: int
    most: int


def bounds_of_consumer_groups(config: BrokerConfig) -> dict[str, Bounds]:
    """Return the broker's default and limits of each setting that a consumer group can override."""
    return {
        SESSION_TIMEOUT: Bounds(
            config.group_consumer_session_timeout_ms,
            config.group_consumer_min_session_timeout_ms,
            config.group_consumer_max_session_timeout_ms,
        ),
        HEARTBEAT_INTERVAL: Bounds(
            config.group_consumer_heartbeat_interval_ms,
            config.group_consumer_min_heartbeat_interval_ms,
            config.group_consumer_max_heartbeat_interval_ms,
        ),
        ASSIGNMENT_INTERVAL: Bounds(
            config.group_consumer_assignment_interval_ms,
            config.group_consumer_min_assignment_interval_ms,
            config.group_consumer_max_assignment_interval_ms,
        ),
    }


# ---- Checks of the broker's settings -------------------------------------------------------------------


def checked_assignors(text: str) -> str:
    """Return the value of ``group.consumer.assignors`` without blanks.

    Raises
    ------
    KafkaConfigurationError
        The list is empty, names an assignor twice, or names an assignor that this broker does not have.
    """
    names = _checked_list("group.consumer.assignors", text, tuple(_ASSIGNORS))
    assignors = [_ASSIGNORS[name] for name in names]
    if len(set(assignors)) < len(assignors):
        raise KafkaConfigurationError(f"group.consumer.assignors={text} must not name an assignor twice")
    return ",".join(names)


def checked_protocols(text: str) -> str:
    """Return the value of ``group.coordinator.rebalance.protocols`` without blanks.

    Raises
    ------
    KafkaConfigurationError
        The list contains duplicates or an unknown protocol, or does not contain ``classic``.
    """
    names = _checked_list("group.coordinator.rebalance.protocols", text, _PROTOCOLS)
    if CLASSIC not in names:
        raise KafkaConfigurationError(
            f"group.coordinator.rebalance.protocols={text} must include {CLASSIC}: the classic protocol "
            "cannot be disabled"
        )
    return ",".join(names)


def _checked_list(name: str, text: str, valid: tuple[str, ...]) -> list[str]:
    parts = [part.strip() for part in text.split(",")]
    unknown = [part for part in parts if part not in valid]
    if unknown:
        raise KafkaConfigurationError(f"{name}={text} must be a list of {', '.join(valid)}")
    if len(set(parts)) < len(parts):
        raise KafkaConfigurationError(f"{name}={text} must not have duplicates")
    return parts


def check_consumer_groups(config: BrokerConfig) -> None:
    """Check the settings of consumer groups against each other.

    Raises
    ------
    KafkaConfigurationError
        A default is outside its limits, or the session timeout is not longer than the heartbeat interval.
    """
    for setting, (default, least, most) in bounds_of_consumer_groups(config).items():
        rest = setting.removeprefix("consumer.")
        name, low, high = f"group.{setting}", f"group.consumer.min.{rest}", f"group.consumer.max.{rest}"
        if most < least:
            raise KafkaConfigurationError(f"{high}={most} must be greater than or equal to {low}={least}")
        if default < least:
            raise KafkaConfigurationError(f"{name}={default} must be greater than or equal to {low}={least}")
        if default > most:
            raise KafkaConfigurationError(f"{name}={default} must be less than or equal to {high}={most}")
    heartbeat_ms = config.group_consumer_heartbeat_interval_ms
    session_ms = config.group_consumer_session_timeout_ms
    if heartbeat_ms >= session_ms:
        raise KafkaConfigurationError(
            f"group.consumer.heartbeat.interval.ms={heartbeat_ms} must be less than "
            f"group.consumer.session.timeout.ms={session_ms}"
        )


# ---- Values for the coordinator ------------------------------------------------------------------------


def allows_consumer_protocol(config: BrokerConfig) -> bool:
    """Return whether ``group.coordinator.rebalance.protocols`` contains the protocol of KIP-848."""
    return CONSUMER in config.group_coordinator_rebalance_protocols.split(",")


def consumer_assignors(config: BrokerConfig) -> list[str]:
    """Return the names of the assignors of consumer groups. The first assignor is the default."""
    return [_ASSIGNORS[name] for name in config.group_consumer_assignors.split(",")]


class GroupTimes(NamedTuple):
    """Timeouts and intervals of a consumer group.

    Attributes
    ----------
    session_timeout_ms:
        Time without a heartbeat after which a member is removed.
    heartbeat_interval_ms:
        Time between two heartbeats of a member.
    assignment_interval_ms:
        Minimum time between two assignments.
    """

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int


class GroupLimits:
    """Timeouts and intervals of each consumer group. Only the network thread may use it.

    Parameters
    ----------
    config:
        The configuration of the broker. Set the attribute ``config`` when the configuration changes.

    Attributes
    ----------
    default:
        Times of the groups without own settings.
    by_group:
        Times of the groups with own settings.
    """

    def __init__(self, config: BrokerConfig) -> None:
        self.by_group: dict[str, GroupTimes] = {}
        #: The own settings of each group, within the limits of the broker when they were set.
        self._own: dict[str, dict[str, int]] = {}
        self.config = config

    @property
    def config(self) -> BrokerConfig:
        return self._config

    @config.setter
    def config(self, config: BrokerConfig) -> None:
        self._config = config
        self.default = self._times({})
        for group_id, own in self._own.items():
            self.by_group[group_id] = self._times(own)

    def of(self, group_id: str) -> GroupTimes:
        """Return the times of a group."""
        return self.by_group.get(group_id, self.default)

    def _times(self, own: Mapping[str, int]) -> GroupTimes:
        config = self._config
        return GroupTimes(
            own.get(SESSION_TIMEOUT, config.group_consumer_session_timeout_ms),
            own.get(HEARTBEAT_INTERVAL, config.group_consumer_heartbeat_interval_ms),
            own.get(ASSIGNMENT_INTERVAL, config.group_consumer_assignment_interval_ms),
        )

    def update(self, group_id: str, name: str, text: str | None) -> None:
        """Apply a setting of a group, or remove it if ``text`` is ``None``.

        A value outside the limits of the broker is replaced by the limit. Settings of other group protocols
        are ignored.

        Raises
        ------
        ValueError
            The text is not a number.
        """
        bounds = bounds_of_consumer_groups(self._config)
        if name not in bounds:
            return
        own = {other: value for other, value in self._own.get(group_id, {}).items() if other != name}
        if text is not None:
            own[name] = _limited(group_id, name, int(text), bounds[name])
        if own:
            self._own[group_id] = own
            self.by_group[group_id] = self._times(own)
        else:
            self._own.pop(group_id, None)
            self.by_group.pop(group_id, None)


def _limited(group_id: str, name: str, given: int, bounds: Bounds) -> int:
    used = min(max(given, bounds.least), bounds.most)
    if used != given:
        logger.warning(
            "group %s: %s=%d is outside the broker's limits %d to %d: using %d",
            group_id,
            name,
            given,
            bounds.least,
            bounds.most,
            used,
        )
    return used
