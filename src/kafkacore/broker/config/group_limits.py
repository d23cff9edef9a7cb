"""The settings of consumer groups (KIP-848) as the group coordinator uses them, and their checks.

The rules are those of Kafka's ``GroupCoordinatorConfig``, ``GroupConfig`` and ``GroupConfigManager``. A group
may override some settings of the broker; the broker's limits also apply to values that were stored before
the limits changed.
"""

from __future__ import annotations

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


class GroupLimits:
    """Timeouts and intervals of each consumer group. Only the network thread may use it.

    The values are stored by group, so that a heartbeat needs only one lookup for each value.

    Parameters
    ----------
    config:
        The configuration of the broker. Set the attribute ``config`` when the configuration changes.
    """

    def __init__(self, config: BrokerConfig) -> None:
        self.config = config
        self._sessions_ms: dict[str, int] = {}
        self._heartbeats_ms: dict[str, int] = {}
        self._assignments_ms: dict[str, int] = {}
        self._values: dict[str, dict[str, int]] = {
            SESSION_TIMEOUT: self._sessions_ms,
            HEARTBEAT_INTERVAL: self._heartbeats_ms,
            ASSIGNMENT_INTERVAL: self._assignments_ms,
        }

    def session_timeout_ms(self, group_id: str) -> int:
        """Return the time without a heartbeat after which a member of the group is removed."""
        own_ms = self._sessions_ms.get(group_id)
        return self.config.group_consumer_session_timeout_ms if own_ms is None else own_ms

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """Return the time between two heartbeats of a member of the group."""
        own_ms = self._heartbeats_ms.get(group_id)
        return self.config.group_consumer_heartbeat_interval_ms if own_ms is None else own_ms

    def assignment_interval_ms(self, group_id: str) -> int:
        """Return the minimum time between two assignments of the group."""
        own_ms = self._assignments_ms.get(group_id)
        return self.config.group_consumer_assignment_interval_ms if own_ms is None else own_ms

    def update(self, group_id: str, name: str, text: str | None) -> None:
        """Apply a setting of a group, or remove it if ``text`` is ``None``.

        A value outside the limits of the broker is replaced by the limit. Settings of other group protocols
        are ignored.

        Raises
        ------
        ValueError
            The text is not a number.
        """
        values = self._values.get(name)
        if values is None:
            return
        if text is None:
            values.pop(group_id, None)
            return
        given = int(text)
        _, least, most = bounds_of_consumer_groups(self.config)[name]
        used = min(max(given, least), most)
        if used != given:
            logger.warning(
                "group %s: %s=%d is outside the broker's limits %d to %d: using %d",
                group_id,
                name,
                given,
                least,
                most,
                used,
            )
        values[group_id] = used
