"""Writing messages of format 0 and 1, and conversion of newer batches to them as in Kafka."""

import struct
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka.record.legacy_records import LegacyRecordBatch as AiokafkaReader
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.legacy_records import LegacyRecordBatch as KafkaPythonReader
from model.legacy_cases import OLD_CODECS, RECORDS, both_formats, every_codec
from model.records_legacy import (
    LOG_APPEND_TIME,
    as_read,
    encode_message,
    encode_set,
    encode_wrapper,
    inner_set,
)
from model.records_v2 import ModelBatch, ModelRecord, encode_batch, encode_records, read_all

from kafkacore.errors import CorruptRecordError, IllegalStateError, UnsupportedCompressionTypeError
from kafkacore.record import (
    Compression,
    LegacyBatchBuilder,
    RecordBatchBuilder,
    down_convert,
    read_batch_headers,
    read_batches,
)
from kafkacore.record.compression import compress, decompress
from kafkacore.structs import TimestampType
from kafkacore.wire import crc32c

# Both peers need additional packages for snappy, and for lz4 of format 0.
FOR_PEERS = [(0, Compression.NONE), (0, Compression.GZIP), (1, Compression.NONE), (1, Compression.GZIP),
             (1, Compression.LZ4)]  # fmt: skip
READERS = {"kafka-python": KafkaPythonReader, "aiokafka": AiokafkaReader}


def written(builder: LegacyBatchBuilder, records: list[ModelRecord] = RECORDS) -> bytes:
    for record in records:
        builder.append(record.offset, record.timestamp, record.key, record.value)
    return bytes(builder.close())


def batch_of(
    records: list[ModelRecord], codec: Compression = Compression.NONE, **attributes: Any
) -> memoryview:
    """Return a batch of format 2 whose offsets have no gaps."""
    builder = RecordBatchBuilder(1 << 20, codec)
    for record in records:
        builder.append(record.timestamp, record.key, record.value, record.headers)
    return builder.close(base_offset=records[0].offset, **attributes)


# ---- Write -------------------------------------------------------------------------------------------------
@both_formats
def test_plain_messages_are_those_of_the_model(magic: int) -> None:
    assert written(LegacyBatchBuilder(magic)) == encode_set(magic, RECORDS)


@both_formats
@every_codec
def test_a_compressed_set_has_a_wrapper(magic: int, codec: Compression) -> None:
    (header,) = read_batch_headers(written(LegacyBatchBuilder(magic, codec)))
    value_at = 12 + 4 + 1 + 1 + (8 if magic == 1 else 0) + 4 + 4
    compressed = written(LegacyBatchBuilder(magic, codec))[value_at:]
    assert written(LegacyBatchBuilder(magic, codec)) == encode_wrapper(magic, RECORDS, codec, compressed)
    assert header.magic == magic
    if (magic, codec) != (0, Compression.LZ4):
        assert decompress(codec, compressed) == inner_set(magic, RECORDS)
    (batch,) = read_batches(written(LegacyBatchBuilder(magic, codec)))
    assert read_all([batch]) == as_read(magic, RECORDS)


def test_lz4_of_format_0_has_the_checksum_that_its_readers_expect() -> None:
    frame = written(LegacyBatchBuilder(0, Compression.LZ4))[26:]
    # The bytes before the checksum are the same in both formats.
    assert frame[:6] == written(LegacyBatchBuilder(1, Compression.LZ4))[34:40]
    assert frame[6] != written(LegacyBatchBuilder(1, Compression.LZ4))[40]
    with pytest.raises(CorruptRecordError):
        decompress(Compression.LZ4, frame)


@pytest.mark.parametrize("codec", [Compression.NONE, *OLD_CODECS], ids=lambda codec: codec.name.lower())
def test_log_append_time_is_that_of_every_message(codec: Compression) -> None:
    builder = LegacyBatchBuilder(1, codec, None, TimestampType.LOG_APPEND_TIME, 5000)
    batches = list(read_batches(written(builder)))
    assert {batch.timestamp_type for batch in batches} == {TimestampType.LOG_APPEND_TIME}
    assert [record.timestamp for record in read_all(batches)] == [5000] * 3


