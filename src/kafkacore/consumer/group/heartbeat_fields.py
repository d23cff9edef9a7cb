"""Builds the heartbeats of the protocol of KIP-848, which contain a field only if it has changed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from kafkacore.consumer.group.settings import GroupSettings
from kafkacore.consumer.subscription_state import SubscriptionState
from kafkacore.errors import MalformedMessageError
from kafkacore.protocol.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kafkacore.wire import Uuid

#: Member epochs of the heartbeats that join and leave the group. A static member leaves with the last epoch,
#: so that the group keeps its partitions.
JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_STATIC_EPOCH: Final = -2

TopicPartitionsById = Mapping[Uuid, frozenset[int]]


class LocalAssignment(NamedTuple):
    """An assignment, with a number that grows whenever the broker returns another assignment.

    The number distinguishes the assignment from an equal earlier assignment, because the member must
    acknowledge it again.
    """

    number: int = -1
    partitions: TopicPartitionsById = MappingProxyType({})


NO_ASSIGNMENT: Final = LocalAssignment()


class _Sent(NamedTuple):
    """The optional fields of a heartbeat."""

    rebalance_timeout_ms: int
    topics: frozenset[str]
    pattern: str | None
    assignor: str | None
    assignment: LocalAssignment


class HeartbeatFields:
    """Remembers which fields the broker has received, and builds heartbeats with the other fields.

    Parameters
    ----------
    settings, subscriptions:
        Settings and subscription of the member.
    """

    def __init__(self, settings: GroupSettings, subscriptions: SubscriptionState) -> None:
        self._settings = settings
        self._subscriptions = subscriptions
        self._sent: _Sent | None = None

    def reset(self) -> None:
        """Send all fields in the next heartbeat, because the last heartbeat may not have been received.

        If a heartbeat contains all fields, the response contains the assignment.
        """
        self._sent = None

    def has_changed(self, current: LocalAssignment) -> bool:
        """Return whether a field has changed that the next heartbeat must report."""
        return self._sent != self._fields(current)

    def _fields(self, current: LocalAssignment) -> _Sent:
        return _Sent(
            self._settings.rebalance_timeout_ms,
            frozenset(self._subscriptions.subscription),
            self._subscriptions.server_pattern,
            self._settings.group_remote_assignor,
            current,
        )

    def plain(self, member_id: str, epoch: int) -> ConsumerGroupHeartbeatRequest:
        """Return the heartbeat of a member that has nothing to report."""
        return ConsumerGroupHeartbeatRequest(
            group_id=self._settings.group_id,
            member_id=member_id,
            member_epoch=epoch,
            instance_id=self._settings.group_instance_id,
            rebalance_timeout_ms=-1,
            subscribed_topic_names=None,
            topic_partitions=None,
        )

    def next(
        self, member_id: str, epoch: int, current: LocalAssignment, *, is_joining: bool
    ) -> ConsumerGroupHeartbeatRequest:
        """Return the next heartbeat, and remember its fields as sent."""
        fields, sent = self._fields(current), None if is_joining else self._sent
        request = self.plain(member_id, epoch)
        if sent is None:
            request.rack_id = self._settings.client_rack
            request.rebalance_timeout_ms = fields.rebalance_timeout_ms
        if sent is None or sent.topics != fields.topics:
            request.subscribed_topic_names = sorted(fields.topics)
        if sent is None or sent.assignor != fields.assignor:
            request.server_assignor = fields.assignor
        if sent is None or sent.assignment != current:
            request.topic_partitions = [
                ConsumerGroupHeartbeatRequest.TopicPartitions(
                    topic_id=topic_id, partitions=sorted(current.partitions[topic_id])
                )
                for topic_id in sorted(current.partitions)
            ]
        before = None if sent is None else sent.pattern
        if fields.pattern != before:
            # An empty pattern ends a subscription by pattern.
            request.subscribed_topic_regex = fields.pattern or ""
        self._sent = fields
        return request

    def leave(self, member_id: str) -> ConsumerGroupHeartbeatRequest:
        """Return the heartbeat that leaves the group."""
        return self.plain(member_id, LEAVE_STATIC_EPOCH if self._settings.is_static else LEAVE_EPOCH)


def assignment_in(response: ConsumerGroupHeartbeatResponse) -> TopicPartitionsById | None:
    """Return the partitions by topic id in a response; ``None`` if the response has no assignment.

    Raises
    ------
    MalformedMessageError
        If the response contains a negative epoch or partition number.
    """
    if response.member_epoch <= JOIN_EPOCH:
        raise MalformedMessageError(
            f"the ConsumerGroupHeartbeat response has member epoch {response.member_epoch}"
        )
    if response.assignment is None:
        return None
    found: dict[Uuid, frozenset[int]] = {}
    for topic in response.assignment.topic_partitions:
        numbers = frozenset(topic.partitions)
        if min(numbers, default=0) < 0:
            raise MalformedMessageError(
                f"the ConsumerGroupHeartbeat response assigns a negative partition of topic {topic.topic_id}"
            )
        if numbers:
            found[topic.topic_id] = found.get(topic.topic_id, frozenset()) | numbers
    return found
