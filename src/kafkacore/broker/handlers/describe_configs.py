"""DescribeConfigs: what is configured, where each value comes from.

Versions 1 to 4, resources topic and broker. Gaps: no documentation texts; nothing can be changed at run
time, so every broker property is read-only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kafkacore.broker.config import BrokerConfig
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.request import ApiHandler, BrokerServices, Request
from kafkacore.broker.topic_config import TOPIC_CONFIG, ConfigType
from kafkacore.errors import InvalidRequestError, UnknownTopicOrPartitionError
from kafkacore.protocol.generated.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse

RESOURCE_TOPIC, RESOURCE_BROKER = 2, 4
SOURCE_TOPIC, SOURCE_STATIC_BROKER, SOURCE_DEFAULT = 1, 4, 5

_Result = DescribeConfigsResponse.DescribeConfigsResult
_Config = DescribeConfigsResponse.DescribeConfigsResourceResult
_Synonym = DescribeConfigsResponse.DescribeConfigsSynonym


class ConfigEntry(NamedTuple):
    """One value in force; ``synonyms`` are all given for it, (name, value, source), strongest first."""

    name: str
    value: str
    source: int
    type: ConfigType
    read_only: bool
    synonyms: tuple[tuple[str, str, int], ...]


def topic_entries(configs: Mapping[str, str], broker: BrokerConfig) -> Iterator[ConfigEntry]:
    """Every key of a topic that sets ``configs`` itself."""
    for key in TOPIC_CONFIG.values():
        given = []
        if key.name in configs:
            given.append((key.name, configs[key.name], SOURCE_TOPIC))
        if broker.log_defaults.get(key.name, key.default) != key.default:
            given.append((key.broker_name, broker.log_defaults[key.name], SOURCE_STATIC_BROKER))
        given.append((key.broker_name, key.default, SOURCE_DEFAULT))
        _, value, source = given[0]
        yield ConfigEntry(key.name, value, source, key.type, False, tuple(given))


def broker_entries(services: BrokerServices) -> Iterator[ConfigEntry]:
    """Every property of this broker, those that set topics' defaults included."""
    config = services.config
    node = services.cluster.nodes()[0]
    listener = f"PLAINTEXT://{node.host}:{node.port}"
    values: list[tuple[str, str, ConfigType]] = [
        ("advertised.listeners", listener, ConfigType.STRING),
        ("auto.create.topics.enable", _text(config.auto_create_topics_enable), ConfigType.BOOLEAN),
        ("connections.max.idle.ms", _text(config.connections_max_idle_ms), ConfigType.LONG),
        ("delete.topic.enable", _text(config.delete_topic_enable), ConfigType.BOOLEAN),
        ("fetch.max.bytes", _text(config.fetch_max_bytes), ConfigType.INT),
        ("listeners", f"PLAINTEXT://{config.host}:{services.listener_port}", ConfigType.STRING),
        ("log.dirs", str(config.data_dir), ConfigType.STRING),
        ("max.connections", _text(config.max_connections), ConfigType.INT),
        ("node.id", _text(config.node_id), ConfigType.INT),
        ("num.partitions", _text(config.num_partitions), ConfigType.INT),
        ("socket.request.max.bytes", _text(config.socket_request_max_bytes), ConfigType.INT),
    ]
    for key in TOPIC_CONFIG.values():
        values.append((key.broker_name, config.log_defaults.get(key.name, key.default), key.type))
    for name, value, kind in values:
        yield ConfigEntry(
            name, value, SOURCE_STATIC_BROKER, kind, True, ((name, value, SOURCE_STATIC_BROKER),)
        )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def handle(request: Request, services: BrokerServices) -> Any:
    message = request.message
    return DescribeConfigsResponse(
        results=[_describe(asked, message.include_synonyms, services) for asked in message.resources]
    )


def _describe(asked: Any, include_synonyms: bool, services: BrokerServices) -> Any:
    try:
        entries = _entries(asked, services)
    except Exception as error:  # noqa: BLE001 - one resource's failure is its own; error_code logs surprises
        return _Result(
            error_code=error_code(error),
            error_message=error_message(error),
            resource_type=asked.resource_type,
            resource_name=asked.resource_name,
        )
    # Null, and an empty list too, ask for every key.
    wanted = set(asked.configuration_keys or ())
    return _Result(
        error_message=None,
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
        configs=[
            _Config(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.source,
                is_sensitive=False,
                config_type=int(entry.type),
                documentation=None,
                synonyms=[_Synonym(name=n, value=v, source=s) for n, v, s in entry.synonyms]
                if include_synonyms
                else [],
            )
            for entry in entries
            if not wanted or entry.name in wanted
        ],
    )


def _entries(asked: Any, services: BrokerServices) -> Iterator[ConfigEntry]:
    if asked.resource_type == RESOURCE_TOPIC:
        topic = services.topics.get(asked.resource_name)
        if topic is None:
            raise UnknownTopicOrPartitionError(f"Topic '{asked.resource_name}' does not exist.")
        return topic_entries(topic.configs, services.config)
    if asked.resource_type == RESOURCE_BROKER:
        if asked.resource_name not in ("", str(services.config.node_id)):
            raise InvalidRequestError(
                f"Unexpected broker id, expected {services.config.node_id} or empty string, "
                f"but received {asked.resource_name}"
            )
        return broker_entries(services)
    raise InvalidRequestError(f"Unsupported resource type: {asked.resource_type}")


HANDLER = ApiHandler(DescribeConfigsRequest, 1, 4, handle)
