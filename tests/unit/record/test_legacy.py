"""Messages of format 0 and 1: reading, also from other writers, and the error for corrupt ones."""

from collections.abc import Callable
from typing import Any

import lz4.frame
import pyarrow as pa
import pytest
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder as AiokafkaWriter
from kafka.record.legacy_records import LegacyRecordBatchBuilder as KafkaPythonWriter
from model.legacy_cases import OLD_CODECS, RECORDS, both_formats, every_codec
from model.record_columns import COLUMNS, record_batch
from model.records_legacy import (
    LOG_APPEND_TIME,
    as_read,
    encode_message,
    encode_set,
    encode_wrapper,
    inner_set,
)
from model.records_v2 import ModelBatch, ModelRecord, encode_batch, read_all

from kafkacore.errors import CorruptRecordError
from kafkacore.record import (
    ColumnBuilder,
    Compression,
    decode,
    read_batch_headers,
    read_batches,
    validate_batch,
)
from kafkacore.record.compression import compress
from kafkacore.record.old_lz4 import with_right_checksum, xxhash32
from kafkacore.structs import TimestampType


def wrapped(
    magic: int, codec: Compression, records: list[ModelRecord] = RECORDS, attributes: int = 0
) -> bytes:
    content = bytes(compress(codec, inner_set(magic, records)))
    return encode_wrapper(magic, records, codec | attributes, content)


def wrapper_of(content: bytes, magic: int = 1, offset: int = 75) -> bytes:
    return encode_message(magic, offset, 1100, None, bytes(compress(Compression.GZIP, content)), 1)


# ---- Read --------------------------------------------------------------------------------------------------
@both_formats
def test_each_plain_message_is_a_batch_of_one_record(magic: int) -> None:
    batches = list(read_batches(encode_set(magic, RECORDS)))
    assert read_all(batches) == as_read(magic, RECORDS)
    assert [(batch.base_offset, batch.last_offset, batch.record_count) for batch in batches] == [
        (70, 70, 1),
        (71, 71, 1),
        (75, 75, 1),
    ]
    assert {batch.magic for batch in batches} == {magic}


@both_formats
@every_codec
def test_a_compressed_set_is_a_batch_with_the_offsets_of_its_messages(magic: int, codec: Compression) -> None:
    (batch,) = read_batches(wrapped(magic, codec))
    assert read_all([batch]) == read_all([batch]) == as_read(magic, RECORDS)
    assert (batch.base_offset, batch.last_offset, batch.next_offset, len(batch)) == (70, 75, 76, 3)
    assert (batch.compression, batch.magic) == (codec, magic)
    assert (batch.is_control, batch.is_transactional, batch.has_delete_horizon) == (False, False, False)
    assert (batch.producer_id, batch.partition_leader_epoch) == (-1, -1)


def test_format_0_has_no_timestamps_and_nobodys_clock() -> None:
    for data in (encode_set(0, RECORDS), wrapped(0, Compression.GZIP, attributes=LOG_APPEND_TIME)):
        for batch in read_batches(data):
            assert batch.timestamp_type is TimestampType.NO_TIMESTAMP_TYPE
            assert [record.timestamp for record in batch] == [-1] * len(batch)
    assert (
        pa.record_batch(decode(encode_set(0, RECORDS), ["timestamp_type"])).column(0).to_pylist() == [-1] * 3
    )


def test_log_append_time_of_a_wrapper_is_every_records_time() -> None:
    (batch,) = read_batches(wrapped(1, Compression.GZIP, attributes=LOG_APPEND_TIME))
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert [record.timestamp for record in batch] == [1100] * 3
    (plain,) = read_batches(encode_message(1, 3, 77, None, b"v", LOG_APPEND_TIME))
    assert [(record.timestamp, record.timestamp_type) for record in plain] == [
        (77, TimestampType.LOG_APPEND_TIME)
    ]


def test_a_wrapper_with_offset_0_leaves_the_relative_offsets_as_they_are() -> None:
    records = [ModelRecord(number, number, None, b"v") for number in range(3)]
    content = bytes(compress(Compression.GZIP, inner_set(1, records)))
    (batch,) = read_batches(encode_message(1, 0, 2, None, content, 1))
    assert read_all([batch]) == records
    assert (batch.base_offset, batch.next_offset) == (0, 3)


def test_a_set_without_its_first_messages_keeps_their_offsets_free() -> None:
    kept = [ModelRecord(71, 1, None, b"a"), ModelRecord(74, 2, None, b"b")]
    content = b"".join(encode_message(1, one.offset - 70, one.timestamp, None, one.value) for one in kept)
    (batch,) = read_batches(wrapper_of(content, offset=74))
    assert (read_all([batch]), batch.base_offset, batch.last_offset) == (kept, 71, 74)


