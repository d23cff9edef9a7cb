"""Any records with any codec: builder, reader and columns agree with the model.

Corrupt bytes raise CorruptRecordError only.
"""

import contextlib
import itertools
from dataclasses import replace

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from model.record_columns import COLUMNS, record_batch
from model.records_legacy import as_read, encode_set, encode_wrapper, inner_set
from model.records_v2 import ModelBatch, ModelRecord, decode_records, encode_batch, encode_records, read_all

from kafkacore.errors import CorruptRecordError
from kafkacore.record import (
    ColumnBuilder,
    Compression,
    RecordBatchBuilder,
    decode,
    read_batches,
    validate_batch,
)
from kafkacore.record.compression import compress, decompress

BLOB = st.none() | st.binary(max_size=40) | st.binary(min_size=100, max_size=300)
HEADERS = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=10)), max_size=4)
TIMES = st.integers(-1, 2**45) | st.integers(-(2**63), 2**63 - 1)


@st.composite
def record_lists(draw: st.DrawFn) -> list[ModelRecord]:
    drawn = draw(st.lists(st.tuples(TIMES, BLOB, BLOB, HEADERS), min_size=1, max_size=12))
    return [ModelRecord(offset, *fields) for offset, fields in enumerate(drawn)]


CODECS = st.sampled_from(list(Compression))
OFFSETS = st.integers(0, 2**40)


@settings(max_examples=150)
@given(record_lists(), CODECS, OFFSETS)
def test_what_is_built_is_read_by_reader_columns_and_model(
    records: list[ModelRecord], codec: Compression, base_offset: int
) -> None:
    builder = RecordBatchBuilder(1 << 20, codec)
    for record in records:
        builder.append(record.timestamp, record.key, record.value, record.headers)
    sealed = builder.close(base_offset=base_offset)
    expected = [replace(record, offset=record.offset + base_offset) for record in records]

    assert read_all(read_batches(sealed)) == expected
    assert validate_batch(sealed).record_count == len(records)
    content = bytes(sealed[61:]) if codec is Compression.NONE else bytes(decompress(codec, sealed[61:]))
    assert decode_records(content, len(records), base_offset, records[0].timestamp) == expected
    if codec is Compression.NONE:
        assert sealed == encode_batch(expected, ModelBatch(base_offset=base_offset))

    columns = ColumnBuilder(COLUMNS)
    (batch,) = read_batches(sealed)
    assert columns.append(batch) == (len(records), batch.next_offset)
    found = pa.record_batch(columns.finish())
    found.validate(full=True)
    assert found.equals(record_batch(expected, COLUMNS))


@settings(max_examples=100)
@given(record_lists(), st.integers(0, 12), st.integers(1, 5), st.permutations(COLUMNS), st.integers(0, 6))
def test_columns_in_any_pieces_are_the_whole(
    records: list[ModelRecord], first: int, maximum: int, names: list[str], count: int
) -> None:
    (batch,) = read_batches(encode_batch(records, ModelBatch(base_timestamp=0)))
    builder, position = ColumnBuilder(names[:count]), first
    while position < batch.next_offset:
        _, position = builder.append(batch, position, maximum)
    assert builder.num_rows == len(records[first:])
    if count:
        assert pa.record_batch(builder.finish()).equals(record_batch(records[first:], names[:count]))


@settings(max_examples=200)
@given(record_lists(), CODECS, st.lists(st.tuples(st.integers(0, 2000), st.integers(1, 255)), max_size=4))
def test_damage_raises_the_one_error_or_nothing(
    records: list[ModelRecord], codec: Compression, damage: list[tuple[int, int]]
) -> None:
    plain = encode_records(records, ModelBatch())
    content = plain if codec is Compression.NONE else bytes(compress(codec, plain))
    data = bytearray(encode_batch(records, ModelBatch(attributes=codec), content))
    for position, flips in damage:
        data[position % len(data)] ^= flips
    changed = bytes(data) != encode_batch(records, ModelBatch(attributes=codec), content)
    for check_crcs in (True, False):
        builder = ColumnBuilder(COLUMNS)
        try:
            rows = sum(builder.append(batch)[0] for batch in read_batches(data, check_crcs, 1 << 20))
            lazily = read_all(read_batches(data, check_crcs, 1 << 20))
        except CorruptRecordError:
            assert changed
            rows = 0
        else:
            assert len(lazily) == rows
        found = pa.record_batch(builder.finish())
        found.validate(full=True)
        assert found.num_rows >= rows


