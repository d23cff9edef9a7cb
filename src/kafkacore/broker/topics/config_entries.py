"""Configuration entries of DescribeConfigs and CreateTopics responses, as in Kafka's ``ConfigHelper``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from kafkacore.broker.config.client_metrics_config import CLIENT_METRICS_CONFIG
from kafkacore.broker.config.config_keys import BROKER_KEYS
from kafkacore.broker.config.dynamic_config import ConfigSource, Synonym, is_dynamic, property_values
from kafkacore.broker.config.group_config import GROUP_CONFIG
from kafkacore.broker.config.kept_keys import kept_key, why_kept
from kafkacore.broker.config.listener_keys import LISTENER_KEYS, USER_PREFIX
from kafkacore.broker.config.listeners import Endpoint, is_secret, listener_key
from kafkacore.broker.config.topic_config import (
    BROKER_SYNONYMS,
    HIDDEN_TOPIC_CONFIG,
    TOPIC_CONFIG,
)
from kafkacore.broker.requests.authorization import AuthorizationServices
from kafkacore.settings import SettingType, table

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig
    from kafkacore.broker.config.dynamic_config import DynamicConfigs
    from kafkacore.broker.topics.cluster_state import ClusterState
    from kafkacore.broker.topics.topic_catalog import TopicCatalog


class ConfigServices(AuthorizationServices, Protocol):
    """The parts of the broker that store configuration."""

    @property
    def cluster(self) -> ClusterState: ...

    @property
    def dynamic_configs(self) -> DynamicConfigs: ...

    @property
    def topics(self) -> TopicCatalog: ...


_KEYS: Final = table(*BROKER_KEYS)
#: Keys whose type is a list in Kafka, but not in this broker's own table of keys.
_LISTS: Final = frozenset(
    {"advertised.listeners", "listeners", "log.dirs"}
    | {"group.consumer.assignors", "group.coordinator.rebalance.protocols"}
)


class ConfigEntry(NamedTuple):
    """A configuration key with its effective value."""

    name: str
    value: str | None
    source: ConfigSource
    #: Type of the value, or ``None`` if the type does not exist in Kafka.
    type: SettingType | None
    read_only: bool
    #: All values that are set for the key, in order of precedence.
    synonyms: tuple[Synonym, ...]
    documentation: str | None
    #: Whether the value is a secret, which is never returned.
    is_sensitive: bool = False


def topic_entries(
    configs: Mapping[str, str], services: ConfigServices, node_id: int
) -> Iterator[ConfigEntry]:
    """Return an entry for every setting of a topic.

    ``configs`` are the values that are set for the topic. The other values come from the broker settings of
    the node ``node_id``, or are the defaults.
    """
    hidden = [key for key in HIDDEN_TOPIC_CONFIG.values() if key.name in configs]
    for key in (*TOPIC_CONFIG.values(), *hidden):
        given = []
        if key.name in configs:
            given.append(Synonym(key.name, configs[key.name], ConfigSource.TOPIC))
        if key.broker_name:
            given += services.dynamic_configs.synonyms(key.broker_name, node_id)
        value, source = (given[0].value, given[0].source) if given else (key.default, ConfigSource.DEFAULT)
        yield ConfigEntry(key.name, value, source, key.type, False, tuple(given), key.documentation)


def group_entries(
    configs: Mapping[str, str], services: ConfigServices, node_id: int
) -> Iterator[ConfigEntry]:
    """Return the entries of all group keys. ``configs`` are the values that are set for the group."""
    for key in GROUP_CONFIG.values():
        given = []
        if key.name in configs:
            given.append(Synonym(key.name, configs[key.name], ConfigSource.GROUP))
        if key.broker_name:
            given += services.dynamic_configs.synonyms(key.broker_name, node_id)
        if not given or given[-1].source is not ConfigSource.DEFAULT:
            given.append(Synonym(key.broker_name or key.name, key.default, ConfigSource.DEFAULT))
        value, source = given[0].value, given[0].source
        yield ConfigEntry(key.name, value, source, key.type, False, tuple(given), key.documentation)


def client_metrics_entries(configs: Mapping[str, str]) -> Iterator[ConfigEntry]:
    """Return the entries of all keys of a client metrics subscription, which has the values ``configs``."""
    for key in CLIENT_METRICS_CONFIG.values():
        value, source = key.default, ConfigSource.DEFAULT
        given: tuple[Synonym, ...] = ()
        if key.name in configs:
            value, source = configs[key.name], ConfigSource.CLIENT_METRICS
            given = (Synonym(key.name, value, source),)
        yield ConfigEntry(key.name, value, source, key.type, False, given, key.documentation)


def logger_entries(levels: Mapping[str, str]) -> Iterator[ConfigEntry]:
    """Return the entries of all loggers. The value of an entry is the level that applies to the logger."""
    for name, level in levels.items():
        yield ConfigEntry(name, level, ConfigSource.BROKER_LOGGER, None, False, (), None)


def broker_entries(services: ConfigServices, node_id: int) -> Iterator[ConfigEntry]:
    """Return the entries of all broker properties, including the properties that set topic defaults."""
    config = services.dynamic_configs.current
    values = property_values(config) | {"node.id": str(node_id)}
    node = services.cluster.node(node_id)
    assert node is not None, "the node that received the request is up"
    values |= {
        "broker.rack": node.rack,
        "advertised.listeners": ",".join(
            str(Endpoint(each.name, each.advertised_host, each.advertised_port)) for each in node.listeners
        ),
        "listeners": ",".join(str(Endpoint(each.name, each.host, each.port)) for each in node.listeners),
    }
    values |= dict.fromkeys(BROKER_SYNONYMS)
    values |= _listener_values(config)
    for node_or_all in (None, node_id):
        given_at_run_time = services.dynamic_configs.of(node_or_all)
        values |= {name: text for name, text in given_at_run_time.items() if kept_key(name)}
    for name, value in sorted(values.items()):
        given = services.dynamic_configs.synonyms(name, node_id)
        if name in BROKER_SYNONYMS:
            value = given[0].value if given else None
        elif value is not None and (not given or given[0].value != value):
            given.insert(0, Synonym(name, value, ConfigSource.STATIC_BROKER))
        source = given[0].source if given else ConfigSource.DEFAULT
        kind, documentation = property_type(name), _documentation(name)
        is_fixed, is_sensitive = not is_dynamic(name), is_secret(name)
        yield ConfigEntry(name, value, source, kind, is_fixed, tuple(given), documentation, is_sensitive)


def _listener_values(config: BrokerConfig) -> dict[str, str | None]:
    """Return the listener properties with their values or defaults, without secrets."""
    values = {name: key.default for name, key in LISTENER_KEYS.items() if name not in _KEYS}
    for name, value in config.listener_properties.items():
        values[name] = None if is_secret(name) else str(value)
    return values


def default_entries(services: ConfigServices) -> Iterator[ConfigEntry]:
    """Return the values that were set at run time for all brokers (broker resource with an empty name)."""
    for name, value in services.dynamic_configs.of(None).items():
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER
        given = (Synonym(name, value, source),)
        yield ConfigEntry(name, value, source, property_type(name), False, given, _documentation(name))


def property_type(name: str) -> SettingType:
    """Return the type of a broker property."""
    kept = kept_key(name)
    if kept is not None:
        return kept.type
    if name in BROKER_SYNONYMS:
        return BROKER_SYNONYMS[name].type
    if name.startswith(USER_PREFIX):
        return SettingType.PASSWORD
    of_listener = listener_key(name) if name not in _KEYS else None
    if of_listener is not None:
        return of_listener.type
    return SettingType.LIST if name in _LISTS else _KEYS[name].type


def _documentation(name: str) -> str:
    if kept_key(name) is not None:
        return why_kept(name)
    if name.startswith(USER_PREFIX):
        return "Password of the user whose name follows the prefix."
    of_listener = listener_key(name) if name not in _KEYS else None
    if of_listener is not None:
        return of_listener.documentation
    if name in BROKER_SYNONYMS:
        return BROKER_SYNONYMS[name].broker_documentation
    return _KEYS[name].documentation
