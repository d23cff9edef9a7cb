"""DeleteTopics: delete topics by name or by ID.

Versions 1 to 6.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
    AnsweredLater,
    ApiHandler,
    Request,
    TopicServices,
)
from kafkacore.broker.log import TopicState
from kafkacore.broker.purgatory.response_collector import ResponseCollector
from kafkacore.broker.requests.authorization import allowed, allowed_on_cluster, require
from kafkacore.errors import (
    InvalidRequestError,
    TopicDeletionDisabledError,
    UnknownTopicIdError,
)
from kafkacore.protocol import ZERO_UUID
from kafkacore.protocol.generated.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kafkacore.wire import Uuid

#: First version whose clients know the error TOPIC_DELETION_DISABLED.
FIRST_VERSION_WITH_DISABLED = 3
FIRST_VERSION_BY_ID = 6
#: First version in which a client over its ``controller_mutation_rate`` gets an error (KIP-599).
FIRST_STRICT_VERSION = 5

_Result = DeleteTopicsResponse.DeletableTopicResult


def handle(
    request: Request[DeleteTopicsRequest], services: TopicServices
) -> DeleteTopicsResponse | AnsweredLater:
    if request.version >= FIRST_VERSION_BY_ID:
        wanted = [(topic.name, topic.topic_id) for topic in request.message.topics]
    else:
        wanted = [(name, ZERO_UUID) for name in request.message.topic_names]
    responses = ResponseCollector[_Result](
        len(wanted), lambda results: request.respond(DeleteTopicsResponse(responses=results))
    )
    for index, (name, topic_id) in enumerate(wanted):
        _delete(name, topic_id, request, services, responses.place(index))
    return ANSWERED_LATER


def _delete(
    name: str | None,
    topic_id: Uuid,
    request: Request,
    services: TopicServices,
    answer: Callable[[_Result], None],
) -> None:
    shown_name = name

    def done(outcome: TopicState | Exception) -> None:
        if isinstance(outcome, Exception):
            code, text = error_code(outcome), error_message(outcome)
            answer(_Result(name=shown_name, topic_id=topic_id, error_code=code, error_message=text))
        else:
            answer(_Result(name=outcome.name, topic_id=outcome.topic_id))

    try:
        if not services.config.delete_topic_enable:
            text = "Topics cannot be deleted, because delete.topic.enable is false"
            if request.version < FIRST_VERSION_WITH_DISABLED:
                raise InvalidRequestError(text)
            raise TopicDeletionDisabledError(text)
        if (name is None) == (topic_id == ZERO_UUID):
            raise InvalidRequestError("A topic to delete must have either a name or an ID.")
        if name is None:
            name = services.topics.name_of(topic_id)
            if name is None:
                raise UnknownTopicIdError("This server does not host this topic ID.")
            if allowed(request, services, ACLOperation.DESCRIBE, ResourceType.TOPIC, name):
                shown_name = name
            _check_may_delete(name, topic_id, request, services)
            shown_name = name
        else:
            _check_may_delete_named(name, request, services)
    except Exception as error:  # noqa: BLE001 - fails this topic only; error_code logs bugs
        done(error)
        return
    services.topics.delete_soon(
        name,
        done,
        lambda topic: services.quotas.record_mutation(
            request, topic.partition_count, strict_since=FIRST_STRICT_VERSION
        ),
    )


def _check_may_delete(name: str, topic_id: Uuid, request: Request, services: TopicServices) -> None:
    delete = ACLOperation.DELETE
    if not allowed_on_cluster(request, services, delete, is_asked_for=False):
        require(request, services, delete, ResourceType.TOPIC, name, topic_id)


def _check_may_delete_named(name: str, request: Request, services: TopicServices) -> None:
    """Check the permissions; without DESCRIBE the error does not reveal whether the topic exists."""
    if not allowed_on_cluster(request, services, ACLOperation.DELETE, is_asked_for=False):
        require(request, services, ACLOperation.DESCRIBE, ResourceType.TOPIC, name)
        if services.topics.get(name) is not None:
            require(request, services, ACLOperation.DELETE, ResourceType.TOPIC, name)


HANDLER = ApiHandler(DeleteTopicsRequest, 1, 6, handle)