@settings(max_examples=200)
@given(st.binary(max_size=200), st.integers(1, 9), st.integers(0, 20))
def test_junk_as_records_is_read_as_the_model_reads_it_or_refused(junk: bytes, count: int, last: int) -> None:
    count = min(count, last + 1)
    wanted = ModelBatch(base_timestamp=0, max_timestamp=0, record_count=count, last_offset_delta=last)
    data = encode_batch([], wanted, junk)
    try:
        expected = decode_records(junk, count, 0, 0)
    except ValueError:
        expected = None
    try:
        found = read_all(read_batches(data))
    except CorruptRecordError:
        # The reader is stricter than the model: an offset must be within its batch.
        assert expected is None or not all(0 <= record.offset <= last for record in expected)
    else:
        assert found == expected


OLD_CODECS = st.sampled_from([Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4])


@settings(max_examples=150)
@given(record_lists(), OLD_CODECS, OFFSETS, st.integers(0, 1), st.lists(st.integers(1, 9), max_size=12))
def test_messages_of_old_formats_are_read_by_reader_and_columns(
    records: list[ModelRecord], codec: Compression, base_offset: int, magic: int, gaps: list[int]
) -> None:
    offsets = itertools.accumulate([base_offset + 1, *gaps, *[1] * len(records)])
    placed = [replace(record, offset=offset) for record, offset in zip(records, offsets, strict=False)]
    if codec is Compression.NONE:
        data = encode_set(magic, placed)
    else:
        data = encode_wrapper(magic, placed, codec, bytes(compress(codec, inner_set(magic, placed))))
    expected = as_read(magic, placed)
    assert read_all(read_batches(data)) == expected
    found = pa.record_batch(decode(data))
    found.validate(full=True)
    assert found.equals(record_batch(expected, COLUMNS, timestamp_type=-1 if magic == 0 else 0))


@settings(max_examples=150)
@given(
    record_lists(),
    OLD_CODECS,
    st.integers(0, 1),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(1, 255))),
)
def test_damage_to_old_formats_raises_the_one_error_or_nothing(
    records: list[ModelRecord], codec: Compression, magic: int, damage: list[tuple[int, int]]
) -> None:
    content = inner_set(magic, records)
    data = bytearray(
        encode_wrapper(magic, records, codec, bytes(compress(codec, content)) if codec else content)
    )
    for position, flips in damage:
        data[position % len(data)] ^= flips
    for check_crcs in (True, False):
        with contextlib.suppress(CorruptRecordError):
            read_all(read_batches(data, check_crcs, 1 << 20))


def _columns_batch_by_batch(data: bytes) -> tuple[pa.RecordBatch, str]:
    builder = ColumnBuilder(COLUMNS)
    try:
        for batch in read_batches(data):
            if not batch.is_control:
                builder.append(batch)
    except CorruptRecordError as error:
        return pa.record_batch(builder.finish()), error.reason
    return pa.record_batch(builder.finish()), ""


def _columns_in_one_call(data: bytes) -> tuple[pa.RecordBatch, str]:
    builder, batches = ColumnBuilder(COLUMNS), read_batches(data)
    try:
        while True:
            builder.append_all(batches)
            batch = next(batches, None)
            if batch is None:
                return pa.record_batch(builder.finish()), ""
            if not batch.is_control:
                builder.append(batch)
    except CorruptRecordError as error:
        return pa.record_batch(builder.finish()), error.reason


LOGS = st.lists(st.tuples(record_lists(), CODECS, st.sampled_from([0, 0, 0x08, 0x10, 0x20])), max_size=5)


@settings(max_examples=150)
@given(LOGS, st.lists(st.tuples(st.integers(0, 4000), st.integers(1, 255)), max_size=2))
def test_many_batches_in_one_call_are_those_read_one_by_one(
    log: list[tuple[list[ModelRecord], Compression, int]], damage: list[tuple[int, int]]
) -> None:
    data = bytearray()
    for records, codec, attributes in log:
        plain = encode_records(records, ModelBatch())
        content = plain if codec is Compression.NONE else bytes(compress(codec, plain))
        data += encode_batch(records, ModelBatch(attributes=attributes | codec), content)
    for position, flips in damage:
        if data:
            data[position % len(data)] ^= flips
    one_by_one, in_one = _columns_batch_by_batch(bytes(data)), _columns_in_one_call(bytes(data))
    assert one_by_one[1] == in_one[1]
    assert one_by_one[0].equals(in_one[0])
