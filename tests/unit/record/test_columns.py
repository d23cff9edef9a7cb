"""Decoding to columns: comparison with the model, limits, roll-back, and memory that is shared and freed."""

import gc
import sys
import threading
from dataclasses import replace

import pyarrow as pa
import pytest
from model.record_columns import COLUMNS, arrow_schema, record_batch
from model.records_legacy import encode_set
from model.records_v2 import ModelBatch, ModelRecord, encode_batch, encode_records

from kafkacore.errors import CorruptRecordError
from kafkacore.record import ColumnBuilder, RecordColumns, decode, read_batches
from kafkacore.record.compression import compress

RECORDS = [
    ModelRecord(0, 1000, b"k", b"v", [("h", b"1"), ("h", None), ("grün", b"")]),
    ModelRecord(1, 900, None, None),
    ModelRecord(2, -1, b"", b"x" * 5000),
    ModelRecord(3, 1100, b"key", None, [("", b"abc")]),
]


def at(records: list[ModelRecord], base_offset: int) -> list[ModelRecord]:
    return [replace(record, offset=record.offset + base_offset) for record in records]


def built(data: bytes, builder: ColumnBuilder) -> pa.RecordBatch:
    for batch in read_batches(data):
        assert builder.append(batch) == (batch.record_count, batch.next_offset)
    return imported(builder.finish())


def imported(columns: RecordColumns) -> pa.RecordBatch:
    batch = pa.record_batch(columns)
    batch.validate(full=True)
    return batch


DATA = encode_batch(RECORDS, ModelBatch())
LOG = DATA + encode_batch(at(RECORDS, 4), ModelBatch(base_offset=4))


def test_columns_are_those_of_the_model() -> None:
    found = built(LOG, ColumnBuilder(COLUMNS))
    expected = record_batch(RECORDS + at(RECORDS, 4), COLUMNS)
    assert found.equals(expected)
    assert found.schema.equals(expected.schema, check_metadata=True)


@pytest.mark.parametrize(
    "columns", [["value"], ["headers", "offset"], ["timestamp_type", "key"], list(reversed(COLUMNS)), []]
)
def test_columns_come_in_the_order_asked_for(columns: list[str]) -> None:
    builder = ColumnBuilder(columns)
    for batch in read_batches(LOG):
        builder.append(batch)
    found = builder.finish()
    assert found.column_names == columns
    assert (len(found), found.num_rows) == (8, 8)
    assert imported(found).num_rows == 8
    if columns:
        assert imported(found).equals(record_batch(RECORDS + at(RECORDS, 4), columns))


@pytest.mark.parametrize("unit", ["ms", "us"])
@pytest.mark.parametrize("timezone", [None, "UTC", "Europe/Berlin"])
def test_timestamps_bear_unit_and_zone(unit: str, timezone: str | None) -> None:
    found = built(DATA, ColumnBuilder(["timestamp"], unit, timezone))  # type: ignore[arg-type]  # any of the two
    assert found.equals(record_batch(RECORDS, ["timestamp"], unit=unit, timezone=timezone))


def test_a_schema_of_sparks_source_is_met_exactly() -> None:
    columns = ["key", "value", "offset", "timestamp", "timestamp_type", "headers"]
    found = built(DATA, ColumnBuilder(columns, "us", "UTC"))
    assert found.schema.equals(arrow_schema(columns, "us", "UTC"), check_metadata=True)
    assert all(field.nullable for field in found.schema)


def test_microseconds_beyond_64_bits_stop_at_the_last() -> None:
    base = ModelBatch(base_timestamp=0, max_timestamp=0)
    data = encode_batch([ModelRecord(0, 2**63 - 1, None, None), ModelRecord(1, -(2**63), None, None)], base)
    found = built(data, ColumnBuilder(["timestamp"], "us")).column(0).cast(pa.int64())
    assert found.to_pylist() == [2**63 - 1, -(2**63)]


def test_records_without_headers_may_have_an_empty_list() -> None:
    found = built(DATA, ColumnBuilder(["headers"], headers_null_when_empty=False))
    assert found.equals(record_batch(RECORDS, ["headers"], headers_null_when_empty=False))
    assert found.column(0).null_count == 0