def test_format_0_has_nobodys_clock() -> None:
    builder = LegacyBatchBuilder(0, timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time_ms=5000)
    assert written(builder) == encode_set(0, RECORDS)


@pytest.mark.parametrize(("magic", "codec"), FOR_PEERS)
@pytest.mark.parametrize("peer", READERS)
def test_peers_read_what_we_write(peer: str, magic: int, codec: Compression) -> None:
    make: Callable[..., Any] = READERS[peer]
    data = written(LegacyBatchBuilder(magic, codec))
    read = []
    for header in read_batch_headers(data):
        message = bytearray(data[header.position : header.position + header.size_in_bytes])
        reader = make(message, magic)
        assert reader.validate_crc()
        read += [(one.offset, one.timestamp if magic else None, one.key, one.value) for one in reader]
    wanted = [(one.offset, one.timestamp if magic else None, one.key, one.value) for one in RECORDS]
    assert read == wanted


def test_what_is_not_to_be_written_is_refused() -> None:
    with pytest.raises(ValueError, match="format must be 0 or 1, not 2"):
        LegacyBatchBuilder(2)
    with pytest.raises(UnsupportedCompressionTypeError, match="format 1 does not support zstd"):
        LegacyBatchBuilder(1, Compression.ZSTD)
    builder = LegacyBatchBuilder(1)
    with pytest.raises(IllegalStateError, match="has no messages"):
        builder.close()
    builder.append(5, 0, None, None)
    with pytest.raises(BufferError):
        memoryview(builder)  # type: ignore[arg-type, unused-ignore]  # 3.12 knows that it may be tried
    with pytest.raises(ValueError, match="offset 5 must be larger than the previous offset 5"):
        builder.append(5, 0, None, None)
    with pytest.raises(TypeError):
        builder.append(6, 0, "text", None)  # type: ignore[arg-type]
    sealed = builder.close()
    assert (sealed, sealed.readonly, builder.record_count) == (encode_message(1, 5, 0, None, None), True, 1)
    with pytest.raises(IllegalStateError, match="already closed"):
        builder.append(6, 0, None, None)
    with pytest.raises(IllegalStateError, match="already closed"):
        builder.close()


# ---- Convert -----------------------------------------------------------------------------------------------
NEW = [
    ModelRecord(7, 1000, b"k", b"v", [("header", b"is left out")]),
    ModelRecord(8, 900, None, b"x" * 300),
    ModelRecord(9, 1100, b"", None),
]


@both_formats
@pytest.mark.parametrize("codec", [Compression.NONE, *OLD_CODECS], ids=lambda codec: codec.name.lower())
def test_a_newer_batch_keeps_its_records_and_its_codec(magic: int, codec: Compression) -> None:
    converted = down_convert(batch_of(NEW, codec), magic)
    batches = list(read_batches(converted))
    assert read_all(batches) == as_read(magic, NEW)
    assert {(batch.magic, batch.compression) for batch in batches} == {(magic, codec)}
    assert len(batches) == (3 if codec is Compression.NONE else 1)
    if codec is Compression.NONE:
        assert converted == encode_set(magic, NEW)


def test_batches_follow_each_other_and_control_batches_are_left_out() -> None:
    later = [ModelRecord(11, 5, b"a", b"b"), ModelRecord(12, 6, None, b"c")]
    marker = batch_of([ModelRecord(10, 5, b"\0\0\0\1", b"\0\0\0\0\0\0")], is_control=True)
    log = b"".join([batch_of(NEW), marker, batch_of(later, Compression.GZIP, is_transactional=True)])
    assert read_all(read_batches(down_convert(log, 1))) == as_read(1, NEW + later)
    assert down_convert(marker, 1) == b""


def test_offsets_of_a_compacted_batch_keep_their_gaps() -> None:
    records = [ModelRecord(52, 1, b"a", b"1"), ModelRecord(57, 3, b"b", b"2"), ModelRecord(60, 2, b"c", b"3")]
    compacted = encode_batch(records, ModelBatch(base_offset=50, last_offset_delta=12))
    assert down_convert(compacted, 1) == encode_set(1, records)
    packed = down_convert(compacted, 0)
    assert packed == encode_set(0, records)


