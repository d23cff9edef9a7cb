"""Reading batches: headers, lazy records, partial trailing batches, and malformed bytes."""

import gc
import threading
from dataclasses import replace

import pytest
from model.records_v2 import ModelBatch, ModelRecord, encode_batch, encode_records, read_all

from kafkacore.errors import CorruptRecordError, InvalidRecordError
from kafkacore.record import (
    BatchHeader,
    ColumnBuilder,
    Compression,
    Record,
    RecordBatch,
    assign_offset,
    read_batch_headers,
    read_batches,
    validate_batch,
)
from kafkacore.record.compression import compress
from kafkacore.structs import TimestampType

RECORDS = [
    ModelRecord(0, 1000, b"k", b"v", [("h", b"1"), ("h", None), ("grün", b"")]),
    ModelRecord(1, 900, None, None),
    ModelRecord(2, 1100, b"", b"", []),
]
PLAIN = encode_batch(RECORDS, ModelBatch())
HEADER_SIZE = 61


def one(data: bytes) -> RecordBatch:
    (batch,) = read_batches(data)
    return batch


def at(records: list[ModelRecord], base_offset: int) -> list[ModelRecord]:
    return [replace(record, offset=record.offset + base_offset) for record in records]


def test_header_fields_are_those_on_the_wire() -> None:
    wanted = ModelBatch(
        base_offset=7,
        partition_leader_epoch=3,
        attributes=0x18,
        producer_id=11,
        producer_epoch=2,
        base_sequence=5,
    )
    batch = one(encode_batch(at(RECORDS, 7), wanted))
    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (7, 9, 10)
    assert (batch.partition_leader_epoch, batch.magic, batch.record_count) == (3, 2, 3)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence) == (
        11,
        2,
        5,
        7,
    )
    assert (batch.base_timestamp, batch.max_timestamp) == (1000, 1100)
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert batch.compression is Compression.NONE
    assert (batch.is_transactional, batch.is_control, batch.has_delete_horizon) == (True, False, False)
    assert (batch.position, batch.size_in_bytes, len(batch)) == (0, len(PLAIN), 3)


def test_records_are_those_of_the_model() -> None:
    assert read_all([one(PLAIN)]) == RECORDS


def test_a_batch_can_be_iterated_twice() -> None:
    batch = one(PLAIN)
    assert read_all([batch]) == read_all([batch]) == RECORDS


def test_a_record_knows_its_sizes_and_clock() -> None:
    records = list(one(PLAIN))
    assert [(record.key_size, record.value_size) for record in records] == [(1, 1), (-1, -1), (0, 0)]
    assert {record.timestamp_type for record in records} == {TimestampType.CREATE_TIME}
    assert "offset 0" in repr(records[0])


def test_log_append_time_replaces_the_records_times() -> None:
    batch = one(encode_batch(RECORDS, ModelBatch(attributes=0x08, max_timestamp=5555)))
    assert [record.timestamp for record in batch] == [5555] * 3
    assert {record.timestamp_type for record in batch} == {TimestampType.LOG_APPEND_TIME}


def test_control_records_are_read_and_known_as_such() -> None:
    marker = ModelRecord(0, 1000, b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x05")
    batch = one(encode_batch([marker], ModelBatch(attributes=0x30, producer_id=9, producer_epoch=1)))
    assert (batch.is_control, batch.is_transactional) == (True, True)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence) == (
        9,
        1,
        -1,
        -1,
    )
    assert read_all([batch]) == [marker]


def test_a_delete_horizon_stands_in_the_base_timestamp_and_leaves_the_records_theirs() -> None:
    batch = one(encode_batch(RECORDS, ModelBatch(attributes=0x40, base_timestamp=86_400_000)))
    assert (batch.has_delete_horizon, batch.base_timestamp, batch.max_timestamp) == (True, 86_400_000, 1100)
    assert read_all([batch]) == RECORDS
    assert not one(PLAIN).has_delete_horizon


def test_a_record_outlives_everything_else() -> None:
    content = compress(Compression.ZSTD, encode_records(RECORDS, ModelBatch()))
    record = next(iter(one(encode_batch(RECORDS, ModelBatch(attributes=4), bytes(content)))))
    gc.collect()
    assert (record.key, record.headers) == (b"k", RECORDS[0].headers)


