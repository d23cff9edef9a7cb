"""Encodes and decodes the subscriptions and assignments that JoinGroup and SyncGroup carry as bytes.

The bytes come from other members. Malformed bytes raise :class:`kafkacore.errors.MalformedMessageError`. This
is Kafka's ``ConsumerProtocol``.
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
#: Version in which subscriptions and assignments are encoded by default.
LATEST_VERSION: Final = 3
#: Generation of a member that has never had a generation, or whose subscription version lacks the field.
NO_GENERATION: Final = -1

Buffer = bytes | bytearray | memoryview
MessageT = TypeVar("MessageT", bound=Message)


class Subscription(NamedTuple):
    """Topics to which a member subscribes, and partitions that it owns.

    ``owned_partitions`` was added with version 1 (KIP-429), ``generation_id`` with version 2 (KIP-792), and
    ``rack_id`` with version 3 (KIP-881). ``group_instance_id`` is not encoded; it is a separate field of the
    JoinGroup response.
    """

    topics: Sequence[str]
    user_data: bytes | None = None
    owned_partitions: Sequence[TopicPartition] = ()
    generation_id: int = NO_GENERATION
    rack_id: str | None = None
    group_instance_id: str | None = None


class Assignment(NamedTuple):
    """Partitions that the leader assigned to a member."""

    partitions: Sequence[TopicPartition]
    user_data: bytes | None = None


def encode_subscription(subscription: Subscription, version: int = LATEST_VERSION) -> bytes:
    """Return the encoded subscription. Topics and owned partitions are sorted, as in Java.

    Parameters
    ----------
    subscription:
        Subscription to encode.
    version:
        Version from 0 to 3. Fields that the version does not have are left out.

    Raises
    ------
    UnsupportedVersionError
        If the version does not exist.
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
    """Return a member's decoded subscription, with the ``group_instance_id`` of the JoinGroup response.

    Fields that a newer version adds at the end are ignored.

    Raises
    ------
    MalformedMessageError
        If the bytes are not a subscription.
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
    """Return the topics of a member's subscription, read as version 0 regardless of its version.

    Every version begins with the fields of version 0, and a coordinator needs no other fields. Some older
    clients send a higher version number without the fields of that version. Kafka's coordinator accepts this,
    too (``ClassicGroup``).

    Raises
    ------
    MalformedMessageError
        If the bytes are not a subscription.
    """
    cursor = Cursor(data)
    cursor.read_int16()
    return ConsumerProtocolSubscription.decode(cursor, 0).topics


def encode_assignment(assignment: Assignment, version: int = LATEST_VERSION) -> bytes:
    """Return the encoded assignment, with topics in the order of their first partition.

    Raises
    ------
    UnsupportedVersionError
        If the version does not exist.
    """
    partitions = [
        ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=numbers)
        for topic, numbers in _by_topic(assignment.partitions).items()
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=partitions, user_data=assignment.user_data)
    return _encoded(message, version)


def decode_assignment(data: Buffer) -> Assignment:
    """Return a member's decoded assignment.

    Empty bytes mean no partitions. A broker sends them to members for which the leader sent no assignment.

    Raises
    ------
    MalformedMessageError
        If the bytes are not an assignment, or contain a negative partition number.
    """
    if not len(data):
        return Assignment(())
    message = _decoded(ConsumerProtocolAssignment, data)
    partitions = _flattened(message.assigned_partitions)
    for topic_partition in partitions:
        if topic_partition.partition < 0:
            raise MalformedMessageError(f"assignment of {partition_name(topic_partition)}: invalid partition")
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
    # Copy the bytes, because a memoryview would keep the whole response in memory as long as the
    # subscription.
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
        raise MalformedMessageError(f"{kind.NAME} has invalid version {version}")
    # Newer versions only add fields at the end, so read the fields of the latest version that we support.
    return kind.decode(cursor, min(version, kind.MAX_VERSION))
