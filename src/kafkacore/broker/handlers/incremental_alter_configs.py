"""IncrementalAlterConfigs: keys set, deleted, appended to and subtracted from (KIP-339).

Versions 0 to 1, resources topic and broker. What is changed is on disk and in force when the answer leaves.
Gaps: of a broker's properties those can be changed that DescribeConfigs does not tell as read-only, for a
single broker only on the first node of a cluster of virtual ones; no loggers, groups or client metrics; no
alter.config.policy.
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