def test_batches_follow_each_other_from_any_buffer() -> None:
    second = encode_batch(at(RECORDS, 3), ModelBatch(base_offset=3))
    both = PLAIN + second
    for buffer in (both, bytearray(both), memoryview(both), memoryview(b"xx" + both)[2:]):
        batches = list(read_batches(buffer))
        assert [batch.position for batch in batches] == [0, len(PLAIN)]
        assert read_all(batches) == RECORDS + at(RECORDS, 3)


def test_a_batch_cut_short_at_the_end_is_left_out() -> None:
    for cut in range(len(PLAIN)):
        assert read_all(read_batches(PLAIN + PLAIN[:cut])) == RECORDS
        assert len(read_batch_headers(PLAIN + PLAIN[:cut])) == 1


def test_good_batches_come_before_the_error_of_a_bad_one() -> None:
    broken = bytearray(PLAIN)
    broken[-1] ^= 1
    batches = read_batches(PLAIN + broken)
    assert read_all([next(batches)]) == RECORDS
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match="CRC") as caught:
            next(batches)
        assert caught.value.offset == 0


def test_crcs_are_left_alone_if_asked() -> None:
    broken = bytearray(PLAIN)
    broken[17] ^= 1
    assert read_all(read_batches(broken, check_crcs=False)) == RECORDS


@pytest.mark.parametrize("codec", list(Compression), ids=lambda codec: codec.name.lower())
def test_every_codec_is_read(codec: Compression) -> None:
    content = encode_records(RECORDS, ModelBatch())
    content = bytes(compress(codec, content)) if codec else content
    batch = one(encode_batch(RECORDS, ModelBatch(attributes=codec), content))
    assert batch.compression is codec
    assert read_all([batch]) == RECORDS


def test_the_limit_of_a_decompressed_batch_is_named_with_the_offset() -> None:
    records = [ModelRecord(40, 0, None, bytes(100_000))]
    batch = ModelBatch(base_offset=40, attributes=3)
    data = encode_batch(records, batch, bytes(compress(3, encode_records(records, batch))))
    (limited,) = read_batches(data, max_decompressed_size=50_000)
    with pytest.raises(CorruptRecordError, match="max_decompressed_size=50000") as caught:
        iter(limited)
    assert caught.value.offset == 40
    assert read_all(read_batches(data, max_decompressed_size=200_000)) == records


@pytest.mark.parametrize("codec", list(Compression), ids=lambda codec: codec.name.lower())
def test_a_batch_emptied_by_compaction_has_no_records_whatever_its_codec(codec: Compression) -> None:
    data = encode_batch([], ModelBatch(base_offset=5, attributes=codec, last_offset_delta=2), b"")
    batch = one(data)
    assert (read_all([batch]), batch.next_offset) == ([], 8)
    assert ColumnBuilder(["offset"]).append(batch) == (0, 8)


