"""ListConfigResources: return the resources that have a configuration (KIP-1000, KIP-1142).

Versions 0 to 1. Version 0 lists the subscriptions of client metrics only.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkacore.access_control import ACLOperation
from kafkacore.broker.handlers.services import ApiHandler, ConfigResourceServices, Request
from kafkacore.broker.requests.authorization import allowed_on_cluster
from kafkacore.broker.topics.config_changes import ResourceType
from kafkacore.errors import ClusterAuthorizationFailedError, UnsupportedVersionError
from kafkacore.protocol.generated.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_Resource = ListConfigResourcesResponse.ConfigResource


def handle(
    request: Request[ListConfigResourcesRequest], services: ConfigResourceServices
) -> ListConfigResourcesResponse:
    if not allowed_on_cluster(request, services, ACLOperation.DESCRIBE_CONFIGS):
        return ListConfigResourcesResponse(error_code=ClusterAuthorizationFailedError.errno)
    wanted = set(request.message.resource_types) or set(ResourceType)
    if request.version == 0:
        wanted = {ResourceType.CLIENT_METRICS}
    if wanted - set(ResourceType):
        return ListConfigResourcesResponse(error_code=UnsupportedVersionError.errno)
    return ListConfigResourcesResponse(
        config_resources=[
            _Resource(resource_name=name, resource_type=int(kind))
            for kind in sorted(ResourceType, reverse=True)
            if kind in wanted
            for name in _names(kind, services)
        ]
    )


def _names(kind: ResourceType, services: ConfigResourceServices) -> Iterable[str]:
    if kind is ResourceType.TOPIC:
        return services.topics.names()
    if kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return [str(node.node_id) for node in services.cluster.nodes()]
    return services.metadata.configs.names(kind)


HANDLER = ApiHandler(ListConfigResourcesRequest, 0, 1, handle)
