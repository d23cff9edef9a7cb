"""AlterConfigs: replace the whole configuration of a resource; settings that are not given are reset.

Versions 0 to 2, for topics and brokers. The limitations are those of IncrementalAlterConfigs, which replaces
this API.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.handlers.services import ApiHandler, Request
from kafkacore.broker.requests.authorization import require_configs
from kafkacore.broker.topics.config_changes import check_request, replace_configs
from kafkacore.broker.topics.config_entries import ConfigServices
from kafkacore.errors import InvalidRequestError
from kafkacore.protocol.generated.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from kafkacore.structs import ACLOperation


def handle(request: Request[AlterConfigsRequest], services: ConfigServices) -> AlterConfigsResponse:
    message = request.message

    def alter(resource: AlterConfigsRequest.AlterConfigsResource) -> None:
        configs = resource.configs
        check_request([c.name for c in configs], [c.name for c in configs if c.value is None])
        require_configs(
            request, services, ACLOperation.ALTER_CONFIGS, resource.resource_type, resource.resource_name
        )
        replace_configs(
            resource.resource_type,
            resource.resource_name,
            {config.name: config.value for config in configs if config.value is not None},
            validate_only=message.validate_only,
            node_id=request.node_id,
            services=services,
        )

    result_class = AlterConfigsResponse.AlterConfigsResourceResponse
    return AlterConfigsResponse(responses=answers(message.resources, alter, result_class))


class _Resource(Protocol):
    """The fields that the resources of AlterConfigs and IncrementalAlterConfigs have in common."""

    resource_type: int
    resource_name: str


ResourceT = TypeVar("ResourceT", bound=_Resource)
ResultT = TypeVar("ResultT")


def answers(
    resources: Sequence[ResourceT], alter: Callable[[ResourceT], None], result_class: Callable[..., ResultT]
) -> list[ResultT]:
    """Call ``alter`` with each resource and return the results; reject a resource that occurs twice."""
    named = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    results = []
    for resource in resources:
        code, text = 0, None
        try:
            if named[resource.resource_type, resource.resource_name] > 1:
                raise InvalidRequestError("Each resource must appear at most once.")
            alter(resource)
        except Exception as error:  # noqa: BLE001 - fails this resource only; error_code logs bugs
            code, text = error_code(error), error_message(error)
        results.append(
            result_class(
                error_code=code,
                error_message=text,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return results


HANDLER = ApiHandler(AlterConfigsRequest, 0, 2, handle)