def test_threads_that_open_one_compressed_batch_see_the_same_records() -> None:
    records = [ModelRecord(number, 0, None, b"%d" % number * 50) for number in range(2000)]
    content = bytes(compress(Compression.GZIP, encode_records(records, ModelBatch())))
    batch = one(encode_batch(records, ModelBatch(attributes=1), content))
    found: list[list[ModelRecord]] = []
    threads = [threading.Thread(target=lambda: found.append(read_all([batch]))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [records] * 4


# ---- Malformed bytes ---------------------------------------------------------------------------------------
def refused(data: bytes, reason: str, **kwargs: bool) -> None:
    with pytest.raises(CorruptRecordError, match=reason):
        read_all(read_batches(data, **kwargs))


@pytest.mark.parametrize(
    ("where", "what", "reason"),
    [
        (8, (48).to_bytes(4, "big"), "length 48 is less than the minimum of 49"),
        (8, (13).to_bytes(4, "big"), "length 13 is less than the minimum of 14"),
        (8, b"\xff\xff\xff\xff", "length -1 is less than the minimum of 14"),
        (8, b"\x80\x00\x00\x00", "less than the minimum of 14"),
        (16, b"\x03", "unknown magic 3; the newest is 2"),
        (16, b"\xff", "unknown magic 255; the newest is 2"),
        (16, b"\x01", "format 1 does not have compression codec 7"),
        (16, b"\x00", "format 0 does not have compression codec 7"),
        (0, b"\xff" * 8, "base offset -1"),
        (0, b"\x7f" + b"\xff" * 7, "base offset"),
        (22, b"\x05", "unknown compression codec 5"),
        (23, b"\xff\xff\xff\xff", "last offset delta -1"),
        (57, b"\xff\xff\xff\xff", "record count -1"),
        (57, b"\x7f\xff\xff\xff", "record count 2147483647 in a batch of 3 offsets"),
        (57, b"\x00\x00\x00\x02", "extra bytes after its last record"),
    ],
)
def test_a_header_that_breaks_the_format_is_refused(where: int, what: bytes, reason: str) -> None:
    data = bytearray(PLAIN)
    data[where : where + len(what)] = what
    refused(bytes(data), reason, check_crcs=False)


def test_a_huge_count_takes_no_memory() -> None:
    data = encode_batch(RECORDS, ModelBatch(record_count=2**31 - 1, last_offset_delta=2**31 - 1))
    refused(data, "2147483647 records has only .* bytes")


def _broken(content: bytes, count: int = 1) -> bytes:
    return encode_batch(RECORDS[:1], ModelBatch(record_count=count, last_offset_delta=0), content)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x7e" + bytes(6), "length exceeds"),
        (b"\x01" + bytes(6), "length exceeds"),
        (b"\xff\xff\xff\xff\x7f" + bytes(6), "length exceeds"),
        (b"\x02\x00" + bytes(6), "fixed fields"),
        (b"\x0c\x00\x00\x02\x01\x01\x00", "offset delta"),
        (b"\x0c\x00\x00\x01\x01\x01\x00", "offset delta"),
        (b"\x0c\x00\x00\x00\x03\x01\x00", "key size"),
        (b"\x0c\x00\x00\x00\x7e\x01\x00", "key size"),
        (b"\x0c\x00\x00\x00\x01\x03\x00", "value size"),
        (b"\x0c\x00\x00\x00\x01\x7e\x00", "value size"),
        (b"\x0c\x00\x00\x00\x01\x01\x01", "header count"),
        (b"\x0c\x00\x00\x00\x01\x01\x02", "header count"),
        (b"\x10\x00\x00\x00\x01\x01\x02\x01\x01", "header"),
        (b"\x10\x00\x00\x00\x01\x01\x02\x00\x03", "header"),
        (b"\x0e\x00\x00\x00\x01\x01\x00\x00", "extra bytes at its end"),
        (b"\x0c\x00\x00\x00\x01\x01\x00\x00", "extra bytes after its last record"),
    ],
)
def test_a_record_that_breaks_the_format_is_refused(content: bytes, reason: str) -> None:
    refused(_broken(content), reason)


def test_an_error_in_a_record_names_the_batch_and_the_record() -> None:
    content = encode_records(RECORDS[:2], ModelBatch())
    data = encode_batch(RECORDS, ModelBatch(), content + b"\x7e" + bytes(6))
    records = iter(one(data))
    assert [next(records).offset, next(records).offset] == [0, 1]
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match="record 2 of 3 in batch 0"):
            next(records)


