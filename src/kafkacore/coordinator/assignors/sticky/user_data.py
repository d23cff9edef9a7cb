"""Encodes and decodes the user data of Java's sticky assignors.

The bytes come from other members. As in Java, a member with malformed user data counts as a member that owned
no partitions. One faulty member therefore does not prevent the assignment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafkacore.coordinator.protocol import NO_GENERATION
from kafkacore.errors import KafkaProtocolError
from kafkacore.structs import TopicPartition
from kafkacore.wire import Cursor, Writer


class MemberData(NamedTuple):
    """Partitions that a member owned, and the generation of that assignment, which is -1 if unknown."""

    partitions: Sequence[TopicPartition] = ()
    generation: int = NO_GENERATION


def encode_previous_assignment(data: MemberData) -> bytes:
    """Return user data of ``sticky`` version 1: the previous assignment and its generation (KIP-341)."""
    by_topic: dict[str, list[int]] = {}
    for topic, number in data.partitions:
        by_topic.setdefault(topic, []).append(number)
    writer = Writer()
    writer.write_array_length(len(by_topic), False)
    for topic, numbers in by_topic.items():
        writer.write_nullable_string(topic, False)
        writer.write_array_length(len(numbers), False)
        for number in numbers:
            writer.write_int32(number)
    writer.write_int32(data.generation)
    return b"".join(writer.pieces())


def decode_previous_assignment(user_data: bytes | None) -> MemberData:
    """Decode user data of ``sticky``: version 1, or version 0, which has no generation."""
    if not user_data:
        return MemberData()
    cursor = Cursor(user_data)
    partitions: list[TopicPartition] = []
    try:
        for _ in range(cursor.read_array_length(False, 6)):
            topic = cursor.read_nullable_string(False)
            if topic is None:
                return MemberData()
            numbers = [cursor.read_int32() for _ in range(cursor.read_array_length(False, 4))]
            partitions += [TopicPartition(topic, number) for number in numbers]
    except KafkaProtocolError:
        return MemberData()
    generation = cursor.read_int32() if cursor.remaining() >= 4 else NO_GENERATION
    return MemberData(partitions, generation)


def encode_generation(generation: int) -> bytes:
    """Return user data of ``cooperative-sticky``: the generation."""
    writer = Writer()
    writer.write_int32(generation)
    return b"".join(writer.pieces())


def decode_generation(user_data: bytes | None) -> int:
    """Return the generation in user data of ``cooperative-sticky``, or -1 without one."""
    if user_data is None or len(user_data) < 4:
        return NO_GENERATION
    return Cursor(user_data).read_int32()
