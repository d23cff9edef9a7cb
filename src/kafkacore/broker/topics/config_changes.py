"""Changes of topic and broker configuration, for AlterConfigs and IncrementalAlterConfigs.

The behaviour is that of Kafka's ``ConfigAdminManager``, ``ConfigurationControlManager`` and
``ControllerConfigurationValidator``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkacore.broker.config import topic_names
from kafkacore.broker.config.kept_keys import KEPT_KEYS
from kafkacore.broker.config.topic_config import (
    BROKER_SYNONYMS,
    TOPIC_CONFIG,
    TopicSetting,
    checked_topic_configs,
)
from kafkacore.errors import InvalidConfigurationError, InvalidRequestError, UnknownTopicOrPartitionError
from kafkacore.settings import SettingType

if TYPE_CHECKING:
    from kafkacore.broker.topics.config_entries import ConfigServices


class ResourceType(IntEnum):
    """Resource types of configuration requests, with Kafka's numbers."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Operation(IntEnum):
    """Operations of IncrementalAlterConfigs (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


#: The keys of each resource type that supports appending to lists. Client metrics are not included, because
#: Kafka does not allow appending to their lists.
_KEYS: Final[Mapping[int, Mapping[str, TopicSetting]]] = {
    ResourceType.TOPIC: TOPIC_CONFIG,
    ResourceType.BROKER: BROKER_SYNONYMS | KEPT_KEYS,
}


class Change(NamedTuple):
    """Change of one configuration key. ``operation`` is the value from the request, which may be invalid."""

    name: str
    operation: int
    value: str | None


def check_request(names: Iterable[str], null_names: Iterable[str]) -> None:
    """Check the keys of a request.

    Parameters
    ----------
    names:
        Names of all keys in the request.
    null_names:
        Names of the keys that need a value but have the value null.

    Raises
    ------
    InvalidRequestError
        A key is duplicated, or has no value.
    """
    if any(count > 1 for count in Counter(names).values()):
        raise InvalidRequestError("Error due to duplicate config keys")
    without_value = ", ".join(null_names)
    if without_value:
        raise InvalidRequestError(f"Null value not supported for: {without_value}")


def replace_configs(
    kind: int,
    name: str,
    configs: Mapping[str, str],
    *,
    validate_only: bool,
    node_id: int,
    services: ConfigServices,
) -> None:
    """Replace all configuration values of a resource. The new values are durable and in effect on return.

    Parameters
    ----------
    kind, name:
        Type and name of the resource.
    configs:
        The new values; all other keys get their defaults.
    validate_only:
        Whether to check the values without changing them.
    node_id:
        The node that received the request.
    services:
        Parts of the broker that store configuration.

    Raises
    ------
    InvalidRequestError, InvalidConfigurationError, InvalidTopicError, UnknownTopicOrPartitionError
        The change is invalid, as in Kafka. Nothing has changed.
    """
    if kind == ResourceType.TOPIC:
        _check_topic_name(name)
        checked = checked_topic_configs(configs)
        _check_topic_exists(name, services)
        if not validate_only:
            services.topics.replace_configs(name, checked)
    else:
        node = broker_node(kind, name, node_id)
        services.dynamic_configs.check(node, configs)
        if not validate_only:
            services.dynamic_configs.replace(node, configs)


def change_configs(
    kind: int,
    name: str,
    changes: Iterable[Change],
    *,
    validate_only: bool,
    node_id: int,
    services: ConfigServices,
) -> None:
    """Change individual configuration values of a resource.

    The other parameters and the errors are the same as those of :func:`replace_configs`.
    """
    if kind == ResourceType.TOPIC:
        topic = services.topics.get(name)
        configs = {} if topic is None else dict(topic.configs)
    else:
        configs = dict(services.dynamic_configs.of(broker_node(kind, name, node_id)))
    for change in changes:
        apply_change(change, configs, kind)
    replace_configs(kind, name, configs, validate_only=validate_only, node_id=node_id, services=services)


def apply_change(change: Change, configs: dict[str, str], kind: int) -> None:
    """Apply a change to the values of a resource of the type ``kind``.

    Raises
    ------
    InvalidRequestError, InvalidConfigurationError
        The operation is unknown, or cannot be applied to this key.
    """
    if change.operation == Operation.SET:
        assert change.value is not None, "check_request() has passed"
        configs[change.name] = change.value
    elif change.operation == Operation.DELETE:
        configs.pop(change.name, None)
    elif change.operation in (Operation.APPEND, Operation.SUBTRACT):
        assert change.value is not None, "check_request() has passed"
        key = _KEYS.get(kind, {}).get(change.name)
        if key is None or key.type is not SettingType.LIST:
            verb = Operation(change.operation).name
            raise InvalidConfigurationError(
                f"Can't {verb} to key {change.name} because its type is not LIST."
            )
        parts = [part for part in configs.get(change.name, key.default).split(",") if part]
        given = change.value.split(",")
        if change.operation == Operation.APPEND:
            parts += [part for part in given if part not in parts]
        else:
            parts = [part for part in parts if part not in given]
        configs[change.name] = ",".join(parts)
    else:
        raise InvalidRequestError(f"Unknown operation {change.operation} for {change.name}")


def broker_node(kind: int, name: str, node_id: int) -> int | None:
    """Return the node of a broker resource, or ``None`` for all nodes.

    Raises
    ------
    InvalidRequestError
        The resource type is unknown, or the resource is not the node that received the request.
    """
    if kind != ResourceType.BROKER:
        raise InvalidRequestError(f"Unknown resource type {kind}")
    if not name:
        return None
    try:
        named = int(name)
    except ValueError:
        raise InvalidRequestError(f"Broker id must be an integer, but it is: {name}") from None
    if named != node_id:
        raise InvalidRequestError(
            f"Unexpected broker id {name}: expected {node_id}, or an empty name for all brokers"
        )
    return named


def _check_topic_name(name: str) -> None:
    if not name:
        raise InvalidRequestError("The topic name is empty: there are no defaults for all topics.")
    topic_names.validate(name)


def _check_topic_exists(name: str, services: ConfigServices) -> None:
    if services.topics.get(name) is None:
        raise UnknownTopicOrPartitionError(f"Topic '{name}' does not exist.")
