"""What consumers of one group say to each other, as the brokers carry it without looking inside.

In: a member's :class:`Subscription`, or the leader's :class:`Assignment` for it. Out: the bytes in JoinGroup
and SyncGroup, and back. Does not know: the requests, the assignors. Bytes come from other members: hostile
ones raise :class:`kafkacore.errors.MalformedMessageError`. (Kafka's ``ConsumerProtocol``.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

from kafkacore.errors import MalformedMessageError
from kafkacore.protocol import Message
from kafkacore.protocol.generated.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from kafkacore.structs import TopicPartition, partition_name
from kafkacore.wire import Cursor, Writer

#: ``protocol_type`` of a consumer group in JoinGroup.
PROTOCOL_TYPE: Final = "consumer"
#: What both blobs are written in when nobody asks for another version.
LATEST_VERSION: Final = 3
#: A member that says nothing of its generation, or never had one.
NO_GENERATION: Final = -1

Buffer = bytes | bytearray | memoryview
MessageT = TypeVar("MessageT", bound=Message)


class Subscription(NamedTuple):
    """What a member wants and what it has.

    ``owned_partitions`` came with version 1 (KIP-429), ``generation_id`` with 2 (KIP-792), ``rack_id`` with 3
    (KIP-881). ``group_instance_id`` is not in the blob: JoinGroup's answer has it beside each member.
    """

    topics: Sequence[str]
    user_data: bytes | None = None
    owned_partitions: Sequence[TopicPartition] = ()
    generation_id: int = NO_GENERATION
    rack_id: str | None = None
    group_instance_id: str | None = None


class Assignment(NamedTuple):
    """What the leader gives a member."""

    partitions: Sequence[TopicPartition]
    user_data: bytes | None = None


def encode_subscription(subscription: Subscription, version: int = LATEST_VERSION) -> bytes:
    """The blob of a member's subscription; topics and owned partitions are sorted, as Java's are.

    Parameters
    ----------
    version:
        0 to 3; what the version has no place for is left out.

    Raises
    ------
    UnsupportedVersionError
        There is no such version.
    """
    owned = [
        ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=sorted(partitions))
        for topic, partitions in sorted(_by_topic(subscription.owned_partitions).items())
    ]
    message = ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=owned,
        generation_id=subscription.generation_id,
        rack_id=subscription.rack_id,
    )
    return _encoded(message, version)


def decode_subscription(data: Buffer, group_instance_id: str | None = None) -> Subscription:
    """A member's subscription; ``group_instance_id`` is what JoinGroup's answer says beside the blob.

    Raises
    ------
    MalformedMessageError
        These bytes are no subscription. What a version newer than ours has behind our fields is passed over.
    """
    message = _decoded(ConsumerProtocolSubscription, data)
    return Subscription(
        tuple(message.topics),
        _copied(message.user_data),
        _flattened(message.owned_partitions),
        message.generation_id,
        message.rack_id or None,
        group_instance_id,
    )


def decode_subscribed_topics(data: Buffer) -> list[str]:
    """The topics of a member's subscription, read as version 0 whatever its version is.

    Every version begins with the fields of version 0, so a coordinator needs no others. Older clients write a
    later version and leave its fields out, which Kafka's coordinator accepts (``ClassicGroup``).

    Raises
    ------
    MalformedMessageError
        These bytes are no subscription.
    """
    cursor = Cursor(data)
    cursor.read_int16()
    return ConsumerProtocolSubscription.decode(cursor, 0).topics


def encode_assignment(assignment: Assignment, version: int = LATEST_VERSION) -> bytes:
    """The blob of a member's assignment: topics in the order in which they first appear.

    Raises
    ------
    UnsupportedVersionError
        There is no such version.
    """
    partitions = [
        ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=numbers)
        for topic, numbers in _by_topic(assignment.partitions).items()
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=partitions, user_data=assignment.user_data)
    return _encoded(message, version)


def decode_assignment(data: Buffer) -> Assignment:
    """What the leader gave us. No bytes at all are no partitions: so answers a broker whose leader had none
    for us.

    Raises
    ------
    MalformedMessageError
        These bytes are no assignment, or name a partition below 0.
    """
    if not len(data):
        return Assignment(())
    message = _decoded(ConsumerProtocolAssignment, data)
    partitions = _flattened(message.assigned_partitions)
    for topic_partition in partitions:
        if topic_partition.partition < 0:
            raise MalformedMessageError(f"assignment of {partition_name(topic_partition)}")
    return Assignment(partitions, _copied(message.user_data))


def _by_topic(partitions: Sequence[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found


def _flattened(
    topics: Sequence[ConsumerProtocolSubscription.TopicPartition | ConsumerProtocolAssignment.TopicPartition],
) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(entry.topic, partition) for entry in topics for partition in entry.partitions)


def _copied(value: Buffer | None) -> bytes | None:
    # A view would hold the whole answer for as long as the group's subscriptions are kept.
    return None if value is None else bytes(value)


def _encoded(message: Message, version: int) -> bytes:
    writer = Writer()
    writer.write_int16(version)
    message.encode(writer, version)
    return b"".join(writer.pieces())


def _decoded(kind: type[MessageT], data: Buffer) -> MessageT:
    cursor = Cursor(data)
    version = cursor.read_int16()
    if version < kind.MIN_VERSION:
        raise MalformedMessageError(f"{kind.NAME} of version {version}")
    # Versions only add fields at the end, so a newer one begins as ours does.
    return kind.decode(cursor, min(version, kind.MAX_VERSION))
