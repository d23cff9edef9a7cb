"""What DescribeConfigs and CreateTopics tell of topics' and brokers' configuration, key by key.

A topic's or a broker's configuration in; name, value, type, source and all values given for it out. Does not
know: requests. Source of the rules: Kafka's ``ConfigHelper``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkacore.broker.config_docs import DEFAULT_DOCS, TOPIC_DOCS
from kafkacore.broker.config_keys import BROKER_KEYS
from kafkacore.broker.dynamic_config import DYNAMIC_NAMES, ConfigSource, Synonym, property_values
from kafkacore.broker.topic_config import BROKER_SYNONYMS, TOPIC_CONFIG, ConfigType

if TYPE_CHECKING:
    from kafkacore.broker.request import BrokerServices

_KEYS: Final = {key.name: key for key in BROKER_KEYS}
#: Kafka takes several of them, this broker one.
_LISTS: Final = frozenset({"advertised.listeners", "listeners", "log.dirs"})


class ConfigEntry(NamedTuple):
    """One value in force; ``synonyms`` are all given for it, strongest first."""

    name: str
    value: str | None
    source: ConfigSource
    type: ConfigType
    read_only: bool
    synonyms: tuple[Synonym, ...]
    documentation: str | None


def topic_entries(
    configs: Mapping[str, str], services: BrokerServices, node_id: int
) -> Iterator[ConfigEntry]:
    """Every key of a topic that sets ``configs`` itself, as ``node_id`` sees it."""
    for key in TOPIC_CONFIG.values():
        given = []
        if key.name in configs:
            given.append(Synonym(key.name, configs[key.name], ConfigSource.TOPIC))
        if key.broker_name:
            given += services.dynamic_configs.synonyms(key.broker_name, node_id)
        value, source = (given[0].value, given[0].source) if given else (key.default, ConfigSource.DEFAULT)
        yield ConfigEntry(key.name, value, source, key.type, False, tuple(given), TOPIC_DOCS[key.name])


def broker_entries(services: BrokerServices, node_id: int) -> Iterator[ConfigEntry]:
    """Every property of a broker, those that set topics' defaults included."""
    config = services.dynamic_configs.current
    values = property_values(config) | {"node.id": str(node_id)}
    node = services.cluster.node(node_id)
    assert node is not None, "the node that was asked is up"
    port = services.listener_port if node_id == config.node_id else node.port
    values |= {
        "broker.rack": node.rack,
        "advertised.listeners": f"PLAINTEXT://{node.host}:{node.port}",
        "listeners": f"PLAINTEXT://{config.host}:{port}",
    }
    values |= dict.fromkeys(BROKER_SYNONYMS)
    for name, value in sorted(values.items()):
        given = services.dynamic_configs.synonyms(name, node_id)
        if name in BROKER_SYNONYMS:
            value = given[0].value if given else None
        elif value is not None and (not given or given[0].value != value):
            given.insert(0, Synonym(name, value, ConfigSource.STATIC_BROKER))
        source = given[0].source if given else ConfigSource.DEFAULT
        read_only = name not in DYNAMIC_NAMES
        kind, documentation = property_type(name), _documentation(name)
        yield ConfigEntry(name, value, source, kind, read_only, tuple(given), documentation)


def default_entries(services: BrokerServices) -> Iterator[ConfigEntry]:
    """What has been given for all brokers at run time (a broker resource without a name)."""
    for name, value in services.dynamic_configs.of(None).items():
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER
        given = (Synonym(name, value, source),)
        yield ConfigEntry(name, value, source, property_type(name), False, given, _documentation(name))


def property_type(name: str) -> ConfigType:
    """How the value of a broker's property is to be read."""
    if name in BROKER_SYNONYMS:
        return BROKER_SYNONYMS[name].type
    return ConfigType.LIST if name in _LISTS else _KEYS[name].type


def _documentation(name: str) -> str:
    return DEFAULT_DOCS.get(name) or _KEYS[name].documentation
