"""A slow and simple encoder and decoder of format 2 record batches: the reference for ``kafkacore.record``.

The caller compresses: both functions handle the records' bytes as they are.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

from model.wire_primitives import crc32c, decode_varint, encode_varint

from kafkacore.record import Record

Header = tuple[str, bytes | None]


@dataclass(frozen=True)
class ModelRecord:
    """One record; ``offset`` and ``timestamp`` are absolute."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[Header] = field(default_factory=list)


@dataclass(frozen=True)
class ModelBatch:
    """The fields of a batch's header that a test chooses."""

    base_offset: int = 0
    partition_leader_epoch: int = -1
    attributes: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    last_offset_delta: int | None = None
    record_count: int | None = None
    base_timestamp: int | None = None
    max_timestamp: int | None = None


def _sized(data: bytes | None) -> bytes:
    return encode_varint(-1) if data is None else encode_varint(len(data)) + data


def _wrapped(value: int) -> int:
    """Wrap a number to 64 signed bits."""
    return (value + 2**63) % 2**64 - 2**63


def encode_record(record: ModelRecord, base_offset: int, base_timestamp: int) -> bytes:
    body = (
        b"\x00"
        + encode_varint(_wrapped(record.timestamp - base_timestamp))
        + encode_varint(record.offset - base_offset)
    )
    body += _sized(record.key) + _sized(record.value) + encode_varint(len(record.headers))
    for name, value in record.headers:
        body += _sized(name.encode()) + _sized(value)
    return encode_varint(len(body)) + body


def encode_records(records: list[ModelRecord], batch: ModelBatch) -> bytes:
    base_timestamp = records[0].timestamp if batch.base_timestamp is None else batch.base_timestamp
    return b"".join(encode_record(record, batch.base_offset, base_timestamp) for record in records)


def encode_batch(records: list[ModelRecord], batch: ModelBatch, content: bytes | None = None) -> bytes:
    """Encode the batch. ``content`` replaces the encoded records, for example by compressed bytes."""
    if content is None:
        content = encode_records(records, batch)
    times = [record.timestamp for record in records] or [-1]
    last_delta = batch.last_offset_delta
    if last_delta is None:
        last_delta = records[-1].offset - batch.base_offset
    covered = struct.pack(
        ">hiqqqhii",
        batch.attributes,
        last_delta,
        times[0] if batch.base_timestamp is None else batch.base_timestamp,
        max(times) if batch.max_timestamp is None else batch.max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        len(records) if batch.record_count is None else batch.record_count,
    )
    covered += content
    tail = struct.pack(">ibI", batch.partition_leader_epoch, 2, crc32c(covered)) + covered
    return struct.pack(">qi", batch.base_offset, len(tail)) + tail


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def varint(self, bits: int = 32) -> int:
        value, self.at = decode_varint(self.data, self.at, bits)
        return value

    def take(self, size: int) -> bytes:
        if size < 0 or size > len(self.data) - self.at:
            raise ValueError("past the end")
        self.at += size
        return self.data[self.at - size : self.at]

    def sized(self) -> bytes | None:
        size = self.varint()
        return None if size == -1 else self.take(size)


def decode_records(content: bytes, count: int, base_offset: int, base_timestamp: int) -> list[ModelRecord]:
    """Decode the records of uncompressed ``content``.

    Raises
    ------
    ValueError
        The bytes are not exactly the given number of records.
    """
    reader = _Reader(content)
    records = []
    for _ in range(count):
        record = _Reader(reader.take(reader.varint()))
        record.take(1)
        timestamp = _wrapped(base_timestamp + record.varint(64))
        offset = base_offset + record.varint()
        key, value = record.sized(), record.sized()
        headers: list[Header] = []
        for _ in range(record.varint()):
            name = record.sized()
            if name is None:
                raise ValueError("null header key")
            headers.append((name.decode(), record.sized()))
        if record.at != len(record.data):
            raise ValueError("excess bytes in a record")
        records.append(ModelRecord(offset, timestamp, key, value, headers))
    if reader.at != len(content):
        raise ValueError("excess bytes in the batch")
    return records


def read_all(batches: Iterable[Iterable[Record]]) -> list[ModelRecord]:
    """Return the records of a ``RecordBatch`` as model records."""
    return [
        ModelRecord(record.offset, record.timestamp, record.key, record.value, list(record.headers))
        for batch in batches
        for record in batch
    ]
