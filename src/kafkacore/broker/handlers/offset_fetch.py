"""OffsetFetch: return the committed offsets of one group (up to version 7) or of several groups.

Versions 1 to 10, with topic names up to version 9 and topic IDs from version 10. From version 9 on, a
member of a consumer group sends its member epoch. Without topics, all offsets of a group are returned. The
response waits until the commits that it contains are on disk, whether or not ``require_stable`` is set, so
that a crash cannot revert an offset that a client has seen. With ``require_stable`` (version 7, KIP-447), a
partition with a pending offset of an open transaction gets UNSTABLE_OFFSET_COMMIT.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple, TypeAlias

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.group.offset_store import Place, TopicOffsets
from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
    AnsweredLater,
    ApiHandler,
    GroupServices,
    Request,
)
from kafkacore.broker.requests.authorization import allowed
from kafkacore.errors import (
    CoordinatorNotAvailableError,
    GroupAuthorizationFailedError,
    NotCoordinatorError,
    TopicAuthorizationFailedError,
    UnknownTopicIdError,
    UnstableOffsetCommitError,
)
from kafkacore.protocol import ZERO_UUID
from kafkacore.protocol.generated.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kafkacore.wire import Uuid

FIRST_VERSION_WITH_ERROR = 2
FIRST_VERSION_WITH_GROUPS = 8
FIRST_VERSION_BY_ID = 10
NO_OFFSET = -1
_REFUSALS = (TopicAuthorizationFailedError.errno, UnknownTopicIdError.errno)

_Group = OffsetFetchResponse.OffsetFetchResponseGroup
_GroupTopic = OffsetFetchResponse.OffsetFetchResponseTopics
_GroupPartition = OffsetFetchResponse.OffsetFetchResponsePartitions
_Topic = OffsetFetchResponse.OffsetFetchResponseTopic
_Partition = OffsetFetchResponse.OffsetFetchResponsePartition


_RequestedGroup: TypeAlias = OffsetFetchRequest | OffsetFetchRequest.OffsetFetchRequestGroup
_RequestedTopic: TypeAlias = (
    OffsetFetchRequest.OffsetFetchRequestTopic | OffsetFetchRequest.OffsetFetchRequestTopics
)


class _FoundPartition(NamedTuple):
    """The fields of a partition that all versions of the response have in common."""

    partition_index: int
    committed_offset: int = NO_OFFSET
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: int = 0


class _FoundTopic(NamedTuple):
    name: str
    topic_id: Uuid
    partitions: list[_FoundPartition]


class _Found(NamedTuple):
    """The result for one group."""

    error_code: int
    topics: list[_FoundTopic]


class _Fetch:
    """An OffsetFetch request in progress, with the results so far."""

    def __init__(self, request: Request, services: GroupServices) -> None:
        self._request = request
        self._services = services
        message = request.message
        has_groups = request.version >= FIRST_VERSION_WITH_GROUPS
        self._groups = list(message.groups) if has_groups else [message]
        self._found: dict[int, _Found] = {}

    def start(self) -> None:
        if not self._groups:
            self._answer()
        for number, group in enumerate(self._groups):

            def on_done(
                code: int,
                offsets: Mapping[str, TopicOffsets],
                pending: Collection[Place],
                number: int = number,
                group: _RequestedGroup = group,
            ) -> None:
                unstable = pending if self._request.message.require_stable else ()
                self._found[number] = self._group(code, group, offsets, unstable)
                if len(self._found) == len(self._groups):
                    self._answer()

            if not self._may_describe(ResourceType.GROUP, group.group_id):
                on_done(GroupAuthorizationFailedError.errno, {}, ())
                continue
            member = () if isinstance(group, OffsetFetchRequest) else (group.member_id, group.member_epoch)
            self._services.offsets.fetch(group.group_id, self._request.node_id, on_done, *member)

    def _may_describe(self, kind: ResourceType, name: str, *, is_asked_for: bool = True) -> bool:
        describe = ACLOperation.DESCRIBE
        return allowed(self._request, self._services, describe, kind, name, is_asked_for=is_asked_for)

    def _group(
        self,
        code: int,
        group: _RequestedGroup,
        offsets: Mapping[str, TopicOffsets],
        unstable: Collection[Place],
    ) -> _Found:
        if code == CoordinatorNotAvailableError.errno:
            # Clients before 3.9 do not handle CoordinatorNotAvailable here. NotCoordinator makes these
            # clients look up the coordinator again.
            code = NotCoordinatorError.errno
        if code and self._request.version < FIRST_VERSION_WITH_ERROR:
            # These versions have no error field for the whole response, so each partition gets the error.
            return _Found(code, [_all_with(code, topic) for topic in group.topics or ()])
        if code:
            return _Found(code, [])
        if group.topics is None:
            return _Found(0, self._all(offsets, unstable))
        # As in Kafka, topics that are unknown or that the client may not describe come last.
        found = [self._topic(topic, offsets, unstable) for topic in group.topics]
        return _Found(0, sorted(found, key=_is_refused))

    def _all(self, offsets: Mapping[str, TopicOffsets], unstable: Collection[Place]) -> list[_FoundTopic]:
        found = []
        for name, partitions in offsets.items():
            if not self._may_describe(ResourceType.TOPIC, name, is_asked_for=False):
                continue
            topic = self._services.topics.get(name)
            topic_id = ZERO_UUID if topic is None else topic.topic_id
            if self._request.version >= FIRST_VERSION_BY_ID:
                if topic is None:
                    continue
                partitions = _of_topic(partitions, topic_id)
            if partitions:
                known = [_known(name, index, partitions, unstable) for index in partitions]
                found.append(_FoundTopic(name, topic_id, known))
        return found

    def _topic(
        self, topic: _RequestedTopic, offsets: Mapping[str, TopicOffsets], unstable: Collection[Place]
    ) -> _FoundTopic:
        by_id = self._request.version >= FIRST_VERSION_BY_ID
        name = self._services.topics.name_of(_id_of(topic)) if by_id else topic.name
        if name is None:
            return _all_with(UnknownTopicIdError.errno, topic)
        if not self._may_describe(ResourceType.TOPIC, name):
            return _all_with(TopicAuthorizationFailedError.errno, topic)
        topic_id, partitions = ZERO_UUID, offsets.get(name, {})
        if by_id:
            topic_id = _id_of(topic)
            partitions = _of_topic(partitions, topic_id)
        known = [_known(name, index, partitions, unstable) for index in topic.partition_indexes]
        return _FoundTopic(name, topic_id, known)

    def _answer(self) -> None:
        found = [self._found[number] for number in range(len(self._groups))]
        if self._request.version >= FIRST_VERSION_WITH_GROUPS:
            answers = [
                _Group(
                    group_id=group.group_id,
                    error_code=one.error_code,
                    topics=[
                        _GroupTopic(
                            name=name,
                            topic_id=topic_id,
                            partitions=[_GroupPartition(**p._asdict()) for p in partitions],
                        )
                        for name, topic_id, partitions in one.topics
                    ],
                )
                for group, one in zip(self._groups, found, strict=True)
            ]
            self._request.respond(OffsetFetchResponse(groups=answers))
            return
        (one,) = found
        topics = [
            _Topic(name=name, partitions=[_Partition(**p._asdict()) for p in partitions])
            for name, _, partitions in one.topics
        ]
        self._request.respond(OffsetFetchResponse(topics=topics, error_code=one.error_code))


def _of_topic(partitions: TopicOffsets, topic_id: Uuid) -> TopicOffsets:
    """Exclude offsets of an earlier topic of the same name, but keep old records without a topic ID."""
    return {index: offset for index, offset in partitions.items() if offset.topic_id in (ZERO_UUID, topic_id)}


def _id_of(topic: _RequestedTopic) -> Uuid:
    """Return the topic ID, or zero in versions without topic IDs."""
    return ZERO_UUID if isinstance(topic, OffsetFetchRequest.OffsetFetchRequestTopic) else topic.topic_id


def _known(name: str, index: int, partitions: TopicOffsets, unstable: Collection[Place]) -> _FoundPartition:
    if (name, index) in unstable:
        return _FoundPartition(index, error_code=UnstableOffsetCommitError.errno)
    offset = partitions.get(index)
    if offset is None:
        return _FoundPartition(index)
    return _FoundPartition(index, offset.offset, offset.leader_epoch, offset.metadata)


def _is_refused(topic: _FoundTopic) -> bool:
    return any(partition.error_code in _REFUSALS for partition in topic.partitions)


def _all_with(code: int, topic: _RequestedTopic) -> _FoundTopic:
    partitions = [_FoundPartition(index, error_code=code) for index in topic.partition_indexes]
    return _FoundTopic(topic.name, _id_of(topic), partitions)


def handle(
    request: Request[OffsetFetchRequest], services: GroupServices
) -> OffsetFetchResponse | AnsweredLater:
    _Fetch(request, services).start()
    return ANSWERED_LATER


HANDLER = ApiHandler(OffsetFetchRequest, 1, 10, handle)
