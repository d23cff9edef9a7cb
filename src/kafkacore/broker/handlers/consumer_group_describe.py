"""ConsumerGroupDescribe (KIP-848): return state, epochs, members and assignments of consumer groups.

Versions 0 to 1. From version 1 on, the type of a member shows whether it uses the classic protocol. The
response waits until the state that it contains is on disk.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.group.consumer.consumer_group import ConsumerGroup
from kafkacore.broker.group.consumer.consumer_member import ConsumerGroupMember
from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
    AnsweredLater,
    ApiHandler,
    GroupServices,
    Request,
)
from kafkacore.broker.requests.authorization import allowed, authorized_operations
from kafkacore.errors import (
    GroupAuthorizationFailedError,
    GroupIdNotFoundError,
    InvalidGroupIdError,
    TopicAuthorizationFailedError,
    UnsupportedVersionError,
)
from kafkacore.protocol.generated.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kafkacore.wire import Uuid

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1
TOPICS_DENIED = "The group has described topic(s) that the client is not authorized to describe."

_Group = ConsumerGroupDescribeResponse.DescribedGroup
_Member = ConsumerGroupDescribeResponse.Member
_Assignment = ConsumerGroupDescribeResponse.Assignment
_Partitions = ConsumerGroupDescribeResponse.TopicPartitions


class _Describe:
    """A ConsumerGroupDescribe request in progress."""

    def __init__(self, request: Request[ConsumerGroupDescribeRequest], services: GroupServices) -> None:
        self._request = request
        self._services = services
        self._groups = [self._described(group_id) for group_id in request.message.group_ids]
        self._waiting = 0

    def start(self) -> None:
        """Answer when the state of all groups is safe."""
        safe = [number for number, group in enumerate(self._groups) if not group.error_code]
        self._waiting = len(safe) + 1
        for number in safe:
            group_id = self._groups[number].group_id
            self._services.coordinator_log.when_safe(group_id, partial(self._on_safe, number))
        self._settled()

    def _on_safe(self, number: int, code: int) -> None:
        if code:
            self._groups[number] = _Group(group_id=self._groups[number].group_id, error_code=code)
        self._settled()

    def _settled(self) -> None:
        self._waiting -= 1
        if not self._waiting:
            self._request.respond(ConsumerGroupDescribeResponse(groups=self._groups))

    def _described(self, group_id: str) -> _Group:
        request, services = self._request, self._services
        if not allowed(request, services, ACLOperation.DESCRIBE, ResourceType.GROUP, group_id):
            return _Group(group_id=group_id, error_code=GroupAuthorizationFailedError.errno)
        if not group_id:
            return _Group(group_id=group_id, error_code=InvalidGroupIdError.errno)
        try:
            group = services.groups.describe_consumer_group(group_id, request.node_id)
        except GroupIdNotFoundError as error:
            return _Group(group_id=group_id, error_code=error.errno, error_message=error_message(error))
        except Exception as error:  # noqa: BLE001 - fails this group only; error_code logs bugs
            return _Group(group_id=group_id, error_code=error_code(error))
        members = [self._member(group, member) for member in group]
        if not self._may_describe_topics(members):
            return _Group(
                group_id=group_id,
                error_code=TopicAuthorizationFailedError.errno,
                error_message=TOPICS_DENIED,
            )
        described = _Group(
            group_id=group_id,
            group_state=group.state.value,
            group_epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=services.groups.assignor_of(group),
            members=members,
        )
        if request.message.include_authorized_operations:
            described.authorized_operations = authorized_operations(
                request, services, ResourceType.GROUP, group_id
            )
        return described

    def _may_describe_topics(self, members: Iterable[_Member]) -> bool:
        names = {
            one.topic_name
            for member in members
            for assignment in (member.assignment, member.target_assignment)
            for one in assignment.topic_partitions
        }
        describe = ACLOperation.DESCRIBE
        return all(
            allowed(self._request, self._services, describe, ResourceType.TOPIC, name, is_asked_for=False)
            for name in names
        )

    def _member(self, group: ConsumerGroup, member: ConsumerGroupMember) -> _Member:
        return _Member(
            member_id=member.member_id,
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            member_epoch=member.member_epoch,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.subscribed_topic_names),
            subscribed_topic_regex=member.subscribed_topic_regex,
            assignment=self._assignment(member.owned),
            target_assignment=self._assignment(group.target_of(member.member_id)),
            member_type=CLASSIC_MEMBER if member.uses_classic_protocol else CONSUMER_MEMBER,
        )

    def _assignment(self, partitions: Mapping[Uuid, Collection[int]]) -> _Assignment:
        """Return an assignment without the topics that have been deleted."""
        names = {topic_id: self._services.topics.name_of(topic_id) for topic_id in partitions}
        return _Assignment(
            topic_partitions=[
                _Partitions(topic_id=topic_id, topic_name=name, partitions=sorted(partitions[topic_id]))
                for topic_id, name in names.items()
                if name is not None
            ]
        )


def handle(
    request: Request[ConsumerGroupDescribeRequest], services: GroupServices
) -> ConsumerGroupDescribeResponse | AnsweredLater:
    if not services.groups.serves_consumer_groups:
        unsupported = UnsupportedVersionError.errno
        return ConsumerGroupDescribeResponse(
            groups=[_Group(group_id=one, error_code=unsupported) for one in request.message.group_ids]
        )
    _Describe(request, services).start()
    return ANSWERED_LATER


HANDLER = ApiHandler(ConsumerGroupDescribeRequest, 0, 1, handle)
