"""DeleteTopics: topics go, with their records, by name or by id.

Versions 1 to 6. Gaps: none known.
"""

from __future__ import annotations

from typing import Any

from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.request import ApiHandler, BrokerServices, Request
from kafkacore.broker.topic_catalog import ZERO_ID
from kafkacore.errors import (
    InvalidRequestError,
    TopicDeletionDisabledError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol.generated.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

FIRST_VERSION_BY_ID = 6

_Result = DeleteTopicsResponse.DeletableTopicResult


def handle(request: Request, services: BrokerServices) -> Any:
    if request.version >= FIRST_VERSION_BY_ID:
        wanted = [(topic.name, topic.topic_id) for topic in request.message.topics]
    else:
        wanted = [(name, ZERO_ID) for name in request.message.topic_names]
    return DeleteTopicsResponse(responses=[_delete(name, topic_id, services) for name, topic_id in wanted])


def _delete(name: str | None, topic_id: Any, services: BrokerServices) -> Any:
    try:
        if not services.config.delete_topic_enable:
            raise TopicDeletionDisabledError("delete.topic.enable is false")
        if (name is None) == (topic_id == ZERO_ID):
            raise InvalidRequestError("A topic to delete is named by name or by id, by one of the two.")
        if name is None:
            name = services.topics.name_of(topic_id)
            if name is None:
                raise UnknownTopicIdError("This server does not host this topic ID.")
        topic = services.topics.get(name)
        if topic is None:
            raise UnknownTopicOrPartitionError("This server does not host this topic-partition.")
        services.topics.delete(name)
    except Exception as error:  # noqa: BLE001 - one topic's failure is its own; error_code logs surprises
        return _Result(
            name=name, topic_id=topic_id, error_code=error_code(error), error_message=error_message(error)
        )
    return _Result(name=name, topic_id=topic.topic_id)


HANDLER = ApiHandler(DeleteTopicsRequest, 1, 6, handle)