@both_formats
def test_columns_hold_what_records_do(magic: int) -> None:
    data = wrapped(magic, Compression.LZ4) + encode_set(magic, [ModelRecord(80, 5, b"a", b"b")])
    expected = as_read(magic, [*RECORDS, ModelRecord(80, 5, b"a", b"b")])
    found = pa.record_batch(decode(data))
    found.validate(full=True)
    assert found.equals(record_batch(expected, COLUMNS, timestamp_type=-1 if magic == 0 else 0))
    (batch, _) = read_batches(data)
    builder = ColumnBuilder(["offset"])
    assert builder.append(batch, 71, 1) == (1, 75)
    assert builder.append(batch, 75) == (1, 76)


def test_formats_may_follow_each_other() -> None:
    modern = [ModelRecord(80, 5, b"k", b"v", [("h", b"x")])]
    data = (
        encode_set(0, RECORDS[:1])
        + encode_set(1, RECORDS[1:])
        + encode_batch(modern, ModelBatch(base_offset=80))
    )
    assert read_all(read_batches(data)) == as_read(0, RECORDS[:1]) + RECORDS[1:] + modern


@both_formats
def test_a_message_cut_short_at_the_end_is_left_out(magic: int) -> None:
    whole = encode_set(magic, RECORDS[:1])
    for following in (whole, wrapped(magic, Compression.GZIP)):
        for cut in range(len(following)):
            assert read_all(read_batches(whole + following[:cut])) == as_read(magic, RECORDS[:1])
            assert len(read_batch_headers(whole + following[:cut])) == 1


def test_headers_of_messages_are_read_without_unpacking() -> None:
    data = encode_set(0, RECORDS[:1]) + wrapped(1, Compression.GZIP)
    plain, wrapper = read_batch_headers(data)
    assert (plain.magic, plain.base_offset, plain.max_timestamp, plain.record_count) == (0, 70, -1, -1)
    assert (wrapper.magic, wrapper.base_offset, wrapper.max_timestamp) == (1, 75, 1100)
    assert wrapper.compression is Compression.GZIP


def test_timestamps_of_a_set_may_be_anything() -> None:
    records = [ModelRecord(0, 2**63 - 1, None, b""), ModelRecord(1, -(2**63), None, b"")]
    assert read_all(read_batches(wrapped(1, Compression.GZIP, records))) == records


# ---- Other writers -----------------------------------------------------------------------------------------
WRITERS = {"kafka-python": KafkaPythonWriter, "aiokafka": AiokafkaWriter}


# LZ4 of format 0 by these peers needs the package xxhash. The golden files cover Kafka's client.
@pytest.mark.parametrize(("magic", "codec"), [(0, 0), (0, 1), (1, 0), (1, 1), (1, 3)])
@pytest.mark.parametrize("peer", WRITERS)
def test_we_read_what_peers_write(peer: str, magic: int, codec: int) -> None:
    make: Callable[..., Any] = WRITERS[peer]
    writer = make(magic=magic, compression_type=codec, batch_size=1 << 20)
    records = [ModelRecord(number, 1000 + number, b"k", b"v" * number) for number in range(50)]
    for record in records:
        arguments = {"timestamp": record.timestamp, "key": record.key, "value": record.value}
        writer.append(record.offset, **arguments)
    built = writer.build()
    assert read_all(read_batches(bytes(built))) == as_read(magic, records)


def broken_checksum(frame: bytes) -> bytes:
    """Return the frame with the header checksum of Kafka's format 0, which wrongly covers the magic too."""
    # The frame has no content size and no dictionary, so its descriptor has two bytes.
    return frame[:6] + bytes([xxhash32(frame[:6]) >> 8 & 0xFF]) + frame[7:]


def test_lz4_of_format_0_is_read_with_its_wrong_header_checksum() -> None:
    frame = broken_checksum(lz4.frame.compress(inner_set(0, RECORDS), store_size=False))
    with pytest.raises(RuntimeError):
        lz4.frame.decompress(frame)
    assert read_all(read_batches(encode_wrapper(0, RECORDS, 3, frame))) == as_read(0, RECORDS)
    frame = broken_checksum(lz4.frame.compress(inner_set(1, RECORDS), store_size=False))
    with pytest.raises(CorruptRecordError, match="lz4"):
        list(read_batches(encode_wrapper(1, RECORDS, 3, frame)))


@pytest.mark.parametrize("store_size", [True, False])
def test_the_right_header_checksum_is_that_of_the_library(store_size: bool) -> None:
    frame = lz4.frame.compress(b"some text", store_size=store_size)
    at = 14 if store_size else 6
    assert with_right_checksum(frame) == frame
    assert with_right_checksum(frame[:at] + b"\x00" + frame[at + 1 :]) == frame


@pytest.mark.parametrize("data", [b"", b"\x04\x22\x4d\x18", b"\x04\x22\x4d\x18\x60", b"other bytes"])
def test_what_is_no_whole_lz4_header_is_left_as_it_is(data: bytes) -> None:
    assert with_right_checksum(data) == data


# ---- Corrupt messages --------------------------------------------------------------------------------------
def refused(data: bytes, reason: str, *, check_crcs: bool = True) -> None:
    with pytest.raises(CorruptRecordError, match=reason):
        read_all(read_batches(data, check_crcs))


