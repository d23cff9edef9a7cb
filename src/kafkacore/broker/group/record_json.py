"""Converts records of ``__consumer_offsets`` to JSON objects with Kafka's field names.

The objects are those that ``kafka-dump-log.sh --offsets-decoder`` prints with Kafka's ``DumpLogSegments`` and
its generated JSON converters.
"""

from __future__ import annotations

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Final, TypeAlias

from kafkacore.broker.group import records
from kafkacore.errors import CorruptRecordError, MalformedMessageError
from kafkacore.protocol import ZERO_UUID
from kafkacore.protocol.generated.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from kafkacore.protocol.generated.group_records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kafkacore.protocol.message import Message, Struct
from kafkacore.record import Record
from kafkacore.wire import Cursor, Uuid

Json: TypeAlias = "int | str | list[Json] | dict[str, Json] | None"

DELETED: Final = "<DELETE>"

#: First and last version of the fields that are not in all versions of their message.
_VERSIONS: Final[dict[tuple[type[Struct], str], tuple[int, int]]] = {
    (OffsetCommitValue, "leader_epoch"): (3, 4),
    (OffsetCommitValue, "expire_timestamp"): (1, 1),
    (OffsetCommitValue, "topic_id"): (4, 4),
    (GroupMetadataValue, "current_state_timestamp"): (2, 4),
    (GroupMetadataValue.MemberMetadata, "group_instance_id"): (3, 4),
    (GroupMetadataValue.MemberMetadata, "rebalance_timeout"): (1, 4),
    (ConsumerProtocolSubscription, "owned_partitions"): (1, 3),
    (ConsumerProtocolSubscription, "generation_id"): (2, 3),
    (ConsumerProtocolSubscription, "rack_id"): (3, 3),
}
#: Default values of tagged fields. A tagged field with its default value is left out.
_DEFAULTS: Final[dict[tuple[type[Struct], str], object]] = {
    (OffsetCommitValue, "topic_id"): ZERO_UUID,
    (ConsumerGroupMetadataValue, "metadata_hash"): 0,
    (
        ConsumerGroupMemberMetadataValue,
        "classic_member_metadata",
    ): ConsumerGroupMemberMetadataValue.ClassicMemberMetadata(),
    (ConsumerGroupTargetAssignmentMetadataValue, "assignment_timestamp"): 0,
    (ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions, "assignment_epochs"): [],
}
_NOTHING: Final = object()


def decoded_record(record: Record) -> dict[str, object]:
    """Return the fields ``key`` and ``payload`` of a record.

    If a record cannot be decoded, ``key`` is a message and ``payload`` is absent.

    Raises
    ------
    CorruptRecordError
        The record has no key.
    """
    if record.key is None:
        raise CorruptRecordError("the record has no key; records of the group coordinator must have one")
    try:
        key = records.decode_key(record.key)
        kind = int.from_bytes(record.key[:2], "big", signed=True)
        if key is None:
            return {"key": f"Unknown record type {kind} at offset {record.offset}, skipping."}
        payload = DELETED if record.value is None else _value_json(key, record.value)
    except MalformedMessageError as error:
        return {"key": f"Error at offset {record.offset}, skipping. {error}"}
    return {"key": {"type": str(kind), "data": _json(key, 0)}, "payload": payload}


def _value_json(key: records.Key, data: bytes) -> dict[str, Json]:
    version = int.from_bytes(data[:2], "big", signed=True)
    value: Message
    if isinstance(key, OffsetCommitKey):
        value = records.decode_offset_commit(data)
    elif isinstance(key, GroupMetadataKey):
        value = records.decode_group_metadata(data)
    else:
        value = records.decode_consumer_value(key, data)
    fields = _json(value, version)
    if isinstance(value, GroupMetadataValue) and value.protocol_type == "consumer":
        fields["members"] = [_member_json(member, version) for member in value.members]
    return {"version": str(version), "data": fields}


def _member_json(member: GroupMetadataValue.MemberMetadata, version: int) -> dict[str, Json]:
    """Return a member of a classic group, with its subscription and assignment if these can be decoded."""
    fields = _json(member, version)
    for name, kind, data in (
        ("subscription", ConsumerProtocolSubscription, member.subscription),
        ("assignment", ConsumerProtocolAssignment, member.assignment),
    ):
        try:
            cursor = Cursor(data)
            embedded = cursor.read_int16()
            if kind.MIN_VERSION <= embedded <= kind.MAX_VERSION:
                fields[name] = _json(kind.decode(cursor, embedded), embedded)
        except MalformedMessageError:
            # Programs that are not consumers may use this protocol type with another format.
            continue
    return fields


def _json(message: Struct, version: int) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for name in message.__slots__:
        place = (type(message), name)
        first, last = _VERSIONS.get(place, (version, version))
        value = getattr(message, name)
        if first <= version <= last and value != _DEFAULTS.get(place, _NOTHING):
            found[camel_case(name)] = _value(value, version)
    return found


def _value(value: object, version: int) -> Json:
    if value is None or isinstance(value, int | str):
        return value
    if isinstance(value, Uuid):
        return urlsafe_b64encode(value.bytes).rstrip(b"=").decode()
    if isinstance(value, bytes | bytearray | memoryview):
        return b64encode(value).decode()
    if isinstance(value, Sequence):
        return [_value(one, version) for one in value]
    assert isinstance(value, Struct), value
    return _json(value, version)


def camel_case(name: str) -> str:
    """Convert the name of a field in Python to its name in Kafka's JSON."""
    return re.sub("_(.)", lambda found: found[1].upper(), name)
