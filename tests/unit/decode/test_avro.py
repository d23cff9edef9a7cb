"""Decoding of Avro, compared with fastavro, which encoded the values."""

import datetime
import decimal
import io
import json
import math
import uuid

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkacore.decode.avro import AvroOptions, avro_decoder, avro_options
from kafkacore.decode.avro_ddl import ddl_of
from kafkacore.decode.avro_program import compile_program
from kafkacore.decode.avro_schema import AvroSchemaError, parse_schema
from kafkacore.decode.decoder import ColumnTooLargeError
from kafkacore.errors import KafkaConfigurationError

UTC = datetime.UTC


def record(*fields, name="R"):
    return {"type": "record", "name": name, "fields": [{"name": n, "type": kind} for n, kind in fields]}


def written(schema, value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def decode(schema, values, **columns):
    """Return the decoded rows, which of them are malformed, and the reasons."""
    wanted = pa.schema([pa.field(name, kind) for name, kind in columns.items()])
    decoded = avro_decoder(wanted, AvroOptions(json.dumps(schema))).decode(pa.array(values, pa.binary()))
    for column, field in zip(decoded.columns, wanted, strict=True):
        assert column.type.equals(field.type)
        column.validate(full=True)
    malformed = decoded.malformed.to_pylist() if decoded.malformed is not None else None
    rows = [tuple(row) for row in zip(*(c.to_pylist() for c in decoded.columns), strict=True)]
    return rows, malformed, dict(decoded.reasons)


def one(kind, value, column):
    """Return a value of Avro type ``kind``, decoded to a column of type ``column``."""
    schema = record(("a", kind))
    rows, malformed, _ = decode(schema, [written(schema, {"a": value})], a=column)
    assert malformed is None
    return rows[0][0]


# ---- Types ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value", "column", "want"),
    [
        ("boolean", True, pa.bool_(), True),
        ("int", -(2**31), pa.int32(), -(2**31)),
        ("int", 5, pa.int64(), 5),
        ("int", 5, pa.float64(), 5.0),
        ("long", 2**63 - 1, pa.int64(), 2**63 - 1),
        ("long", -(2**63), pa.int64(), -(2**63)),
        ("long", 3, pa.float32(), 3.0),
        ("float", 1.5, pa.float32(), 1.5),
        ("float", 1.5, pa.float64(), 1.5),
        ("double", -math.inf, pa.float64(), -math.inf),
        ("bytes", b"\0\xff", pa.binary(), b"\0\xff"),
        ("bytes", "é".encode(), pa.string(), "é"),
        ("string", "é", pa.string(), "é"),
        ("string", "é", pa.binary(), "é".encode()),
        ({"type": "fixed", "name": "F", "size": 3}, b"abc", pa.binary(), b"abc"),
        ({"type": "enum", "name": "E", "symbols": ["A", "BCD", "E"]}, "BCD", pa.string(), "BCD"),
        ({"type": "array", "items": "string"}, ["x", "", "z"], pa.list_(pa.string()), ["x", "", "z"]),
        ({"type": "array", "items": ["null", "int"]}, [1, None], pa.list_(pa.int32()), [1, None]),
        ({"type": "map", "values": "int"}, {"k": 1}, pa.map_(pa.string(), pa.int32()), [("k", 1)]),
        (["null", "string"], None, pa.string(), None),
        (["null", "string"], "s", pa.string(), "s"),
        (["int", "long"], 2**40, pa.int64(), 2**40),
        (
            ["null", "int", "string"],
            "s",
            pa.struct([("member0", pa.int32()), ("member1", pa.string())]),
            {"member0": None, "member1": "s"},
        ),
        (["null", "int", "string"], None, pa.struct([("member1", pa.string())]), None),
        (["null", "int", "string"], 4, pa.struct([("member1", pa.string())]), {"member1": None}),
        (
            {"type": "int", "logicalType": "date"},
            datetime.date(1969, 7, 20),
            pa.date32(),
            datetime.date(1969, 7, 20),
        ),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            datetime.datetime(1960, 1, 1, 0, 0, 0, 1000, UTC),
            pa.timestamp("us", tz="UTC"),
            datetime.datetime(1960, 1, 1, 0, 0, 0, 1000, UTC),
        ),
        (
            {"type": "long", "logicalType": "timestamp-micros"},
            datetime.datetime(2020, 1, 1, 0, 0, 0, 1, UTC),
            pa.timestamp("us", tz="UTC"),
            datetime.datetime(2020, 1, 1, 0, 0, 0, 1, UTC),
        ),
        (
            {"type": "long", "logicalType": "local-timestamp-millis"},
            datetime.datetime(2020, 1, 1),
            pa.timestamp("us"),
            datetime.datetime(2020, 1, 1),
        ),
        (
            {"type": "int", "logicalType": "time-millis"},
            datetime.time(1, 2, 3, 4000),
            pa.time64("ns"),
            datetime.time(1, 2, 3, 4000),
        ),
        (
            {"type": "long", "logicalType": "time-micros"},
            datetime.time(1, 2, 3, 4),
            pa.int64(),
            3_723_000_004,
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            decimal.Decimal("-1234.50"),
            pa.decimal128(9, 2),
            decimal.Decimal("-1234.50"),
        ),
        (
            {"type": "fixed", "name": "D", "size": 20, "logicalType": "decimal", "precision": 38, "scale": 0},
            decimal.Decimal(-(10**37)),
            pa.decimal128(38, 0),
            decimal.Decimal(-(10**37)),
        ),
        ({"type": "string", "logicalType": "uuid"}, uuid.UUID(int=7), pa.string(), str(uuid.UUID(int=7))),
    ],
)
def test_value_is_as_fastavro_wrote_it(kind, value, column, want):
    assert one(kind, value, column) == want