def test_log_append_time_is_every_records_time() -> None:
    data = encode_batch(RECORDS, ModelBatch(attributes=0x08, max_timestamp=77))
    found = built(data, ColumnBuilder(["timestamp", "timestamp_type"]))
    records = [replace(record, timestamp=77) for record in RECORDS]
    expected = record_batch(records, ["timestamp", "timestamp_type"], timestamp_type=1)
    assert found.equals(expected)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_compressed_batches_give_the_same(codec: int) -> None:
    content = bytes(compress(codec, encode_records(RECORDS, ModelBatch())))
    data = encode_batch(RECORDS, ModelBatch(attributes=codec), content)
    assert built(data, ColumnBuilder(COLUMNS)).equals(record_batch(RECORDS, COLUMNS))


def test_only_records_from_the_offset_on_are_appended() -> None:
    (batch,) = read_batches(DATA)
    for first in range(6):
        builder = ColumnBuilder(COLUMNS)
        assert builder.append(batch, from_offset=first) == (max(4 - first, 0), 4)
        assert imported(builder.finish()).equals(record_batch(RECORDS[first:], COLUMNS))


def test_appending_goes_on_where_the_maximum_stopped_it() -> None:
    (batch,) = read_batches(encode_batch(at(RECORDS, 10), ModelBatch(base_offset=10)))
    for maximum in (1, 2, 3):
        builder, position = ColumnBuilder(COLUMNS), 0
        while position < batch.next_offset:
            before = position
            count, position = builder.append(batch, position, maximum)
            assert 0 < count <= maximum
            assert position > before
        assert imported(builder.finish()).equals(record_batch(at(RECORDS, 10), COLUMNS))


def test_a_maximum_of_zero_appends_nothing() -> None:
    (batch,) = read_batches(DATA)
    builder = ColumnBuilder(COLUMNS)
    assert builder.append(batch, 2, 0) == (0, 2)
    assert builder.num_rows == 0


def test_gaps_of_compaction_are_passed() -> None:
    records = [RECORDS[0], RECORDS[3]]
    (batch,) = read_batches(encode_batch(records, ModelBatch(last_offset_delta=8)))
    builder = ColumnBuilder(["offset"])
    assert builder.append(batch, 1, 1) == (1, 9)
    assert imported(builder.finish()).column(0).to_pylist() == [3]


def test_a_full_column_stops_before_the_record_and_says_where_to_go_on() -> None:
    records = [ModelRecord(number, 0, b"k" * 10, b"v" * 30, [("h" * 5, b"x" * 5)]) for number in range(10)]
    (batch,) = read_batches(encode_batch(records, ModelBatch()))
    for column, fitting in (("key", 4), ("value", 1), ("headers", 2)):
        builder, position, pieces = ColumnBuilder([column], max_column_bytes=45), 0, []
        while position < batch.next_offset:
            count, position = builder.append(batch, position)
            assert count == min(fitting, 10 - sum(piece.num_rows for piece in pieces))
            pieces.append(imported(builder.finish()))
        assert (
            pa.Table.from_batches(pieces)
            .combine_chunks()
            .to_batches()[0]
            .equals(record_batch(records, [column]))
        )


def test_a_record_larger_than_the_limit_has_a_column_to_itself() -> None:
    (batch,) = read_batches(DATA)
    builder = ColumnBuilder(["value"], max_column_bytes=100)
    assert builder.append(batch, 2) == (1, 3)
    builder = ColumnBuilder(["value"], max_column_bytes=100)
    assert builder.append(batch, 0) == (2, 2)


# ---- Corrupt batches ---------------------------------------------------------------------------------------
def test_nothing_of_a_broken_batch_is_appended() -> None:
    good, broken = encode_records(at(RECORDS, 4), ModelBatch(base_offset=4)), b"\x0e\x00\x00\x00\x03\x01\x00"
    wanted = ModelBatch(base_offset=4, record_count=5, last_offset_delta=4)
    first, second = read_batches(DATA + encode_batch(at(RECORDS, 4), wanted, good + broken))
    for headers_null in (True, False):
        builder = ColumnBuilder(COLUMNS, headers_null_when_empty=headers_null)
        for _ in range(2):
            builder.append(first)
            with pytest.raises(CorruptRecordError, match="record 4 of 5 in batch 4") as caught:
                builder.append(second)
            assert caught.value.offset == 4
        # Rows that were rolled back must not affect the rows appended after them.
        builder.append(first)
        assert imported(builder.finish()).equals(
            record_batch(RECORDS * 3, COLUMNS, headers_null_when_empty=headers_null)
        )


