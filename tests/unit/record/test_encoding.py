"""Encoding of whole columns to batches: the bytes equal those of appending record by record."""

import itertools
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.records_v2 import ModelBatch, ModelRecord, encode_batch, read_all

from kafkacore.record import Compression, RecordBatchBuilder, RecordSource, decode, encode, read_batches

VALUES = [b"", b"v", None, b"x" * 127, bytes(range(256)) * 40, b"tail", None, b"end"]
KEYS = [None, b"k", b"", b"key" * 9, None, b"k5", b"k6", b"k7"]
HEADERS: list[list[tuple[str, bytes | None]]] = [
    [],
    [("h", b"1"), ("h", None), ("grün", b"")],
    [],
    [("", b"x" * 300)],
    [],
    [],
    [("a" * 200, b"1")],
    [],
]
TIMESTAMPS = [1000, 900, None, 5000, 0, None, 2**40, 1000]
BINARY_TYPES = [pa.binary(), pa.large_binary(), pa.binary_view()]
HEADERS_TYPES = [
    pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    pa.large_list(pa.struct([("key", pa.large_string()), ("value", pa.large_binary())])),
    pa.list_(pa.struct([("value", pa.binary()), ("key", pa.string_view())])),
    pa.map_(pa.string(), pa.binary()),
]


def appended(
    values: Iterable[bytes | None],
    keys: Iterable[bytes | None] = (),
    headers: Iterable[list[tuple[str, bytes | None]]] = (),
    timestamps: Iterable[int | None] = (),
    timestamp_ms: int = -1,
    batch_size: int = 1 << 20,
) -> list[memoryview]:
    """Return the batches that a loop of appends produces for the same rows."""
    batches, builder = [], RecordBatchBuilder(batch_size)
    rows = itertools.zip_longest(values, keys, headers, timestamps)
    for value, key, pairs, timestamp in rows:
        time = timestamp_ms if timestamp is None else timestamp
        if builder.append(time, key, value, pairs or ()) < 0:
            batches.append(builder.close())
            builder = RecordBatchBuilder(batch_size)
            builder.append(time, key, value, pairs or ())
    return [*batches, builder.close()]


WANTED = appended(VALUES, KEYS, HEADERS, TIMESTAMPS, 77)


def header_array(kind: pa.DataType) -> Any:
    if isinstance(kind, pa.MapType):
        return pa.array(HEADERS, kind)
    return pa.array([[{"key": key, "value": value} for key, value in row] for row in HEADERS], kind)


def test_bytes_are_those_of_the_model() -> None:
    records = [
        ModelRecord(row, 77 if time is None else time, key, value, headers)
        for row, (value, key, headers, time) in enumerate(zip(VALUES, KEYS, HEADERS, TIMESTAMPS, strict=True))
    ]
    (sealed,) = encode(VALUES, KEYS, HEADERS, TIMESTAMPS, timestamp_ms=77)
    assert sealed == encode_batch(records, ModelBatch())


@pytest.mark.parametrize("kind", [list, tuple, iter])
def test_columns_are_lists_tuples_and_iterables(kind: Any) -> None:
    columns = (kind(column) for column in (VALUES, KEYS, HEADERS, TIMESTAMPS))
    assert encode(*columns, timestamp_ms=77) == WANTED


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_values_and_keys_are_any_buffers(kind: Any) -> None:
    values = [value and kind(value) for value in VALUES]
    keys = [key if key is None else kind(key) for key in KEYS]
    assert encode(values, keys, HEADERS, TIMESTAMPS, timestamp_ms=77) == WANTED


@pytest.mark.parametrize("kind", BINARY_TYPES, ids=str)
@pytest.mark.parametrize("headers_type", HEADERS_TYPES, ids=["list", "large_list", "swapped", "map"])
def test_columns_are_arrow_arrays(kind: pa.DataType, headers_type: pa.DataType) -> None:
    columns = pa.array(VALUES, kind), pa.array(KEYS, kind), header_array(headers_type), pa.array(TIMESTAMPS)
    assert encode(*columns, timestamp_ms=77) == WANTED


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_text_is_its_utf_8(kind: pa.DataType) -> None:
    texts = ["grün", None, "", "a text longer than twelve bytes"]
    assert encode(pa.array(texts, kind)) == appended(
        [text if text is None else text.encode() for text in texts]
    )


def test_rows_of_fixed_size() -> None:
    values = [b"four", None, b"more"]
    assert encode(pa.array(values, pa.binary(4))) == appended(values)


@pytest.mark.parametrize("index", [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(),
                                   pa.int64(), pa.uint64()], ids=str)  # fmt: skip
def test_a_dictionary_is_decoded(index: pa.DataType) -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([1, None, 0, 1, 2], index), pa.array([b"a", b"b", None]))
    assert encode(array.slice(1)) == appended([None, b"a", b"b", None])