def test_one_of_several_records_is_a_member_or_has_the_fields_of_all():
    first, second = record(("x", "int"), name="A"), record(("x", "int"), ("y", "string"), name="B")
    schema = record(("u", ["null", first, second]))
    values = [written(schema, {"u": value}) for value in (("A", {"x": 1}), ("B", {"x": 2, "y": "s"}), None)]
    alike = pa.struct([("x", pa.int32())])
    members = pa.struct([("member1", pa.struct([("y", pa.string())])), ("member0", alike)])
    shown = "`u` struct<`member0` struct<`x` int>, `member1`"
    assert ddl_of(parse_schema(json.dumps(schema))).startswith(shown)
    assert decode(schema, values, u=members)[0] == [
        ({"member1": None, "member0": {"x": 1}},),
        ({"member1": {"y": "s"}, "member0": None},),
        (None,),
    ]
    assert decode(schema, values, u=alike)[0] == [({"x": 1},), ({"x": 2},), (None,)]


def test_uuid_of_sixteen_bytes_becomes_text():
    schema = record(("a", {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}))
    assert decode(schema, [bytes(range(16))], a=pa.string())[0] == [("00010203-0405-0607-0809-0a0b0c0d0e0f",)]


def test_nanoseconds_are_rounded_down_before_1970_too():
    schema = record(("a", {"type": "long", "logicalType": "timestamp-nanos"}))
    rows, _, _ = decode(schema, [written(record(("a", "long")), {"a": -1})], a=pa.timestamp("us", tz="UTC"))
    assert rows == [(datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),)]


NESTED = record(
    ("id", "long"),
    ("inner", ["null", record(("x", "int"), ("tags", {"type": "array", "items": "string"}), name="Inner")]),
    ("many", {"type": "array", "items": "Inner"}),
    ("last", "string"),
)
INNER = pa.struct([("tags", pa.list_(pa.string())), ("x", pa.int32())])


def test_nested_values_are_found_by_name_and_the_rest_is_read_past():
    value = {
        "id": 1,
        "inner": {"x": 2, "tags": ["a"]},
        "many": [{"x": n, "tags": []} for n in (3, 4)],
        "last": "z",
    }
    raw = written(NESTED, value)
    assert decode(NESTED, [raw, None, raw], last=pa.string(), INNER=INNER, many=pa.list_(INNER))[0] == [
        ("z", {"tags": ["a"], "x": 2}, [{"tags": [], "x": 3}, {"tags": [], "x": 4}]),
        (None, None, None),
        ("z", {"tags": ["a"], "x": 2}, [{"tags": [], "x": 3}, {"tags": [], "x": 4}]),
    ]
    assert decode(NESTED, [raw], last=pa.string())[0] == [("z",)]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("boolean", True),
        ("long", 2**40),
        ("float", 1.5),
        ("double", 1.5),
        ("bytes", b"ab"),
        ("string", "ab"),
        ({"type": "fixed", "name": "F", "size": 3}, b"abc"),
        ({"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}, bytes(16)),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B"),
        ({"type": "array", "items": {"type": "enum", "name": "E", "symbols": ["A"]}}, ["A"]),
        ({"type": "map", "values": "int"}, {"k": 1}),
        (["null", "int", "string"], "s"),
        (record(("x", "int"), name="Inner"), {"x": 1}),
    ],
)
def test_field_without_a_column_is_skipped(kind, value):
    schema = record(("first", "int"), ("a", kind), ("last", "string"))
    raw = written(schema, {"first": 1, "a": value, "last": "z"})
    assert decode(schema, [raw], first=pa.int32(), last=pa.string())[:2] == ([(1, "z")], None)