def message(offset: int = 0, *, magic: int = 1, attributes: int = 0, value: bytes | None = b"v") -> bytes:
    return encode_message(magic, offset, 5, None, value, attributes)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "a compressed set is empty"),
        (message()[:-1], "length is invalid"),
        (message()[:11], "truncated"),
        (message() + b"\x00", "truncated"),
        (message(magic=0), "message of magic 0 is in a set of magic 1"),
        (message(magic=2), "message of magic 2 is in a set of magic 1"),
        (message(attributes=1), "a compressed set contains a compressed message"),
        (message(1) + message(1), "offset 1 follows offset 1"),
        (message(1) + message(0), "offset 0 follows offset 1"),
        (message(-1), "offset -1"),
        (message(76), "relative offset 76"),
        (message(0) + message(2**31), r"offset 2147483648 is too far from the first offset 0"),
        (message()[:-1] + b"w", "CRC mismatch of a message in a compressed set"),
        (encode_message(1, 0, 5, None, b"v", extra=b"x"), "extra bytes at its end"),
    ],
)
def test_a_compressed_set_that_breaks_the_format_is_refused(content: bytes, reason: str) -> None:
    refused(wrapper_of(content), reason)


def test_the_error_of_a_set_names_the_message_and_the_offset() -> None:
    with pytest.raises(CorruptRecordError, match="message 1 of the set at offset 75") as caught:
        list(read_batches(wrapper_of(message(0) + message(0))))
    assert caught.value.offset == 75


def test_offsets_of_format_0_must_lie_within_31_bits_of_each_other() -> None:
    refused(wrapper_of(message(5, magic=0), magic=0, offset=2**31 + 5), "offsets 5 to")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (encode_message(1, 5, 5, None, None, 1), "the value of a compressed message is null"),
        (encode_message(1, 5, 5, None, b"not gzip", 1), "gzip"),
        (encode_message(1, 5, 5, None, b"x", 4), "format 1 does not have compression codec 4"),
        (encode_message(0, 5, 5, None, b"x", 7), "format 0 does not have compression codec 7"),
        (encode_message(1, -1, 5, None, b"x"), "base offset -1"),
        (encode_message(1, 2**63 - 1, 5, None, b"x"), "base offset"),
        (encode_message(1, 5, 5, None, b"x", extra=b"y"), "extra bytes at its end"),
        (encode_message(0, 5, 5, None, None)[:11] + b"\x0d", "length 13 is less than the minimum of 14"),
        (
            encode_message(1, 5, 5, None, None)[:11] + b"\x15" + bytes(4) + b"\x01" + bytes(16),
            "length 21 is less than the minimum of 22",
        ),
    ],
)
def test_a_message_that_breaks_the_format_is_refused(data: bytes, reason: str) -> None:
    refused(data, reason)


@pytest.mark.parametrize("where", [26, 30])
@pytest.mark.parametrize("size", [b"\xff\xff\xff\xfe", b"\x7f\xff\xff\xff"])
def test_a_size_that_passes_the_end_is_refused(where: int, size: bytes) -> None:
    data = bytearray(encode_message(1, 5, 5, None, b"value"))
    data[where : where + 4] = size
    refused(bytes(data), "size exceeds the message", check_crcs=False)


def test_a_wrong_crc_is_refused_and_left_alone_if_asked() -> None:
    data = encode_message(1, 5, 5, None, b"value")
    refused(data[:-1] + b"x", "CRC mismatch")
    assert [record.value for batch in read_batches(data[:-1] + b"x", False) for record in batch] == [b"valux"]
    inside = wrapper_of(message()[:-1] + b"w")
    assert [record.value for batch in read_batches(inside, False) for record in batch] == [b"w"]


@every_codec
def test_a_set_that_decompresses_to_more_than_the_limit_is_refused(codec: Compression) -> None:
    data = wrapped(1, codec, [ModelRecord(0, 0, None, bytes(100_000))])
    with pytest.raises(CorruptRecordError, match="max_decompressed_size=50000") as caught:
        list(read_batches(data, max_decompressed_size=50_000))
    assert caught.value.offset == 0
    assert read_all(read_batches(data, max_decompressed_size=200_000))[0].value == bytes(100_000)


@both_formats
@pytest.mark.parametrize("codec", [Compression.NONE, *OLD_CODECS])
def test_no_cut_and_no_flipped_bit_lets_another_error_out(magic: int, codec: Compression) -> None:
    data = wrapped(magic, codec) if codec else encode_set(magic, RECORDS[:1])
    for check_crcs in (True, False):
        for bit in range(len(data) * 8):
            broken = bytearray(data)
            broken[bit // 8] ^= 1 << bit % 8
            try:
                read_all(read_batches(broken, check_crcs, 1 << 20))
            except CorruptRecordError:
                continue
            # The CRC misses only changes of the offset, and of the length if the message then seems partial.
            assert not check_crcs or bit < 12 * 8
    for cut in range(len(data)):
        assert read_all(read_batches(data[:cut])) == []


@both_formats
def test_no_producer_may_send_them(magic: int) -> None:
    with pytest.raises(CorruptRecordError, match=f"message format {magic} is too old"):
        validate_batch(encode_set(magic, RECORDS[:1]))