def test_a_column_of_nulls_without_a_type() -> None:
    nulls = pa.nulls(3)
    assert encode([b"a", b"b", b"c"], nulls, nulls, nulls, timestamp_ms=5) == appended(
        [b"a", b"b", b"c"], timestamp_ms=5
    )


@pytest.mark.parametrize("start", [0, 1, 3])
@pytest.mark.parametrize("kind", [*BINARY_TYPES, "dictionary"], ids=str)
def test_a_slice_is_its_rows(kind: Any, start: int) -> None:
    whole = pa.array(VALUES).dictionary_encode() if kind == "dictionary" else pa.array(VALUES, kind)
    columns = [whole, pa.array(KEYS), header_array(HEADERS_TYPES[0]), pa.array(TIMESTAMPS)]
    wanted = appended(*(column[start:-1] for column in (VALUES, KEYS, HEADERS, TIMESTAMPS)), timestamp_ms=77)
    length = len(VALUES) - 1 - start
    assert encode(*(column.slice(start, length) for column in columns), timestamp_ms=77) == wanted


@pytest.mark.parametrize("kind", [*BINARY_TYPES, "dictionary"], ids=str)
def test_chunks_need_not_lie_alike(kind: Any) -> None:
    def chunked(column: Any, *cuts: int) -> Any:
        edges = [0, *cuts, len(column)]
        return pa.chunked_array([column[start:end] for start, end in itertools.pairwise(edges)])

    values = pa.array(VALUES).dictionary_encode() if kind == "dictionary" else pa.array(VALUES, kind)
    columns = (
        chunked(values, 1, 1, 4),
        chunked(pa.array(KEYS), 3),
        chunked(header_array(HEADERS_TYPES[0]), 2, 7),
        chunked(pa.array(TIMESTAMPS), 5),
    )
    assert encode(*columns, timestamp_ms=77) == WANTED


def table() -> pa.Table:
    columns = {
        "headers": header_array(HEADERS_TYPES[0]),
        "timestamp": pa.array(TIMESTAMPS, pa.timestamp("ms", "UTC")),
        "key": pa.array(KEYS),
        "value": pa.array(VALUES),
    }
    return pa.table(columns)


@pytest.mark.parametrize("form", ["table", "batch", "chunks", "slice", "struct"])
def test_rows_come_from_a_table_by_the_names_of_its_columns(form: str) -> None:
    forms = {
        "table": table(),
        "batch": table().to_batches()[0],
        "chunks": pa.concat_tables([table().slice(0, 3), table().slice(3)]),
        "slice": pa.concat_tables([table(), table(), table()])
        .combine_chunks()
        .slice(len(VALUES), len(VALUES)),
        "struct": pa.concat_arrays([table().to_struct_array().combine_chunks()] * 2).slice(len(VALUES)),
    }
    assert encode(RecordSource.from_arrow(forms[form]), timestamp_ms=77) == WANTED


def test_what_was_read_as_columns_is_written_as_it_is() -> None:
    columns = decode(WANTED[0], ["timestamp", "key", "value", "headers"])
    assert encode(RecordSource.from_arrow(columns)) == WANTED


def test_a_view_of_a_null_row_may_be_anything() -> None:
    array = pa.array([b"longer than twelve bytes", None], pa.binary_view())
    broken = pa.Array.from_buffers(
        array.type, 2, [array.buffers()[0], pa.py_buffer(array.buffers()[1].to_pybytes()[:16] + b"\xff" * 16),
                        array.buffers()[2]]
    )  # fmt: skip
    assert encode(broken) == appended([b"longer than twelve bytes", None])


@pytest.mark.parametrize(
    ("unit", "times", "wanted"),
    [
        ("s", [1, -1, None], [1000, -1000, None]),
        ("ms", [1, -1, None], [1, -1, None]),
        ("us", [1999, -1, -1000], [1, -1, -1]),
        ("ns", [1_999_999, -1, None], [1, -1, None]),
    ],
)
def test_times_of_any_unit_are_milliseconds_rounded_down(
    unit: str, times: list[int], wanted: list[int]
) -> None:
    array = pa.array(times, pa.int64()).cast(pa.timestamp(unit))
    assert encode([b""] * 3, timestamps=array, timestamp_ms=9) == appended(
        [b""] * 3, timestamps=wanted, timestamp_ms=9
    )


def test_a_time_that_is_no_64_bits_of_milliseconds_is_refused() -> None:
    with pytest.raises(OverflowError, match="timestamps: a time in milliseconds does not fit"):
        encode([b""], timestamps=pa.array([2**60], pa.timestamp("s")))
    with pytest.raises(OverflowError, match=r"timestamps\[0\]"):
        encode([b""], timestamps=[2**64])