def test_root_that_is_no_record_is_a_column_named_value():
    assert decode("long", [written("long", 7)], value=pa.int64())[0] == [(7,)]
    rows, malformed, _ = decode(["null", NESTED], [b"\0", None], id=pa.int64())
    assert (rows, malformed) == ([(None,), (None,)], None)


def test_two_columns_of_the_same_field_are_refused():
    schema = record(("id", "int"))
    with pytest.raises(KafkaConfigurationError, match="id and ID are the same field id"):
        decode(schema, [written(schema, {"id": 1})], id=pa.int32(), ID=pa.int32())


def test_type_within_itself_is_read_as_deep_as_the_columns_go():
    chain = record(("v", "int"), ("next", ["null", "R"]))
    raw = written(chain, {"v": 1, "next": {"v": 2, "next": {"v": 3, "next": None}}})
    rows, malformed, _ = decode(chain, [raw], v=pa.int32(), next=pa.struct([("v", pa.int32())]))
    assert (rows, malformed) == ([(1, {"v": 2})], None)
    with pytest.raises(KafkaConfigurationError, match="contains itself"):
        ddl_of(parse_schema(json.dumps(chain)))


# ---- Schema resolution ---------------------------------------------------------------------------------


def test_column_that_the_given_schema_lacks_is_refused():
    with pytest.raises(KafkaConfigurationError, match="has no field nmae: it has id, inner, many, last"):
        decode(NESTED, [], nmae=pa.string())


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("string", pa.int32()),
        ("long", pa.int32()),
        ("double", pa.float32()),
        ("long", pa.timestamp("us")),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, pa.timestamp("us", tz="UTC")),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, pa.decimal128(9, 3)),
        ({"type": "array", "items": "int"}, pa.int32()),
        (["int", "string"], pa.string()),
        (["int", "string"], pa.struct([("member2", pa.string())])),
    ],
)
def test_type_that_does_not_become_the_column_is_refused(kind, column):
    with pytest.raises(KafkaConfigurationError, match="field a is"):
        decode(record(("a", kind)), [], a=column)


# ---- Hostile bytes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "raw", "column", "reason"),
    [
        ("string", b"\x06ab", pa.string(), "truncated"),
        ("string", b"\x01", pa.string(), "negative"),
        ("string", b"\x04\xc3\x28", pa.string(), "not UTF-8"),
        ("string", b"\x06\xed\xa0\x80", pa.string(), "not UTF-8"),
        ("long", b"\xff" * 10, pa.int64(), "too many bytes"),
        ("int", written("long", 2**31), pa.int32(), "exceeds the range"),
        ("boolean", b"\x02", pa.bool_(), "neither 0 nor 1"),
        (["null", "int"], b"\x04", pa.int32(), "no branch"),
        (["null", "int"], b"\x01", pa.int32(), "no branch"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02", pa.string(), "no symbol"),
        ({"type": "array", "items": "int"}, written("long", 2**60), pa.list_(pa.int32()), "truncated"),
        ({"type": "array", "items": "int"}, written("long", -(2**63)), pa.list_(pa.int32()), "negative"),
        (
            {"type": "array", "items": record(("x", "null"), name="Empty")},
            written("long", 2**60),
            pa.list_(pa.struct([("x", pa.int32())])),
            "too many",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 0},
            b"\x02\x64",
            pa.decimal128(2, 0),
            "more digits",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0},
            b"\x22" + b"\x01" + b"\x00" * 16,
            pa.decimal128(38, 0),
            "more digits",
        ),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            written("long", 2**62),
            pa.timestamp("us", tz="UTC"),
            "range",
        ),
        ("double", b"\0" * 7, pa.float64(), "truncated"),
    ],
)
def test_malformed_value_says_why_and_leaves_its_neighbours(kind, raw, column, reason):
    schema = record(("before", "int"), ("a", kind))
    rows, malformed, reasons = decode(schema, [b"\x02" + raw, None], before=pa.int32(), a=column)
    assert (rows, malformed) == ([(None, None), (None, None)], [True, False])
    assert reason in reasons[0]
    assert reasons[0].startswith("field a: ")