def test_no_cut_and_no_flipped_bit_lets_another_error_out() -> None:
    for codec in Compression:
        content = encode_records(RECORDS, ModelBatch())
        content = bytes(compress(codec, content)) if codec else content
        data = encode_batch(RECORDS, ModelBatch(attributes=codec), content)
        for check_crcs in (True, False):
            survived = 0
            for bit in range(len(data) * 8):
                broken = bytearray(data)
                broken[bit // 8] ^= 1 << bit % 8
                try:
                    survived += read_all(read_batches(broken, check_crcs, 1 << 20)) == RECORDS
                except CorruptRecordError:
                    continue
            # The CRC misses only changes of the leader epoch, and lengths that make the batch seem partial.
            assert survived == 32 or not check_crcs
        for cut in range(len(data)):
            assert read_all(read_batches(data[:cut])) == []


def test_a_timestamp_delta_beyond_64_bits_wraps_and_does_no_harm() -> None:
    batch = ModelBatch(base_timestamp=2**63 - 1, max_timestamp=2**63 - 1)
    data = encode_batch([ModelRecord(0, 2**63, None, None)], batch)
    assert [record.timestamp for record in one(data)] == [-(2**63)]


def test_a_header_key_that_is_not_utf8_is_read_with_replacements() -> None:
    content = b"\x14\x00\x00\x00\x01\x01\x02\x04a\xff\x00"
    assert [record.headers for record in one(_broken(content))] == [[("a\ufffd", b"")]]


@pytest.mark.parametrize("kind", [RecordBatch, Record, BatchHeader])
def test_only_the_reader_makes_them(kind: type) -> None:
    with pytest.raises(TypeError, match="can be created only by"):
        kind()


# ---- For the broker ----------------------------------------------------------------------------------------
def test_headers_alone_are_read_without_looking_at_records() -> None:
    data = bytearray(PLAIN + encode_batch(at(RECORDS, 3), ModelBatch(base_offset=3)))
    data[HEADER_SIZE : HEADER_SIZE + 4] = b"\xff" * 4
    headers = read_batch_headers(data)
    assert [(header.base_offset, header.next_offset, header.position) for header in headers] == [
        (0, 3, 0),
        (3, 6, len(PLAIN)),
    ]


def test_offset_and_epoch_are_assigned_outside_the_crc() -> None:
    data = bytearray(b"before" + PLAIN)
    assign_offset(memoryview(data)[6:], 1000, 8)
    (batch,) = read_batches(memoryview(data)[6:])
    assert (batch.base_offset, batch.last_offset, batch.partition_leader_epoch) == (1000, 1002, 8)
    assert read_all([batch]) == at(RECORDS, 1000)


@pytest.mark.parametrize("data", [bytearray(), bytearray(60), bytearray(PLAIN[:16] + b"\x01" + PLAIN[17:])])
def test_offsets_are_assigned_to_batches_only(data: bytearray) -> None:
    before = bytes(data)
    with pytest.raises(CorruptRecordError, match="not a batch"):
        assign_offset(data, 5, 5)
    assert data == before


def test_offsets_are_not_assigned_in_read_only_memory() -> None:
    with pytest.raises((BufferError, TypeError)):
        assign_offset(PLAIN, 5, 5)


def test_a_good_batch_is_valid() -> None:
    batch = validate_batch(PLAIN)
    assert (batch.record_count, batch.size_in_bytes) == (3, len(PLAIN))


@pytest.mark.parametrize(
    ("data", "error", "reason"),
    [
        (b"", CorruptRecordError, "do not contain a complete batch"),
        (PLAIN[:-1], CorruptRecordError, "do not contain a complete batch"),
        (PLAIN[:-1] + b"\x01", CorruptRecordError, "CRC"),
        (PLAIN + PLAIN, InvalidRecordError, "bytes follow the batch"),
        (PLAIN + b"x", InvalidRecordError, "bytes follow the batch"),
        (encode_batch(RECORDS, ModelBatch(attributes=0x20)), InvalidRecordError, "control"),
        (
            encode_batch(RECORDS, ModelBatch(last_offset_delta=3)),
            InvalidRecordError,
            "4 offsets has 3 records",
        ),
        (encode_batch([], ModelBatch(last_offset_delta=0), b""), InvalidRecordError, "0 records"),
        (encode_batch(RECORDS, ModelBatch(producer_id=5)), InvalidRecordError, "producer id 5"),
        (
            encode_batch([RECORDS[1], RECORDS[0], RECORDS[2]], ModelBatch(base_timestamp=0)),
            CorruptRecordError,
            "offset delta",
        ),
        (_broken(b"\x0c\x00\x00\x00\x03\x01\x00"), CorruptRecordError, "key size"),
        (_broken(b"\x0c\x00\x00\x00\x01\x01\x00\x00"), CorruptRecordError, "extra bytes after"),
    ],
)
def test_a_batch_that_no_producer_may_send_is_not_valid(
    data: bytes, error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        validate_batch(data)


def test_records_are_not_validated_if_not_asked() -> None:
    assert validate_batch(_broken(b"\x0c\x00\x00\x00\x03\x01\x00"), check_records=False).record_count == 1


# ---- Reused record objects ---------------------------------------------------------------------------------
def numbered(count: int, value_size: int = 5) -> RecordBatch:
    records = [
        ModelRecord(number, 1000 + number, b"k%d" % number, (b"%d" % number).ljust(value_size, b"."))
        for number in range(count)
    ]
    return one(encode_batch(records, ModelBatch()))


SIZES = [5, 5000]


@pytest.mark.parametrize("value_size", SIZES)
def test_records_that_are_kept_stay_what_they_are(value_size: int) -> None:
    kept = [record for record in numbered(50, value_size) if record.offset % 3 == 0]
    assert [record.offset for record in kept] == list(range(0, 50, 3))
    assert [record.timestamp for record in kept] == list(range(1000, 1050, 3))
    assert [record.key for record in kept] == [b"k%d" % number for number in range(0, 50, 3)]
    assert [record.value for record in kept] == [
        (b"%d" % number).ljust(value_size, b".") for number in range(0, 50, 3)
    ]


@pytest.mark.parametrize("value_size", SIZES)
def test_values_that_are_kept_stay_what_they_are_without_their_records(value_size: int) -> None:
    values = [record.value for record in numbered(50, value_size)]
    assert values == [(b"%d" % number).ljust(value_size, b".") for number in range(50)]
    views = [memoryview(record.value or b"") for record in numbered(50, value_size)]
    assert views == values
    assert len({hash(record.value) for record in numbered(50, value_size)}) == 50


@pytest.mark.parametrize("value_size", SIZES)
def test_record_that_only_a_caller_holds_is_not_reused(value_size: int) -> None:
    """Python 3.14 does not count the reference of an argument that a variable of the caller holds."""
    iterator = iter(numbered(50, value_size))
    seen = []

    def read_after_the_rest(record: Record | None) -> None:
        if record is not None:
            read_after_the_rest(next(iterator, None))
            seen.append((record.offset, record.value))

    read_after_the_rest(next(iterator))
    assert seen == [(number, (b"%d" % number).ljust(value_size, b".")) for number in reversed(range(50))]


def test_a_loop_that_keeps_nothing_uses_two_records() -> None:
    assert len({id(record) for record in numbered(50)}) == 2
    assert len({id(record) for record in numbered(50, 5000)}) == 2
    iterator = iter(numbered(50))
    first, second, third = next(iterator), next(iterator), next(iterator)
    assert (first.value, second.value, third.value) == (b"0....", b"1....", b"2....")


def test_values_of_any_size_follow_each_other_in_one_object() -> None:
    sizes = [3, 0, 200, 1, 100, 99, 16, 15, 17, 2, 3, 90, 1, 0]
    records = [ModelRecord(number, 0, None, bytes([number]) * size) for number, size in enumerate(sizes)]
    records += [ModelRecord(20, 0, None, None), ModelRecord(21, 0, None, b"ab")]
    batch = one(encode_batch(records, ModelBatch()))
    for record, expected in zip(batch, records, strict=True):
        assert record.value == expected.value
        assert hash(record.value) == hash(expected.value)
        assert bytes(memoryview(record.value or b"")) == (expected.value or b"")


def test_threads_may_share_an_iterator_and_keep_their_records() -> None:
    iterator = iter(numbered(4000))
    found: list[tuple[int, Record]] = []

    def take() -> None:
        found.extend((record.offset, record) for record in iterator)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(offset for offset, _ in found) == list(range(4000))
    assert all((record.offset, record.key) == (offset, b"k%d" % offset) for offset, record in found)


def test_a_broken_record_does_not_touch_the_ones_before() -> None:
    content = encode_records(RECORDS[:2], ModelBatch())
    records = iter(one(encode_batch(RECORDS, ModelBatch(), content + b"\x7e" + bytes(6))))
    first, second = next(records), next(records)
    for _ in range(3):
        with pytest.raises(CorruptRecordError):
            next(records)
    assert (first.key, first.value, second.key, second.offset) == (b"k", b"v", None, 1)


# ---- Memory ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("value_size", SIZES)
def test_a_detached_record_lets_go_of_the_buffer(value_size: int) -> None:
    headers = [("h", b"1"), ("h", None)]
    records = [
        ModelRecord(0, 1000, b"key", b"v" * value_size, headers),
        ModelRecord(1, 1001, None, None),
        ModelRecord(2, 1002, b"", b""),
    ]
    data = bytearray(encode_batch(records, ModelBatch(attributes=0x08, max_timestamp=7)))
    kept = list(one(data))
    with pytest.raises(BufferError):
        data.append(0)
    assert [record.detach() for record in kept] == kept
    assert kept[0].detach().value == b"v" * value_size
    gc.collect()
    data[:] = bytes(len(data))
    data.append(0)
    assert [(record.offset, record.timestamp, record.timestamp_type) for record in kept] == [
        (number, 7, TimestampType.LOG_APPEND_TIME) for number in range(3)
    ]
    assert [(record.key, record.value, record.headers) for record in kept] == [
        (record.key, record.value, record.headers) for record in records
    ]
    assert [(record.key_size, record.value_size) for record in kept] == [(3, value_size), (-1, -1), (0, 0)]


def test_a_record_detached_within_the_loop_is_not_filled_again() -> None:
    kept = [record.detach() for record in numbered(10)]
    assert [record.value for record in kept] == [b"%d...." % number for number in range(10)]
    for record in numbered(10):
        record.detach()
        assert record.value == b"%d...." % record.offset