def test_no_flipped_bit_lets_another_error_out() -> None:
    for bit in range(61 * 8, 200 * 8):
        broken = bytearray(DATA)
        broken[bit // 8] ^= 1 << bit % 8
        builder = ColumnBuilder(COLUMNS)
        try:
            built_rows = [builder.append(batch)[0] for batch in read_batches(broken, check_crcs=False)]
        except CorruptRecordError:
            built_rows = [0]
        assert imported(builder.finish()).num_rows == sum(built_rows)


NOT_UTF8 = [
    b"a\xffb", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\xe2\x82x", b"\xf0\x9f\x98",
    b"\x80\x80", b"\xf8\x88\x80\x80\x80", "€".encode() + b"\xfe", b"\xe0\x9f\xbf", b"\xf0\x8f\xbf\xbf",
]  # fmt: skip


@pytest.mark.parametrize("key", NOT_UTF8, ids=repr)
def test_a_header_key_that_is_not_utf8_has_replacements_as_in_records(key: bytes) -> None:
    header = bytes([len(key) * 2]) + key + b"\x00"
    body = b"\x00\x00\x00\x01\x01\x02" + header
    data = encode_batch(RECORDS[:1], ModelBatch(), bytes([len(body) * 2]) + body)
    (found,) = built(data, ColumnBuilder(["headers"])).column(0).to_pylist()
    assert found == [{"key": key.decode("utf-8", "replace"), "value": b""}]
    (record,) = next(read_batches(data))
    assert record.headers == [(found[0]["key"], b"")]


# ---- Many batches in one call ------------------------------------------------------------------------------
def pieces(sizes: list[int]) -> list[tuple[list[ModelRecord], bytes]]:
    """Return consecutive batches with ``sizes`` records each, and their records."""
    made, offset = [], 0
    for size in sizes:
        records = [
            ModelRecord(offset + index, 1000 + index, b"k" * index, b"v" * (offset + index))
            for index in range(size)
        ]
        made.append(
            (records, encode_batch(records, ModelBatch(base_offset=offset, partition_leader_epoch=offset)))
        )
        offset += size
    return made


PIECES = pieces([3, 1, 4, 2])
JOINED = b"".join(data for _, data in PIECES)
ALL_RECORDS = [record for records, _ in PIECES for record in records]


def test_all_plain_batches_are_appended_in_one_call() -> None:
    builder, batches = ColumnBuilder(COLUMNS), read_batches(JOINED + PIECES[0][1][:70])
    assert builder.append_all(batches) == (10, 10, 8)
    assert builder.append_all(batches) == (0, -1, -1)
    assert next(batches, None) is None
    assert imported(builder.finish()).equals(record_batch(ALL_RECORDS, COLUMNS))


def test_one_call_appends_only_from_the_offset_on() -> None:
    for first in range(12):
        builder = ColumnBuilder(COLUMNS)
        assert builder.append_all(read_batches(JOINED), first) == (max(10 - first, 0), 10, 8)
        assert imported(builder.finish()).equals(record_batch(ALL_RECORDS[first:], COLUMNS))


@pytest.mark.parametrize(
    ("maximum", "end_offset", "taken"),
    [
        (None, None, 10),
        (9, None, 8),
        (4, None, 4),
        (2, None, 0),
        (None, 10, 10),
        (None, 9, 8),
        (None, 3, 3),
        (5, 3, 3),
    ],
)
def test_one_call_leaves_a_batch_that_is_not_wanted_whole(
    maximum: int | None, end_offset: int | None, taken: int
) -> None:
    builder, batches = ColumnBuilder(COLUMNS), read_batches(JOINED)
    count, next_offset, _ = builder.append_all(batches, 0, maximum, end_offset)
    assert (count, next_offset) == (taken, taken or -1)
    assert imported(builder.finish()).equals(record_batch(ALL_RECORDS[:taken], COLUMNS))
    following = next(batches, None)
    assert (10 if following is None else following.base_offset) == taken


def test_one_call_stops_in_front_of_what_needs_a_decision() -> None:
    records, plain = PIECES[0]
    compressed = bytes(compress(4, encode_records(records, ModelBatch())))
    old = encode_set(1, records)
    unusual = [
        encode_batch(records, ModelBatch(attributes=4), compressed),
        encode_batch(records, ModelBatch(attributes=0x20)),
        old,
        plain[:-1] + b"x",
        encode_batch(records, ModelBatch(record_count=2)),
        encode_batch(records, ModelBatch(last_offset_delta=-1)),
        encode_batch(records, ModelBatch(last_offset_delta=2**31 - 1, record_count=2**31 - 1)),
        encode_batch(records, ModelBatch(base_offset=2**63 - 2, last_offset_delta=2)),
        plain[:8] + b"\x00\x00\x00\x05" + plain[12:],
    ]
    for data in unusual:
        builder, batches = ColumnBuilder(COLUMNS), read_batches(plain + data)
        assert builder.append_all(batches)[0] == 3
        assert builder.append_all(batches) == (0, -1, -1)
        assert imported(builder.finish()).equals(record_batch(records, COLUMNS))
        try:
            assert next(batches).position == len(plain)
        except CorruptRecordError:
            continue


def test_one_call_leaves_transactions_to_who_reads_committed() -> None:
    data = encode_batch(RECORDS, ModelBatch(attributes=0x10, producer_id=5))
    assert ColumnBuilder(["offset"]).append_all(read_batches(data))[0] == 4
    assert ColumnBuilder(["offset"]).append_all(read_batches(data), read_committed=True)[0] == 0
    idempotent = encode_batch(RECORDS, ModelBatch(producer_id=5))
    assert ColumnBuilder(["offset"]).append_all(read_batches(idempotent), read_committed=True)[0] == 4


def test_one_call_checks_crcs_as_the_iterator_does() -> None:
    broken = bytearray(DATA)
    broken[17] ^= 1
    for check_crcs, count in ((True, 0), (False, 4)):
        assert ColumnBuilder(["offset"]).append_all(read_batches(broken, check_crcs))[0] == count


def test_one_call_takes_nothing_of_a_batch_that_has_no_room() -> None:
    builder, batches = ColumnBuilder(["value"], max_column_bytes=10), read_batches(JOINED)
    # Values of 0 to 3 bytes fit; the next ones, of 4 to 7 bytes, do not.
    assert builder.append_all(batches) == (4, 4, 3)
    assert builder.append(next(batches)) == (1, 5)


def test_records_behind_the_end_offset_are_left() -> None:
    gaps = [ModelRecord(number, number, None, b"%d" % number) for number in (0, 2, 7, 9)]
    (batch,) = read_batches(encode_batch(gaps, ModelBatch(last_offset_delta=12)))
    for end_offset in range(14):
        builder = ColumnBuilder(["offset"])
        left = [record.offset for record in gaps if record.offset >= end_offset]
        assert builder.append(batch, 0, None, end_offset) == (4 - len(left), left[0] if left else 13)
        assert builder.append(batch, left[0] if left else 13) == (len(left), 13)
        assert imported(builder.finish()).column(0).to_pylist() == [0, 2, 7, 9]


def test_a_batch_may_be_begun_anew_whatever_was_read_of_it_before() -> None:
    (batch,) = read_batches(DATA)
    for stop in range(4):
        for again in range(5):
            builder = ColumnBuilder(COLUMNS)
            builder.append(batch, 0, stop)
            assert builder.append(batch, again) == (4 - again, 4)
            assert imported(builder.finish()).equals(record_batch(RECORDS[:stop] + RECORDS[again:], COLUMNS))


def test_nulls_that_come_late_leave_the_rows_before_them_as_they_are() -> None:
    for nulls in ([100], [0], [7, 8], [63, 64, 199], []):
        records = [ModelRecord(number, 0, None if number in nulls else b"k", b"v") for number in range(200)]
        assert built(encode_batch(records, ModelBatch()), ColumnBuilder(COLUMNS)).equals(
            record_batch(records, COLUMNS)
        )


@pytest.mark.parametrize("size", [*range(70), 127, 128, 129, 511, 512, 513, 5000])
def test_values_of_every_size_are_copied_to_their_end(size: int) -> None:
    values = [bytes(range(256)) * 20, b"", None, b"x"]
    records = [
        ModelRecord(number, 0, values[number % 4], (values[0] or b"")[number : number + size])
        for number in range(6)
    ]
    assert built(encode_batch(records, ModelBatch()), ColumnBuilder(COLUMNS)).equals(
        record_batch(records, COLUMNS)
    )


# ---- Memory ------------------------------------------------------------------------------------------------
def test_buffers_are_aligned_to_64_bytes() -> None:
    for array in built(LOG, ColumnBuilder(COLUMNS)).columns:
        assert [buffer.address % 64 for buffer in array.buffers() if buffer is not None] == [0] * sum(
            buffer is not None for buffer in array.buffers()
        )


def test_a_column_outlives_everything_it_came_from() -> None:
    column = built(LOG, ColumnBuilder(COLUMNS)).column(5)
    header_values = column.flatten().field(1)
    del column
    gc.collect()
    assert header_values.to_pylist() == [b"1", None, b"", b"abc"] * 2


def test_columns_can_be_exported_again_and_unused_exports_dropped() -> None:
    builder = ColumnBuilder(COLUMNS)
    builder.append(next(read_batches(DATA)))
    columns = builder.finish()
    columns.__arrow_c_schema__()
    columns.__arrow_c_array__()
    first, second = imported(columns), imported(columns)
    assert first.equals(second)
    assert first.column(4).buffers()[2].address == second.column(4).buffers()[2].address


def test_columns_may_be_released_on_any_thread() -> None:
    held = [built(LOG, ColumnBuilder(COLUMNS)) for _ in range(50)]
    threads = [threading.Thread(target=held.clear) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert held == []


def test_the_builder_begins_anew_after_finish() -> None:
    builder = ColumnBuilder(["offset"])
    (batch,) = read_batches(DATA)
    builder.append(batch)
    first = builder.finish()
    assert (builder.num_rows, builder.nbytes) == (0, 0)
    assert first.nbytes >= 32
    builder.append(batch, 3)
    assert imported(first).column(0).to_pylist() == [0, 1, 2, 3]
    assert imported(builder.finish()).column(0).to_pylist() == [3]


def test_no_records_are_columns_of_no_rows() -> None:
    assert imported(ColumnBuilder(COLUMNS, "us", "UTC").finish()).equals(
        record_batch([], COLUMNS, unit="us", timezone="UTC")
    )


def test_many_rows_grow_every_buffer() -> None:
    records = [
        ModelRecord(
            number,
            number * 7,
            None if number % 3 == 0 else b"k%d" % number,
            None if number % 5 == 0 else b"v" * (number % 200),
            [(f"h{number}", None if index % 2 else b"%d" % index) for index in range(number % 4)],
        )
        for number in range(3000)
    ]
    starts = range(0, 3000, 700)
    log = b"".join(encode_batch(records[at : at + 700], ModelBatch(base_offset=at)) for at in starts)
    assert built(log, ColumnBuilder(COLUMNS)).equals(record_batch(records, COLUMNS))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((["ofset"],), "choose from offset"),
        ((["offset", "offset"],), "at most once"),
        ((["offset"], "ns"), "'ms' or 'us'"),
    ],
)
def test_wrong_arguments_are_refused_by_name(arguments: tuple[object, ...], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        ColumnBuilder(*arguments)  # type: ignore[arg-type]


def test_what_is_no_batch_is_refused() -> None:
    for wrong in (None, b"bytes"):
        with pytest.raises(TypeError):
            ColumnBuilder(["offset"]).append(wrong)  # type: ignore[arg-type]


def test_columns_are_made_by_a_builder_only() -> None:
    with pytest.raises(TypeError, match="can be created only by"):
        RecordColumns()


def test_columns_are_shown_as_a_table_with_escaped_values() -> None:
    builder = ColumnBuilder(["offset", "key", "value"])
    records = [ModelRecord(offset, 1000, None, b"<b>" + b"x" * 200) for offset in range(30)]
    for batch in read_batches(encode_batch(records, ModelBatch())):
        builder.append(batch)
    columns = builder.finish()
    assert repr(columns) == "<RecordColumns 30 rows: offset, key, value>"
    table = columns._repr_html_()
    assert table.startswith(
        "<table><caption>30 rows</caption><tr><th>offset</th><th>key</th><th>value</th></tr>"
    )
    assert table.count("<tr>") == 1 + 20
    assert f"<td></td><td>&lt;b&gt;{'x' * 97}…</td>" in table


def test_without_pyarrow_the_table_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert ColumnBuilder(["offset"]).finish()._repr_html_() == "&lt;RecordColumns 0 rows: offset&gt;"


# ---- decode ------------------------------------------------------------------------------------------------
def test_decode_is_the_whole_in_one_call() -> None:
    control = encode_batch([ModelRecord(4, 0, b"\0\0\0\1", b"")], ModelBatch(base_offset=4, attributes=0x20))
    log = DATA + control + encode_batch(at(RECORDS, 5), ModelBatch(base_offset=5)) + DATA[:50]
    assert imported(decode(log)).equals(record_batch(RECORDS + at(RECORDS, 5), COLUMNS))
    found = imported(decode(log, ["offset", "timestamp"], from_offset=6, timestamp_unit="us", timezone="UTC"))
    assert found.equals(record_batch(at(RECORDS[1:], 5), ["offset", "timestamp"], unit="us", timezone="UTC"))


def test_decode_refuses_a_broken_batch() -> None:
    with pytest.raises(CorruptRecordError, match="CRC"):
        decode(DATA[:-1] + b"\x01")