def test_deep_recursion_of_what_nobody_wants_is_malformed():
    chain = record(("v", "int"), ("next", ["null", "R"]))
    rows, malformed, reasons = decode(chain, [b"\x02\x02" * 100_000 + b"\x02\0"], v=pa.int32())
    assert (rows, malformed) == ([(None,)], [True])
    assert "too deep" in reasons[0]


def test_what_decodes_to_too_much_is_split_and_malformed_alone():
    symbols = {"type": "enum", "name": "E", "symbols": ["X" * 10_000]}
    wide = record(("a", {"type": "array", "items": symbols}))
    raw = written("long", 150) + b"\0" * 150 + b"\0"
    wanted = pa.schema([("a", pa.list_(pa.string()))])
    decoder = avro_decoder(wanted, AvroOptions(json.dumps(wide)), batch_bytes=4_000_000)
    with pytest.raises(ColumnTooLargeError):
        decoder.decode(pa.array([raw, raw], pa.binary()))
    assert decoder.decode(pa.array([raw], pa.binary())).malformed is None
    raw = written("long", 300) + b"\0" * 300 + b"\0"
    decoded = decoder.decode(pa.array([raw], pa.binary()))
    assert decoded.malformed.to_pylist() == [True]
    assert decoded.columns[0].to_pylist() == [None]


KINDS = {
    "l": ("long", pa.int64()),
    "s": (["null", "string"], pa.string()),
    "d": ("double", pa.float64()),
    "a": ({"type": "array", "items": ["null", "long"]}, pa.list_(pa.int64())),
    "m": ({"type": "map", "values": "string"}, pa.map_(pa.string(), pa.string())),
    "b": ("boolean", pa.bool_()),
    "r": (
        record(("x", "bytes"), ("y", ["null", "int"]), name="Inner"),
        pa.struct([("x", pa.binary()), ("y", pa.int32())]),
    ),
}
ANY = record(*((name, kind) for name, (kind, _) in KINDS.items()))
LONGS = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.fixed_dictionaries(
    {
        "l": LONGS,
        "s": st.none() | TEXT,
        "d": st.floats(allow_nan=False),
        "a": st.lists(st.none() | LONGS, max_size=4),
        "m": st.dictionaries(TEXT, TEXT, max_size=3),
        "b": st.booleans(),
        "r": st.fixed_dictionaries(
            {"x": st.binary(max_size=9), "y": st.none() | st.integers(-(2**31), 2**31 - 1)}
        ),
    }
)


@given(st.lists(st.none() | VALUES, max_size=12), st.sets(st.sampled_from(sorted(KINDS)), min_size=1))
@settings(max_examples=60)
def test_any_values_and_columns_are_read_as_fastavro_reads_them(values, names):
    raw = [None if value is None else written(ANY, value) for value in values]
    columns = {name: KINDS[name][1] for name in names}
    rows, malformed, _ = decode(ANY, raw, **columns)
    assert malformed is None
    for row, value in zip(rows, values, strict=True):
        for name, got in zip(columns, row, strict=True):
            want = None if value is None else value[name]
            assert (dict(got) if name == "m" and got is not None else got) == want


@given(VALUES, st.integers(0, 200), st.integers(0, 255))
@settings(max_examples=150)
def test_cut_or_changed_bytes_never_break_the_columns(value, place, byte):
    raw = written(ANY, value)
    changed = bytearray(raw)
    changed[place % len(raw)] = byte
    columns = {name: kind for name, (_, kind) in KINDS.items()}
    rows, malformed, _ = decode(ANY, [raw[: place % len(raw)], raw, bytes(changed), None, raw], **columns)
    assert malformed is not None
    assert malformed[0]
    assert not malformed[1]
    assert rows[1] == rows[4]
    assert rows[3] == (None,) * len(columns)


