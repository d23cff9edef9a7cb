"""DescribeConfigs: return settings with their values, sources and documentation.

Versions 1 to 4, for topics, brokers, groups, client metrics and broker loggers. A broker resource without a
name stands for the dynamic settings of all brokers. Values of secret settings are never returned.

A resource that occurs several times gets one result with all requested settings: one result takes kilobytes,
and a request could repeat a resource 100,000 times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafkacore.access_control import ACLOperation
from kafkacore.broker.config import topic_names
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.handlers.services import AnsweredLater, ApiHandler, ConfigHandlerServices, Request
from kafkacore.broker.requests.authorization import require_configs
from kafkacore.broker.topics.broker_loggers import check_node
from kafkacore.broker.topics.config_changes import ResourceType, broker_node
from kafkacore.broker.topics.config_entries import (
    ConfigEntry,
    broker_entries,
    client_metrics_entries,
    default_entries,
    group_entries,
    logger_entries,
    topic_entries,
)
from kafkacore.errors import InvalidRequestError, UnknownTopicOrPartitionError
from kafkacore.protocol.generated.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse

_Resource = DescribeConfigsRequest.DescribeConfigsResource
_Result = DescribeConfigsResponse.DescribeConfigsResult
_Config = DescribeConfigsResponse.DescribeConfigsResourceResult
_Synonym = DescribeConfigsResponse.DescribeConfigsSynonym


def handle(
    request: Request[DescribeConfigsRequest], services: ConfigHandlerServices
) -> DescribeConfigsResponse | AnsweredLater:
    return DescribeConfigsResponse(
        results=[
            _describe(requested, wanted, request, services)
            for requested, wanted in _by_resource(request.message.resources).values()
        ]
    )


def _by_resource(resources: Iterable[_Resource]) -> dict[tuple[int, str], tuple[_Resource, set[str]]]:
    """Return each resource once with its requested settings; an empty set stands for all settings."""
    found: dict[tuple[int, str], tuple[_Resource, set[str]]] = {}
    for requested in resources:
        # A null list and an empty list both request every setting.
        wanted = set(requested.configuration_keys or ())
        place = (requested.resource_type, requested.resource_name)
        if place in found:
            before = found[place][1]
            wanted = before | wanted if before and wanted else set()
        found[place] = (requested, wanted)
    return found


def _describe(
    requested: _Resource, wanted: set[str], request: Request, services: ConfigHandlerServices
) -> _Result:
    describe = ACLOperation.DESCRIBE_CONFIGS
    try:
        require_configs(request, services, describe, requested.resource_type, requested.resource_name)
        entries = _entries(requested, request.node_id, services)
    except Exception as error:  # noqa: BLE001 - fails this resource only; error_code logs bugs
        return _Result(
            error_code=error_code(error),
            error_message=error_message(error),
            resource_type=requested.resource_type,
            resource_name=requested.resource_name,
        )
    message = request.message
    return _Result(
        error_message=None,
        resource_type=requested.resource_type,
        resource_name=requested.resource_name,
        configs=[
            _Config(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=int(entry.source),
                is_sensitive=entry.is_sensitive,
                config_type=int(entry.type or 0),
                documentation=entry.documentation if message.include_documentation else None,
                synonyms=[_Synonym(name=n, value=v, source=int(s)) for n, v, s in entry.synonyms]
                if message.include_synonyms
                else [],
            )
            for entry in entries
            if not wanted or entry.name in wanted
        ],
    )


def _entries(requested: _Resource, node_id: int, services: ConfigHandlerServices) -> Iterator[ConfigEntry]:
    if requested.resource_type == ResourceType.TOPIC:
        topic_names.validate(requested.resource_name)
        topic = services.topics.get(requested.resource_name)
        if topic is None:
            raise UnknownTopicOrPartitionError(f"Topic '{requested.resource_name}' does not exist.")
        return topic_entries(topic.configs, services, node_id)
    name, configs = requested.resource_name, services.metadata.configs
    if requested.resource_type == ResourceType.GROUP:
        if not name:
            raise InvalidRequestError("Group name must not be empty")
        return group_entries(configs.of(ResourceType.GROUP, name), services, node_id)
    if requested.resource_type == ResourceType.CLIENT_METRICS:
        if not name:
            raise InvalidRequestError("Client metrics subscription name must not be empty")
        return client_metrics_entries(configs.of(ResourceType.CLIENT_METRICS, name))
    if requested.resource_type == ResourceType.BROKER_LOGGER:
        if not name:
            raise InvalidRequestError("Broker id must not be empty")
        check_node(name, node_id)
        return logger_entries(services.loggers.levels())
    node = broker_node(requested.resource_type, name, node_id)
    return default_entries(services) if node is None else broker_entries(services, node)


HANDLER = ApiHandler(DescribeConfigsRequest, 1, 4, handle)