def test_plain_messages_begin_where_the_client_reads_from() -> None:
    assert down_convert(batch_of(NEW), 1, first_offset=9) == encode_set(1, NEW[2:])
    assert down_convert(batch_of(NEW), 1, first_offset=10) == b""
    compressed = down_convert(batch_of(NEW, Compression.LZ4), 1, first_offset=9)
    assert read_all(read_batches(compressed)) == as_read(1, NEW)


def test_log_append_time_becomes_that_of_each_message() -> None:
    sealed = encode_batch(NEW, ModelBatch(base_offset=7, attributes=0x08, max_timestamp=9000))
    wanted = b"".join(encode_message(1, one.offset, 9000, one.key, one.value, LOG_APPEND_TIME) for one in NEW)
    assert down_convert(sealed, 1) == wanted
    assert down_convert(sealed, 0) == encode_set(0, NEW)


def test_what_is_old_enough_stays_as_it_is() -> None:
    for magic in (0, 1):
        assert down_convert(encode_set(magic, RECORDS), magic) == encode_set(magic, RECORDS)
    assert down_convert(encode_set(0, RECORDS), 1) == encode_set(0, RECORDS)
    assert down_convert(encode_set(1, RECORDS), 0) == encode_set(0, RECORDS)
    packed = encode_wrapper(1, RECORDS, 1, bytes(compress(Compression.GZIP, inner_set(1, RECORDS))))
    assert down_convert(packed, 1) == packed
    assert read_all(read_batches(down_convert(packed, 0))) == as_read(0, RECORDS)
    assert down_convert(b"", 0) == b""


def test_what_cannot_be_converted_is_refused() -> None:
    with pytest.raises(UnsupportedCompressionTypeError, match="format 1 does not support zstd"):
        down_convert(batch_of(NEW, Compression.ZSTD), 1)
    with pytest.raises(ValueError, match="format must be 0 or 1, not 2"):
        down_convert(batch_of(NEW), 2)
    broken = bytearray(batch_of(NEW))
    broken[-1] ^= 1
    with pytest.raises(CorruptRecordError):
        down_convert(broken, 1)


@both_formats
@every_codec
@pytest.mark.parametrize("offsets", [(5, 5), (6, 5), (5, 7, 6)])
def test_offsets_that_do_not_rise_are_corrupt(
    magic: int, codec: Compression, offsets: tuple[int, ...]
) -> None:
    records = [ModelRecord(offset, 1000, None, b"v") for offset in offsets]
    header = ModelBatch(base_offset=5, attributes=codec)
    content = encode_records(records, header)
    batch = encode_batch(records, header, bytes(compress(codec, content)) if codec else content)
    # The last offset delta must match, so that the records are decoded at all.
    batch = with_last_offset_delta(batch, 2)
    for first_offset in (0, 6):
        with pytest.raises(CorruptRecordError, match=r"offset \d follows offset \d .*in batch 5"):
            down_convert(batch, magic, first_offset)


def with_last_offset_delta(batch: bytes, delta: int) -> bytes:
    changed = bytearray(batch)
    struct.pack_into(">i", changed, 23, delta)
    struct.pack_into(">I", changed, 17, crc32c(memoryview(changed)[21:]))
    return bytes(changed)


stored = st.lists(
    st.tuples(
        st.integers(0, 1000),
        st.integers(-1, 2**63 - 1),
        st.none() | st.binary(max_size=30),
        st.none() | st.binary(max_size=300),
    ),
    min_size=1,
    max_size=20,
)


@given(
    stored, st.sampled_from([0, 1]), st.sampled_from([Compression.NONE, *OLD_CODECS]), st.integers(0, 2**40)
)
def test_the_reader_reads_whatever_was_written(
    rows: list[Any], magic: int, codec: Compression, start: int
) -> None:
    records = []
    for gap, time, key, value in rows:
        start += 1 + gap
        records.append(ModelRecord(start, time, key, value))
    data = written(LegacyBatchBuilder(magic, codec), records)
    assert read_all(read_batches(data)) == as_read(magic, records)
    newer = encode_batch(records, ModelBatch(base_offset=records[0].offset))
    assert read_all(read_batches(down_convert(newer, magic))) == as_read(magic, records)
