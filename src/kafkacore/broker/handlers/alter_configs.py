"""AlterConfigs: replace the whole configuration of a resource; settings that are not given are reset.

Versions 0 to 2, for topics, brokers, groups and client metrics. The limitations are those of
IncrementalAlterConfigs, which replaces this API.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeAlias, TypeVar

from kafkacore.access_control import ACLOperation
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
    AnsweredLater,
    ApiHandler,
    ConfigHandlerServices,
    Request,
)
from kafkacore.broker.metadata.resource_configs import IN_METADATA_LOG
from kafkacore.broker.requests.authorization import require_configs
from kafkacore.broker.topics.config_changes import check_request, replace_configs
from kafkacore.errors import InvalidRequestError
from kafkacore.protocol.generated.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from kafkacore.protocol.generated.metadata_records import ConfigRecord

#: Function that returns the records of a change to a resource whose configuration is in the metadata log.
RecordsOfChange: TypeAlias = Callable[[], Sequence[ConfigRecord]]


def handle(
    request: Request[AlterConfigsRequest], services: ConfigHandlerServices
) -> AlterConfigsResponse | AnsweredLater:
    message = request.message

    def alter(resource: AlterConfigsRequest.AlterConfigsResource) -> RecordsOfChange | None:
        configs, kind, name = resource.configs, resource.resource_type, resource.resource_name
        check_request([c.name for c in configs], [c.name for c in configs if c.value is None])
        require_configs(request, services, ACLOperation.ALTER_CONFIGS, kind, name)
        given = {config.name: config.value for config in configs if config.value is not None}
        if kind in IN_METADATA_LOG:
            return lambda: services.metadata.configs.replace(kind, name, given)
        replace_configs(
            kind,
            name,
            given,
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
        AlterConfigsResponse.AlterConfigsResourceResponse,
        AlterConfigsResponse,
        validate_only=message.validate_only,
    )


class _Resource(Protocol):
    """The fields that the resources of AlterConfigs and IncrementalAlterConfigs have in common."""

    resource_type: int
    resource_name: str


ResourceT = TypeVar("ResourceT", bound=_Resource)
ResultT = TypeVar("ResultT")
ResponseT = TypeVar("ResponseT")


def alter_all(
    request: Request,
    services: ConfigHandlerServices,
    resources: Sequence[ResourceT],
    alter: Callable[[ResourceT], RecordsOfChange | None],
    result_class: Callable[..., ResultT],
    response_class: Callable[..., ResponseT],
    *,
    validate_only: bool,
) -> ResponseT | AnsweredLater:
    """Alter each resource that occurs once. Return the response, or send it after the changes are durable.

    Parameters
    ----------
    request:
        The client's request.
    services:
        Services of the handler.
    resources:
        Resources of the request.
    alter:
        Alters a resource and returns ``None``, or returns a function that returns the records of the change.
    result_class, response_class:
        Classes of a result and of the response.
    validate_only:
        Whether to check the changes without making them.
    """
    alterations = _Alterations(resources)
    alterations.start(alter)

    def response() -> ResponseT:
        return response_class(responses=alterations.results(result_class))

    def on_done(outcome: Exception | None) -> None:
        if outcome is not None:
            alterations.fail(outcome)
        request.respond(response())

    if alterations.has_changes and not validate_only:
        services.metadata.change(alterations.plan, on_done)
        return ANSWERED_LATER
    alterations.plan()
    return response()


class _Alterations(Generic[ResourceT]):
    """Alters the resources of a request. Collects their errors and the changes of the metadata log."""

    def __init__(self, resources: Sequence[ResourceT]) -> None:
        self._resources = resources
        self._errors: dict[int, Exception] = {}
        self._changes: dict[int, RecordsOfChange] = {}

    @property
    def has_changes(self) -> bool:
        """Whether the request changes a resource whose configuration is in the metadata log."""
        return bool(self._changes)

    def start(self, alter: Callable[[ResourceT], RecordsOfChange | None]) -> None:
        named = Counter((resource.resource_type, resource.resource_name) for resource in self._resources)
        for index, resource in enumerate(self._resources):
            try:
                if named[resource.resource_type, resource.resource_name] > 1:
                    raise InvalidRequestError("Each resource must appear at most once.")
                change = alter(resource)
            except Exception as error:  # noqa: BLE001 - fails this resource only; error_code logs bugs
                self._errors[index] = error
            else:
                if change is not None:
                    self._changes[index] = change

    def plan(self) -> tuple[list[ConfigRecord], None]:
        """Return the records of all valid changes of the metadata log."""
        records: list[ConfigRecord] = []
        for index, change in self._changes.items():
            try:
                records += change()
            except Exception as error:  # noqa: BLE001 - fails this resource only; error_code logs bugs
                self._errors[index] = error
        return records, None

    def fail(self, error: Exception) -> None:
        """Record that the changes of the metadata log could not be written."""
        for index in self._changes:
            self._errors.setdefault(index, error)

    def results(self, result_class: Callable[..., ResultT]) -> list[ResultT]:
        """Return the result of each resource."""
        results = []
        for index, resource in enumerate(self._resources):
            error = self._errors.get(index)
            results.append(
                result_class(
                    error_code=0 if error is None else error_code(error),
                    error_message=None if error is None else error_message(error),
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
            )
        return results


HANDLER = ApiHandler(AlterConfigsRequest, 0, 2, handle)
