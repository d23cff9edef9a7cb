"""OffsetDelete: delete offsets of topics that the group does not consume (KIP-496).

Version 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
    AnsweredLater,
    ApiHandler,
    GroupServices,
    Request,
)
from kafkacore.broker.requests.authorization import allowed
from kafkacore.errors import (
    GroupAuthorizationFailedError,
    InvalidGroupIdError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol.generated.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse

_Topic = OffsetDeleteResponse.OffsetDeleteResponseTopic
_Partition = OffsetDeleteResponse.OffsetDeleteResponsePartition


def handle(
    request: Request[OffsetDeleteRequest], services: GroupServices
) -> OffsetDeleteResponse | AnsweredLater:
    message = request.message
    if not allowed(request, services, ACLOperation.DELETE, ResourceType.GROUP, message.group_id):
        return OffsetDeleteResponse(error_code=GroupAuthorizationFailedError.errno)
    if not message.group_id:
        return OffsetDeleteResponse(error_code=InvalidGroupIdError.errno)
    response = OffsetDeleteResponse()
    requested: list[tuple[str, int]] = []
    answers: list[_Partition] = []
    for topic in message.topics:
        refusal, count = UnknownTopicOrPartitionError.errno, 0
        if not allowed(request, services, ACLOperation.READ, ResourceType.TOPIC, topic.name):
            refusal = TopicAuthorizationFailedError.errno
        elif (known := services.topics.get(topic.name)) is not None:
            count = known.partition_count
        partitions = []
        for partition in topic.partitions:
            index = partition.partition_index
            answer = _Partition(partition_index=index, error_code=refusal)
            partitions.append(answer)
            if 0 <= index < count:
                requested.append((topic.name, index))
                answers.append(answer)
        response.topics.append(_Topic(name=topic.name, partitions=partitions))

    def on_done(failure: int, codes: Sequence[int]) -> None:
        if failure:
            request.respond(OffsetDeleteResponse(error_code=failure))
            return
        for answer, code in zip(answers, codes, strict=True):
            answer.error_code = code
        request.respond(response)

    services.offsets.delete(message.group_id, request.node_id, requested, on_done)
    return ANSWERED_LATER


HANDLER = ApiHandler(OffsetDeleteRequest, 0, 0, handle)
