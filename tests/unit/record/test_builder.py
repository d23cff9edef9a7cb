"""Writing batches: size limits, sealed batches, and the exact bytes of the format."""

import gc

import pytest
from model.records_v2 import ModelBatch, ModelRecord, encode_batch, read_all

from kafkacore.errors import IllegalStateError
from kafkacore.record import Compression, RecordBatchBuilder, read_batches
from kafkacore.structs import TimestampType

RECORDS = [
    ModelRecord(0, 1000, b"k", b"v", [("h", b"1"), ("h", None), ("grün", b"")]),
    ModelRecord(1, 900, None, None),
    ModelRecord(2, 1100, b"", b"x" * 500),
    ModelRecord(3, -1, b"", b""),
]


def filled(builder: RecordBatchBuilder, records: list[ModelRecord] = RECORDS) -> RecordBatchBuilder:
    for index, record in enumerate(records):
        assert builder.append(record.timestamp, record.key, record.value, record.headers) == index
    return builder


def test_bytes_are_those_of_the_model() -> None:
    sealed = filled(RecordBatchBuilder(10_000)).close(7, 3, 12, True, False, 50, 9)
    expected = [ModelRecord(r.offset + 50, r.timestamp, r.key, r.value, r.headers) for r in RECORDS]
    wanted = ModelBatch(
        base_offset=50,
        partition_leader_epoch=9,
        attributes=0x10,
        producer_id=7,
        producer_epoch=3,
        base_sequence=12,
    )
    assert sealed == encode_batch(expected, wanted)


@pytest.mark.parametrize(
    ("close", "attributes"), [({"is_control": True}, 0x20), ({"is_transactional": True}, 0x10), ({}, 0)]
)
def test_attributes_say_what_the_batch_is(close: dict[str, bool], attributes: int) -> None:
    sealed = filled(RecordBatchBuilder(10_000)).close(**close)
    assert sealed == encode_batch(RECORDS, ModelBatch(attributes=attributes))


def test_the_timestamp_type_is_in_the_attributes() -> None:
    sealed = filled(RecordBatchBuilder(10_000, timestamp_type=TimestampType.LOG_APPEND_TIME)).close()
    assert sealed == encode_batch(RECORDS, ModelBatch(attributes=0x08))


@pytest.mark.parametrize("codec", list(Compression), ids=lambda codec: codec.name.lower())
def test_every_codec_is_read_back(codec: Compression) -> None:
    builder = filled(RecordBatchBuilder(10_000, codec))
    sealed = builder.close()
    (batch,) = read_batches(sealed)
    assert batch.compression is codec
    assert read_all([batch]) == RECORDS
    assert builder.size_in_bytes == len(sealed) == batch.size_in_bytes


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD])
def test_a_batch_that_compression_makes_larger_is_whole(codec: Compression) -> None:
    builder = RecordBatchBuilder(64, codec)
    builder.append(0, None, b"x")
    assert [record.value for record in next(read_batches(builder.close()))] == [b"x"]


def test_keys_and_values_come_from_any_buffer() -> None:
    builder = RecordBatchBuilder(1000)
    builder.append(0, bytearray(b"key"), memoryview(b"-value-")[1:6], [("h", memoryview(b"abc"))])
    assert read_all(read_batches(builder.close())) == [ModelRecord(0, 0, b"key", b"value", [("h", b"abc")])]


@pytest.mark.parametrize(("key", "value"), [("text", None), (None, 5), (b"", "text")])
def test_what_is_no_buffer_is_refused_and_nothing_is_appended(key: object, value: object) -> None:
    builder = filled(RecordBatchBuilder(10_000))
    before = builder.size_in_bytes
    with pytest.raises(TypeError):
        builder.append(0, key, value)  # type: ignore[arg-type]
    assert (builder.record_count, builder.size_in_bytes) == (len(RECORDS), before)
    assert builder.close() == encode_batch(RECORDS, ModelBatch())


