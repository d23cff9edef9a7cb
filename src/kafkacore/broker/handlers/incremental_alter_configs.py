"""IncrementalAlterConfigs: set, delete, append to and subtract from single settings (KIP-339).

Versions 0 to 1, for topics, brokers, groups, client metrics and broker loggers. When the response is sent,
the changes are on disk and in effect; levels of loggers are in effect until the broker stops. A broker
setting can be changed unless DescribeConfigs returns it as read-only. Settings of a single broker can be
changed only on the first virtual node. ``alter.config.policy`` is not supported.
"""

from __future__ import annotations

from kafkacore.access_control import ACLOperation
from kafkacore.broker.handlers.alter_configs import RecordsOfChange, alter_all
from kafkacore.broker.handlers.services import AnsweredLater, ApiHandler, ConfigHandlerServices, Request
from kafkacore.broker.metadata.resource_configs import IN_METADATA_LOG
from kafkacore.broker.requests.authorization import require_configs
from kafkacore.broker.topics.config_changes import (
    Change,
    Operation,
    ResourceType,
    change_configs,
    check_request,
)
from kafkacore.protocol.generated.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def handle(
    request: Request[IncrementalAlterConfigsRequest], services: ConfigHandlerServices
) -> IncrementalAlterConfigsResponse | AnsweredLater:
    message = request.message

    def alter(resource: IncrementalAlterConfigsRequest.AlterConfigsResource) -> RecordsOfChange | None:
        configs, kind, name = resource.configs, resource.resource_type, resource.resource_name
        missing = [c.name for c in configs if c.value is None and c.config_operation != Operation.DELETE]
        check_request([config.name for config in configs], missing)
        require_configs(request, services, ACLOperation.ALTER_CONFIGS, kind, name)
        changes = [Change(config.name, config.config_operation, config.value) for config in configs]
        if kind in IN_METADATA_LOG:
            return lambda: services.metadata.configs.change(kind, name, changes)
        if kind == ResourceType.BROKER_LOGGER:
            services.loggers.alter(name, request.node_id, changes, validate_only=message.validate_only)
            return None
        change_configs(
            kind,
            name,
            changes,
            validate_only=message.validate_only,
            node_id=request.node_id,
            services=services,
        )
        return None

    return alter_all(
        request,
        services,
        message.resources,
        alter,
        IncrementalAlterConfigsResponse.AlterConfigsResourceResponse,
        IncrementalAlterConfigsResponse,
        validate_only=message.validate_only,
    )


HANDLER = ApiHandler(IncrementalAlterConfigsRequest, 0, 1, handle)