@pytest.mark.parametrize("batch_size", [0, 100, 200, 500, 11_000])
def test_batches_are_cut_where_appending_cuts_them(batch_size: int) -> None:
    values = VALUES * 20
    batches = encode(values, timestamp_ms=1, batch_size=batch_size)
    assert batches == appended(values, timestamp_ms=1, batch_size=batch_size)
    assert encode(pa.array(values), timestamp_ms=1, batch_size=batch_size) == batches


def test_offsets_and_sizes_of_more_than_one_byte() -> None:
    values = [bytes(size % 400) for size in range(20_000)]
    times = [(row * 7919) % 100_000 for row in range(20_000)]
    assert encode(values, timestamps=times, batch_size=1 << 24) == appended(
        values, timestamps=times, batch_size=1 << 24
    )


@pytest.mark.parametrize("codec", list(Compression), ids=lambda codec: codec.name.lower())
def test_batches_are_compressed(codec: Compression) -> None:
    sealed = encode(VALUES, KEYS, compression=codec, batch_size=10_000, compression_ratio=0.5)
    records = read_all(read_batches(b"".join(sealed)))
    assert [(record.key, record.value) for record in records] == list(zip(KEYS, VALUES, strict=True))
    assert all(batch.compression is codec for batch in read_batches(b"".join(sealed)))


def test_no_rows_are_no_batches() -> None:
    assert encode([]) == encode(pa.array([], pa.binary())) == encode(pa.chunked_array([], pa.binary())) == []
    assert encode(RecordSource.from_arrow(table().slice(0, 0))) == []


rows = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=300),
        st.none() | st.binary(max_size=20),
        st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=20)), max_size=3),
        st.none() | st.integers(-(2**63) + 1, 2**63 - 1),
    ),
    min_size=1,
    max_size=50,
)


@given(rows, st.integers(0, 2000), st.integers(0, 50))
def test_any_rows_from_any_kind_of_column(rows: list[Any], batch_size: int, cut: int) -> None:
    values, keys, headers, times = (list(column) for column in zip(*rows, strict=True))
    wanted = appended(values, keys, headers, times, batch_size=batch_size)
    assert encode(values, keys, headers, times, batch_size=batch_size) == wanted
    whole = pa.table(
        {
            "value": pa.array(values, pa.binary()),
            "key": pa.array(keys, pa.large_binary()),
            "headers": pa.array(headers, HEADERS_TYPES[3]),
            "timestamp": pa.array(times, pa.int64()),
        }
    )
    cut_up = pa.concat_tables([whole.slice(0, cut), whole.slice(cut)])
    assert encode(RecordSource.from_arrow(cut_up), batch_size=batch_size) == wanted


