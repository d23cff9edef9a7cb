"""Encodes and decodes the records of the metadata log, as Kafka's ``MetadataRecordSerde`` does.

A record's value begins with three unsigned varints: the frame version, the record type and the record
version. Malformed bytes raise :class:`~kafkacore.errors.MalformedMessageError`.
"""

from __future__ import annotations

from typing import Final

from kafkacore.errors import MalformedMessageError
from kafkacore.protocol.generated.metadata_records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    RemoveAccessControlEntryRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from kafkacore.wire import Cursor, Writer

MetadataRecord = (
    AccessControlEntryRecord
    | RemoveAccessControlEntryRecord
    | UserScramCredentialRecord
    | RemoveUserScramCredentialRecord
    | ClientQuotaRecord
    | ConfigRecord
    | FeatureLevelRecord
)
Buffer = bytes | bytearray | memoryview

_FRAME_VERSION: Final = 1
_RECORD_VERSION: Final = 0
#: Class of each record type, with the numbers of Kafka's ``MetadataRecordType``.
CLASSES: Final[dict[int, type[MetadataRecord]]] = {
    4: ConfigRecord,
    11: UserScramCredentialRecord,
    12: FeatureLevelRecord,
    14: ClientQuotaRecord,
    18: AccessControlEntryRecord,
    19: RemoveAccessControlEntryRecord,
    22: RemoveUserScramCredentialRecord,
}
_TYPES: Final = {record_class: number for number, record_class in CLASSES.items()}


def encode_record(record: MetadataRecord) -> bytes:
    """Encode the value of a record."""
    writer = Writer()
    writer.write_unsigned_varint(_FRAME_VERSION)
    writer.write_unsigned_varint(_TYPES[type(record)])
    writer.write_unsigned_varint(_RECORD_VERSION)
    record.encode(writer, _RECORD_VERSION)
    return b"".join(bytes(piece) for piece in writer.pieces())


def decode_record(data: Buffer) -> MetadataRecord:
    """Decode the value of a record.

    Raises
    ------
    MalformedMessageError
        The bytes are not a valid record, or have an unknown type or version.
    """
    cursor, number, version = record_cursor(data)
    record_class = CLASSES.get(number)
    if record_class is None or version != _RECORD_VERSION:
        raise MalformedMessageError(f"unknown record type {number} version {version}")
    record: MetadataRecord = record_class.decode(cursor, version)
    if cursor.remaining():
        raise MalformedMessageError(f"{cursor.remaining()} extra bytes after a record of type {number}")
    return record


def record_cursor(data: Buffer) -> tuple[Cursor, int, int]:
    """Return a cursor at the fields of a record, and the record's type and version.

    Raises
    ------
    MalformedMessageError
        The bytes do not begin like a record.
    """
    cursor = Cursor(data)
    frame_version = cursor.read_unsigned_varint()
    if frame_version != _FRAME_VERSION:
        raise MalformedMessageError(f"unknown frame version {frame_version}")
    return cursor, cursor.read_unsigned_varint(), cursor.read_unsigned_varint()
