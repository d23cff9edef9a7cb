"""IncrementalAlterConfigs: set, delete, append to and subtract from single settings (KIP-339).

Versions 0 to 1, for topics and brokers. On response, the changes are on disk and in effect. The broker
settings that DescribeConfigs does not return as read-only can be changed. Settings of a single broker can be
changed only on the first virtual node. Loggers, groups, client metrics and ``alter.config.policy`` are not
supported.
"""

from __future__ import annotations

from kafkacore.broker.handlers.alter_configs import answers
from kafkacore.broker.handlers.services import ApiHandler, Request
from kafkacore.broker.requests.authorization import require_configs
from kafkacore.broker.topics.config_changes import Change, Operation, change_configs, check_request
from kafkacore.broker.topics.config_entries import ConfigServices
from kafkacore.protocol.generated.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkacore.structs import ACLOperation


def handle(
    request: Request[IncrementalAlterConfigsRequest], services: ConfigServices
) -> IncrementalAlterConfigsResponse:
    message = request.message

    def alter(resource: IncrementalAlterConfigsRequest.AlterConfigsResource) -> None:
        configs = resource.configs
        missing = [c.name for c in configs if c.value is None and c.config_operation != Operation.DELETE]
        check_request([config.name for config in configs], missing)
        require_configs(
            request, services, ACLOperation.ALTER_CONFIGS, resource.resource_type, resource.resource_name
        )
        change_configs(
            resource.resource_type,
            resource.resource_name,
            [Change(config.name, config.config_operation, config.value) for config in configs],
            validate_only=message.validate_only,
            node_id=request.node_id,
            services=services,
        )

    result_class = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
    return IncrementalAlterConfigsResponse(responses=answers(message.resources, alter, result_class))


HANDLER = ApiHandler(IncrementalAlterConfigsRequest, 0, 1, handle)