# ---- Rejected columns --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("columns", "error", "sentence"),
    [
        ((["text"],), TypeError, r"values\[0\] must be bytes, another buffer or None, not 'str'"),
        (([b"", b""], [b"", 5]), TypeError, r"keys\[1\] must be .* not 'int'"),
        ((b"bytes",), TypeError, "values must be a list or Arrow data, not a single 'bytes'"),
        (([b""], [b"", b""]), ValueError, "2 keys but 1 values"),
        (([b""], None, [["pair"]]), TypeError, r"headers\[0\] must be a list of"),
        (
            ([b""], None, [[(b"name", b"")]]),
            TypeError,
            r"the name of a header in headers\[0\] must be str, not 'bytes'",
        ),
        (([b""], None, [[("name", 5)]]), TypeError, "the value of header 'name' must be .* not 'int'"),
        (([b""], None, [{"name": b""}]), TypeError, r"headers\[0\] must be .* not 'dict'"),
        (([b""], None, None, [1.5]), TypeError, r"timestamps\[0\] must be an int or None, not 'float'"),
        (([b""], None, None, None, [-1]), ValueError, r"partitions\[0\] must be 0 to .* not -1"),
        ((pa.array([1]),), TypeError, "values has Arrow type 'l'; supported are binary"),
        (([b""], pa.array([[b""]])), TypeError, r"keys has Arrow type '\+l'"),
        (([b""], None, pa.array(["a"])), TypeError, "headers has Arrow type 'u'; supported are list<struct"),
        (([b""], None, pa.array([[{"a": "", "b": b""}]])), TypeError, "headers has Arrow type"),
        (([b""], None, pa.array([[{"key": 1, "value": b""}]])), TypeError, "the key of headers has Arrow"),
        (([b""], None, pa.array([[{"key": None, "value": b""}]])), ValueError, "a header in row 0 is"),
        (([b""], None, pa.array([[None]], HEADERS_TYPES[0])), ValueError, "a header in row 0 is null"),
        (
            ([b""], None, None, pa.array([1.5])),
            TypeError,
            "timestamps has Arrow type 'g'; supported are times",
        ),
        (([b""], None, None, None, pa.array([1.5])), TypeError, "partitions has Arrow type 'g'"),
        (
            ([b""], None, None, None, pa.array([2**31])),
            ValueError,
            "partitions contains an invalid partition",
        ),
        (([Decimal(1)],), TypeError, r"values\[0\] is 'decimal.Decimal'|'Decimal'"),
    ],
)
def test_a_column_of_a_wrong_kind_is_refused_with_a_sentence(
    columns: tuple[Any, ...], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        RecordSource(*columns)


def test_a_table_of_a_wrong_kind_is_refused_with_a_sentence() -> None:
    with pytest.raises(
        ValueError, match="unknown column 'other'; the columns are value, key, headers, timestamp, partition"
    ):
        RecordSource.from_arrow(table().append_column("other", pa.array(KEYS)))
    assert (
        len(RecordSource.from_arrow(table().append_column("other", pa.array(KEYS)), ignored=["other"])) == 8
    )
    with pytest.raises(ValueError, match="the table has 2 columns named 'key'"):
        RecordSource.from_arrow(table().append_column("key", pa.array(KEYS)))
    with pytest.raises(ValueError, match="the table has no column 'value'"):
        RecordSource.from_arrow(table().drop_columns("value"))
    with pytest.raises(TypeError, match="is not a table"):
        RecordSource.from_arrow(pa.array(VALUES))
    with pytest.raises(TypeError, match="'list' has neither"):
        RecordSource.from_arrow([])
    with pytest.raises(ValueError, match="the table has null rows"):
        RecordSource.from_arrow(pa.array([{"value": b""}, None]))


def test_a_stream_that_fails_says_why() -> None:
    def batches() -> Iterable[pa.RecordBatch]:
        yield pa.record_batch({"value": [b"a"]})
        raise RuntimeError("no more of it")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("value", pa.binary())]), batches())
    with pytest.raises(OSError, match="no more of it"):
        RecordSource.from_arrow(reader)


@pytest.mark.parametrize("offsets", [[0, 5, 2], [3, 2, 4]])
@pytest.mark.parametrize(
    ("kind", "width"), [(pa.binary(), 4), (pa.large_string(), 8)], ids=["binary", "large_string"]
)
def test_offsets_out_of_order_are_refused(kind: pa.DataType, width: int, offsets: list[int]) -> None:
    raw = b"".join(offset.to_bytes(width, "little", signed=True) for offset in offsets)
    array = pa.Array.from_buffers(kind, 2, [None, pa.py_buffer(raw), pa.py_buffer(b"12345678")])
    with pytest.raises(ValueError, match="offset of the Arrow array is out of order"):
        RecordSource(array)


@pytest.mark.parametrize("view", [(-1, 0, 0), (13, 1, 0), (13, -1, 0), (13, 0, 10), (13, 0, -1)])
def test_views_out_of_their_buffers_are_refused(view: tuple[int, int, int]) -> None:
    size, buffer, offset = (number.to_bytes(4, "little", signed=True) for number in view)
    raw = size + b"pref" + buffer + offset
    array = pa.Array.from_buffers(pa.binary_view(), 1, [None, pa.py_buffer(raw), pa.py_buffer(bytes(20))])
    with pytest.raises(ValueError, match="outside its buffer"):
        RecordSource(array)


def test_an_index_outside_its_dictionary_is_refused() -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([0, 3], pa.int8()), pa.array([b"a"]), safe=False)
    with pytest.raises(ValueError, match="index of the Arrow array is outside its dictionary"):
        RecordSource(array)


def test_the_source_keeps_what_it_needs() -> None:
    values = [bytearray(b"one"), b"two"]
    source = RecordSource(values, pa.array([b"k", None]).slice(0), [[("n", bytearray(b"v"))], None])
    with pytest.raises(BufferError):
        values[0].extend(b"more")  # type: ignore[attr-defined]
    del values
    assert encode(source) == appended([b"one", b"two"], [b"k", None], [[("n", b"v")], []])
    assert (source.row_count, len(source)) == (2, 2)
    assert (source.has_keys, source.has_headers, source.has_timestamps, source.has_partitions) == (
        True,
        True,
        False,
        False,
    )


def test_a_list_that_changes_later_does_not_change_the_source() -> None:
    values = [b"%d" % row for row in range(1000)]
    source = RecordSource(values)
    wanted = appended(values)
    values.clear()
    assert encode(source) == wanted


def test_a_source_has_its_columns_already() -> None:
    with pytest.raises(TypeError, match="already contains keys"):
        encode(RecordSource([b""]), [b"key"])
