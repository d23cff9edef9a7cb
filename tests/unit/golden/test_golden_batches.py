"""Batches written by Kafka's Java client, read and written by ours."""

from __future__ import annotations

import base64

import pytest
from model.golden_batches import GoldenCase, golden_cases, record_as_golden

from kafkacore.record import LegacyBatchBuilder, RecordBatchBuilder, read_batches
from kafkacore.record.compression import decompress
from kafkacore.record.old_lz4 import with_right_checksum
from kafkacore.structs import TimestampType

ALL = list(golden_cases().values())
MODERN = [case for case in golden_cases().values() if case.magics == {2}]
#: Batches modified in place by a log cleaner or a leader. Our builder does not write such batches.
NOT_BUILT = ("compacted", "emptied", "delete-horizon", "log-append-time", "large")
BUILT = [
    case
    for case in MODERN
    if len(case.batches) == 1
    and case.batches[0]["compression"] == 0
    and not any(word in case.name for word in NOT_BUILT)
]

LEGACY = [case for case in golden_cases().values() if len(case.magics) == 1 and case.magics <= {0, 1}]

#: Batch attributes that golden.json contains under the same name.
HEADER_FIELDS = (
    "base_offset", "last_offset", "next_offset", "size_in_bytes", "magic", "crc", "compression",
    "timestamp_type", "base_timestamp", "max_timestamp", "is_transactional", "is_control", "producer_id",
    "producer_epoch", "base_sequence", "record_count", "partition_leader_epoch",
)  # fmt: skip


def by_name(cases: list[GoldenCase]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


@by_name(ALL)
def test_batch_header_is_read_as_java_reads_it(case: GoldenCase) -> None:
    for read, batch in zip(read_batches(case.content), case.batches, strict=True):
        # For formats 0 and 1, Java reports neither a record count nor a base timestamp.
        known = [field for field in HEADER_FIELDS if field in batch]
        assert {field: getattr(read, field) for field in known} == {field: batch[field] for field in known}
        assert read.record_count == len(batch["records"])


@by_name(ALL)
def test_records_are_read_as_java_reads_them(case: GoldenCase) -> None:
    read = [
        record_as_golden(record.offset, record.timestamp, record.key, record.value, list(record.headers))
        for batch in read_batches(case.content)
        for record in batch
    ]
    assert read == case.records


@by_name(BUILT)
def test_builder_writes_what_java_writes_byte_for_byte(case: GoldenCase) -> None:
    (batch,) = case.batches
    builder = RecordBatchBuilder(1 << 20, timestamp_type=TimestampType.CREATE_TIME)
    for record in case.records:
        headers = [(one["key"], _bytes(one["value"])) for one in record["headers"]]
        builder.append(record["timestamp"], _bytes(record["key"]), _bytes(record["value"]), headers)
    sealed = builder.close(
        producer_id=batch["producer_id"],
        producer_epoch=batch["producer_epoch"],
        base_sequence=batch["base_sequence"],
        is_transactional=batch["is_transactional"],
        is_control=batch["is_control"],
        base_offset=batch["base_offset"],
        partition_leader_epoch=batch["partition_leader_epoch"],
    )
    assert bytes(sealed) == case.content


@by_name(LEGACY)
def test_messages_of_old_formats_are_those_that_java_writes(case: GoldenCase) -> None:
    first = case.batches[0]
    builder = LegacyBatchBuilder(
        first["magic"],
        first["compression"],
        timestamp_type=TimestampType(max(first["timestamp_type"], 0)),
        log_append_time_ms=first["max_timestamp"],
    )
    for record in case.records:
        builder.append(record["offset"], record["timestamp"], _bytes(record["key"]), _bytes(record["value"]))
    ours = bytes(builder.close())
    if first["compression"] == 0:
        assert ours == case.content
    else:
        assert _unwrapped(ours, first["magic"]) == _unwrapped(case.content, first["magic"])


def _unwrapped(message: bytes, magic: int) -> tuple[bytes, bytes, bytes]:
    """Return the offset, the bytes from the attributes to the key, and the decompressed message set."""
    value_at = 34 if magic == 1 else 26
    codec = message[17] & 7
    return (
        message[:8],
        message[16 : value_at - 4],
        bytes(decompress(codec, with_right_checksum(message[value_at:]))),
    )


def _bytes(golden: str | None) -> bytes | None:
    return None if golden is None else base64.b64decode(golden)