def test_a_record_that_does_not_fit_is_not_appended() -> None:
    builder = RecordBatchBuilder(200)
    assert builder.append(0, None, bytes(60)) == 0
    assert builder.append(0, None, bytes(100)) == -1
    assert builder.append(0, None, bytes(60)) == 1
    assert builder.record_count == 2
    assert len(builder.close()) <= 200


def test_a_batch_is_filled_to_the_last_byte() -> None:
    # 61 bytes of header, and records of 7 and 10 bytes.
    builder = RecordBatchBuilder(61 + 7 + 10)
    assert builder.append(0, None, None) == 0
    assert not builder.is_full
    assert builder.append(0, None, b"four") == -1
    assert builder.append(0, None, b"thr") == 1
    assert builder.is_full
    assert len(builder.close()) == 61 + 7 + 10


@pytest.mark.parametrize("batch_size", [0, 1, 61, 100])
def test_the_first_record_always_fits(batch_size: int) -> None:
    builder = RecordBatchBuilder(batch_size)
    assert not builder.is_full
    assert builder.append(0, b"key", bytes(1_000_000)) == 0
    assert builder.is_full
    assert builder.append(0, None, None) == -1
    assert [record.value_size for record in next(read_batches(builder.close()))] == [1_000_000]


def test_a_compressed_batch_takes_more_by_its_expected_ratio() -> None:
    plain, packed = RecordBatchBuilder(1000, 3), RecordBatchBuilder(1000, 3, compression_ratio=0.25)
    for builder in (plain, packed):
        while builder.append(0, None, bytes(50)) >= 0:
            pass
    assert packed.record_count > 3.5 * plain.record_count
    assert len(packed.close()) <= 1000


def test_sealed_batch_refuses_append() -> None:
    builder = filled(RecordBatchBuilder(10_000))
    sealed = builder.close()
    before = bytes(sealed)
    with pytest.raises(IllegalStateError, match="sealed"):
        builder.append(0, None, b"late")
    assert (builder.is_closed, builder.is_full, sealed) == (True, True, before)


def test_a_batch_is_sealed_once_and_not_empty() -> None:
    builder = RecordBatchBuilder(100)
    with pytest.raises(IllegalStateError, match="empty"):
        builder.close()
    builder.append(0, None, None)
    builder.close()
    with pytest.raises(IllegalStateError, match="already"):
        builder.close()


def test_an_open_batch_shows_nobody_its_memory() -> None:
    builder = filled(RecordBatchBuilder(10_000))
    with pytest.raises(BufferError):
        memoryview(builder)  # type: ignore[arg-type, unused-ignore]  # 3.12 knows that it may be tried


def test_the_sealed_bytes_are_read_only_and_outlive_the_builder() -> None:
    sealed = filled(RecordBatchBuilder(10_000)).close()
    gc.collect()
    assert sealed.readonly
    assert sealed == encode_batch(RECORDS, ModelBatch())


def test_times_and_sizes_are_known_while_it_fills() -> None:
    builder = RecordBatchBuilder(10_000)
    assert (builder.record_count, builder.size_in_bytes, builder.max_timestamp) == (0, 61, -1)
    filled(builder)
    assert (builder.record_count, builder.base_timestamp, builder.max_timestamp) == (4, 1000, 1100)
    assert builder.size_in_bytes == len(encode_batch(RECORDS, ModelBatch()))


def test_timestamps_may_lie_64_bits_apart() -> None:
    records = [ModelRecord(0, -(2**63), None, None), ModelRecord(1, 2**63 - 1, None, None)]
    assert read_all(read_batches(filled(RecordBatchBuilder(1000), records).close())) == records


@pytest.mark.parametrize("codec", [5, -1])
def test_a_codec_that_there_is_not_is_refused(codec: int) -> None:
    with pytest.raises(ValueError, match="Compression"):
        RecordBatchBuilder(100, codec)
