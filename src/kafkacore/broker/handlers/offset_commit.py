"""OffsetCommit: write committed offsets of a group to ``__consumer_offsets``.

Versions 2 to 10, with topic names up to version 9 and topic IDs from version 10. The response is sent when
a crash can no longer lose the offsets. An unknown partition or too long metadata is an error for that
partition only. From version 9 on, members of consumer groups commit with their member epoch; if the
member does not own one of the partitions, the whole commit fails.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.group.offset_manager import Committer, OffsetToCommit
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
    TopicAuthorizationFailedError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol.generated.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kafkacore.wire import Uuid

FIRST_VERSION_BY_ID = 10

_Topic = OffsetCommitResponse.OffsetCommitResponseTopic
_Partition = OffsetCommitResponse.OffsetCommitResponsePartition


class _Commit:
    """An OffsetCommit request in progress: the offsets to commit, and the response."""

    def __init__(self, request: Request, services: GroupServices) -> None:
        self._request = request
        self._services = services
        self.response = OffsetCommitResponse()
        self.offsets: list[OffsetToCommit] = []
        #: The responses for :attr:`offsets`, in the same order.
        self._answers: list[_Partition] = []
        group_id = request.message.group_id
        if not allowed(request, services, ACLOperation.READ, ResourceType.GROUP, group_id):
            for topic in request.message.topics:
                self._refuse(topic, GroupAuthorizationFailedError.errno)
            return
        for topic in request.message.topics:
            self._add(topic)

    def _refuse(self, topic: OffsetCommitRequest.OffsetCommitRequestTopic, code: int) -> None:
        answers = [
            _Partition(partition_index=each.partition_index, error_code=code) for each in topic.partitions
        ]
        self.response.topics.append(_Topic(name=topic.name, topic_id=topic.topic_id, partitions=answers))

    def _add(self, topic: OffsetCommitRequest.OffsetCommitRequestTopic) -> None:
        topics = self._services.topics
        by_id = self._request.version >= FIRST_VERSION_BY_ID
        name = topics.name_of(topic.topic_id) if by_id else topic.name
        if name is None:
            self._refuse(topic, UnknownTopicIdError.errno)
            return
        if not allowed(self._request, self._services, ACLOperation.READ, ResourceType.TOPIC, name):
            self._refuse(topic, TopicAuthorizationFailedError.errno)
            return
        known = topics.get(name)
        unknown = UnknownTopicOrPartitionError.errno
        answers = []
        for partition in topic.partitions:
            index = partition.partition_index
            is_known = known is not None and 0 <= index < known.partition_count
            answer = _Partition(partition_index=index, error_code=0 if is_known else unknown)
            answers.append(answer)
            if known is not None and is_known:
                self._answers.append(answer)
                self.offsets.append(_offset(name, known.topic_id, partition))
        self.response.topics.append(_Topic(name=topic.name, topic_id=topic.topic_id, partitions=answers))

    def on_done(self, codes: Sequence[int]) -> None:
        for answer, code in zip(self._answers, codes, strict=True):
            answer.error_code = code
        self._request.respond(self.response)


def _offset(
    name: str, topic_id: Uuid, partition: OffsetCommitRequest.OffsetCommitRequestPartition
) -> OffsetToCommit:
    return OffsetToCommit(
        name,
        topic_id,
        partition.partition_index,
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata,
    )


def handle(
    request: Request[OffsetCommitRequest], services: GroupServices
) -> OffsetCommitResponse | AnsweredLater:
    message = request.message
    commit = _Commit(request, services)
    if not commit.offsets:
        return commit.response
    committer = Committer(
        message.group_id,
        message.member_id,
        message.group_instance_id,
        message.generation_id_or_member_epoch,
        request.version,
        message.retention_time_ms,
    )
    services.offsets.commit(committer, request.node_id, commit.offsets, commit.on_done)
    return ANSWERED_LATER


HANDLER = ApiHandler(OffsetCommitRequest, 2, 10, handle)
