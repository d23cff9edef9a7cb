"""Records of the metadata log: messages in, the bytes of a record's value out, and back.

A value begins with the version of this frame, then the record's type and version, each an unsigned varint.
Bytes come from a disk: hostile ones raise :class:`~kafkacore.errors.MalformedMessageError`. Does not know:
batches, files, what a record changes. Source: Kafka's ``MetadataRecordSerde``.
"""

from __future__ import annotations

from typing import Final

from kafkacore.errors import MalformedMessageError
from kafkacore.protocol.generated.metadata_records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
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
)
Buffer = bytes | bytearray | memoryview

_FRAME_VERSION: Final = 1
_RECORD_VERSION: Final = 0
#: Kafka's ``MetadataRecordType``.
CLASSES: Final[dict[int, type[MetadataRecord]]] = {
    11: UserScramCredentialRecord,
    14: ClientQuotaRecord,
    18: AccessControlEntryRecord,
    19: RemoveAccessControlEntryRecord,
    22: RemoveUserScramCredentialRecord,
}
_TYPES: Final = {record_class: number for number, record_class in CLASSES.items()}


def encode_record(record: MetadataRecord) -> bytes:
    """The value of a record."""
    writer = Writer()
    writer.write_unsigned_varint(_FRAME_VERSION)
    writer.write_unsigned_varint(_TYPES[type(record)])
    writer.write_unsigned_varint(_RECORD_VERSION)
    record.encode(writer, _RECORD_VERSION)
    return b"".join(bytes(piece) for piece in writer.pieces())


def decode_record(data: Buffer) -> MetadataRecord:
    """What a record says.

    Raises
    ------
    MalformedMessageError
        These bytes are no such record, or one that this version does not know.
    """
    cursor = Cursor(data)
    frame_version = cursor.read_unsigned_varint()
    if frame_version != _FRAME_VERSION:
        raise MalformedMessageError(f"frame version {frame_version} is not known")
    number = cursor.read_unsigned_varint()
    version = cursor.read_unsigned_varint()
    record_class = CLASSES.get(number)
    if record_class is None or version != _RECORD_VERSION:
        raise MalformedMessageError(f"record type {number} version {version} is not known")
    record: MetadataRecord = record_class.decode(cursor, version)
    if cursor.remaining():
        raise MalformedMessageError(f"{cursor.remaining()} bytes behind a record of type {number}")
    return record