# ---- Schemas -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "not an Avro schema"),
        ('{"type":"record","name":"R"}', "no fields"),
        ('{"type":"record","name":"R","fields":[{"name":"a","type":"S"}]}', "type 'S' is not defined"),
        ('{"type":"record","name":"R","fields":[{"name":"a"}]}', "no name or no type"),
        ('{"type":"record","name":"9","fields":[]}', "is not a valid name"),
        ('{"type":"enum","name":"E"}', "no symbols"),
        ('{"type":"fixed","name":"F","size":-1}', "no valid size"),
        ('["null",["int"]]', "must not be a union"),
        ('{"type":' * 100 + '"int"' + "}" * 100, "deeper than"),
        ("[" * 100_000, "not an Avro schema"),
        (r'{"type":"enum","name":"E","symbols":["\ud800"]}', "not a valid name"),
        (r'{"type":"record","name":"R","fields":[{"name":"\ud800","type":"int"}]}', "is not a valid name"),
        ("5", "is not a type"),
    ],
)
def test_text_that_is_no_schema_is_refused(text, sentence):
    with pytest.raises(AvroSchemaError, match=sentence):
        parse_schema(text)


def tower(height, width):
    """Return a schema of ``height`` nested records with ``width`` fields each.

    All fields of a record have the type of the record below.
    """
    names = {}
    parse_schema(json.dumps(record(*((f"f{n}", "int") for n in range(width)), name="R0")), names)
    for at in range(1, height):
        fields = ((f"f{n}", f"R{at - 1}") for n in range(width))
        parse_schema(json.dumps(record(*fields, name=f"R{at}")), names)
    top = record(("a", "int"), ("b", {"type": "array", "items": f"R{height - 1}"}), name="Top")
    return parse_schema(json.dumps(top), names)


def test_small_schema_of_very_many_fields_is_neither_spelled_out_nor_walked_twice():
    wide = tower(60, 2)
    with pytest.raises(KafkaConfigurationError, match="more than 20000 fields"):
        ddl_of(wide)
    assert len(compile_program(wide, pa.schema([("a", pa.int32())]))) < 1000


def test_schema_deeper_than_the_stack_is_refused():
    deep = tower(5_000, 1)
    with pytest.raises(KafkaConfigurationError, match="nested too deeply"):
        compile_program(deep, pa.schema([("a", pa.int32())]))
    with pytest.raises(KafkaConfigurationError, match="nested too deeply"):
        ddl_of(deep)


@pytest.mark.parametrize("default", [10**400, {}, {"f": {}}, "x", [1]])
def test_default_that_is_none_is_refused(default):
    own = {"type": "record", "name": "R", "fields": [{"name": "f", "type": "R", "default": {}}]}
    for kind in ("double", own):
        reader = parse_schema(
            json.dumps(
                {"type": "record", "name": "T", "fields": [{"name": "a", "type": kind, "default": default}]}
            )
        )
        wanted = pa.schema([("a", pa.float64() if kind == "double" else pa.struct([("f", pa.int32())]))])
        with pytest.raises(KafkaConfigurationError, match=r"default|too deep"):
            compile_program(parse_schema(json.dumps(record(("b", "int")))), wanted, reader)


def test_names_are_resolved_within_their_namespace():
    text = """{"type":"record","name":"R","namespace":"a.b","fields":[
        {"name":"f","type":{"type":"fixed","name":"F","size":2}},{"name":"g","type":"F"},{"name":"h","type":"a.b.F"}]}"""
    fields = parse_schema(text).fields
    assert fields[0].type is fields[1].type is fields[2].type


def test_columns_of_a_schema_are_those_of_from_avro():
    schema = record(
        ("a", "int"),
        ("t", {"type": "long", "logicalType": "timestamp-micros"}),
        ("d", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
        ("u", ["null", "int", "long"]),
        ("v", ["null", "int", "string"]),
        ("m", {"type": "map", "values": {"type": "array", "items": "float"}}),
    )
    assert ddl_of(parse_schema(json.dumps(schema))) == (
        "`a` int, `t` timestamp, `d` decimal(9,2), `u` bigint, `v` struct<`member0` int, `member1` string>, "
        "`m` map<string, array<float>>"
    )


def test_avro_needs_a_schema_or_a_registry():
    with pytest.raises(KafkaConfigurationError, match=r"value\.schema .* or set schema\.registry\.url"):
        avro_options({"mode": "FAILFAST"})
    with pytest.raises(KafkaConfigurationError, match=r"value\.schema: not an Avro schema"):
        avro_decoder(pa.schema([]), avro_options({"schema": "{"}))
