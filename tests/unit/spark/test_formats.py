"""Typed columns without a Spark session: options and schema to batches of exactly Spark's schema."""

import pickle
import struct

import pyarrow as pa
import pytest
from model.spark_reads import dotted
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kafkacore.decode.decoder import ColumnTooLargeError
from kafkacore.decode.json import JSON_OPTION_NAMES
from kafkacore.errors import KafkaConfigurationError, MalformedRecordError
from kafkacore.spark.columns.output import batches
from kafkacore.spark.typed.formats import FORMAT_OPTION_NAMES, default_schema, plan_output


def struct_of(**fields):
    return StructType([StructField(name, kind, True) for name, kind in fields.items()])


def long_(number):
    return struct.pack(">q", number)


VALUES = [b'{"id":1,"name":"a"}', None, b"{", b'{"name":"c"}', b"\xff"]
KEYS = [long_(7), None, long_(8), b"bad", long_(9)]
FLAT = struct_of(id=LongType(), name=StringType())


def fetch(columns):
    """Return the fetched columns of five records, offsets 10 to 14."""
    have = {
        "key": pa.array(KEYS, pa.binary()),
        "value": pa.array(VALUES, pa.binary()),
        "offset": pa.array(range(10, 15), pa.int64()),
        "timestamp": pa.array(range(5), pa.timestamp("us", tz="UTC")),
        "timestamp_type": pa.array([0] * 5, pa.int32()),
    }
    return pa.record_batch({name: have[name] for name in columns})


def read(schema, **options):
    """Return the rows that a plan produces after it has been pickled as by Spark."""
    output = pickle.loads(pickle.dumps(plan_output(schema, dotted(options)))).output()
    (batch,) = batches(output, fetch(output.fetched), "t", 3)
    assert to_arrow_schema(schema, timezone="UTC").equals(batch.schema)
    batch.validate(full=True)
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


# ---- Layouts -------------------------------------------------------------------------------------------


def test_fields_of_the_value_are_the_columns():
    assert read(FLAT, value__format="json") == [
        (1, "a"),
        (None, None),
        (None, None),
        (None, "c"),
        (None, None),
    ]


def test_leading_underscore_asks_for_kafkas_own_columns():
    schema = struct_of(
        name=StringType(),
        _offset=LongType(),
        _topic=StringType(),
        _partition=IntegerType(),
        _value=BinaryType(),
    )
    rows = read(schema, value__format="json")
    assert rows[0] == ("a", 10, "t", 3, VALUES[0])
    assert rows[1] == (None, 11, "t", 3, None)


def test_other_names_with_an_underscore_are_fields_of_the_value():
    assert read(struct_of(_id=LongType()), value__format="json") == [(None,)] * 5


def test_only_what_the_schema_names_is_fetched():
    output = plan_output(FLAT, {"value.format": "json"}).output()
    assert set(output.fetched) == {"value"}
    output = plan_output(struct_of(_offset=LongType()), {"value.format": "json"}).output()
    assert set(output.fetched) == {"offset"}


def test_without_flatten_the_value_is_a_struct_which_is_null_for_a_tombstone():
    schema = struct_of(offset=LongType(), value=struct_of(id=LongType()))
    rows = read(schema, value__format="json", value__flatten="false")
    assert rows == [(10, {"id": 1}), (11, None), (12, {"id": None}), (13, {"id": None}), (14, {"id": None})]


def test_key_has_a_format_of_its_own():
    schema = struct_of(_key=LongType(), id=LongType())
    rows = read(schema, value__format="json", key__format="long")
    assert rows == [(7, 1), (None, None), (8, None), (None, None), (9, None)]


def test_key_may_have_fields():
    schema = struct_of(key=struct_of(id=LongType()), offset=LongType())
    assert read(schema, key__format="json")[1] == (None, 11)


def test_scalar_value_keeps_kafkas_names():
    schema = struct_of(key=LongType(), value=StringType(), timestamp=TimestampType())
    rows = read(schema, key__format="long", value__format="string")
    assert [row[0] for row in rows] == [7, None, 8, None, 9]
    assert [row[1] for row in rows] == ['{"id":1,"name":"a"}', None, "{", '{"name":"c"}', None]


# ---- Modes ---------------------------------------------------------------------------------------------


def test_permissive_keeps_the_raw_value_of_malformed_records_alone():
    schema = struct_of(name=StringType(), _corrupt_record=StringType())
    assert [row[1] for row in read(schema, value__format="json")] == [None, None, "{", None, "�"]


def test_corrupt_column_may_be_binary_and_of_another_name():
    schema = struct_of(name=StringType(), bad=BinaryType())
    rows = read(schema, value__format="json", columnNameOfCorruptRecord="bad")
    assert [row[1] for row in rows] == [None, None, b"{", None, b"\xff"]


def test_corrupt_column_has_the_key_where_the_value_is_sound():
    schema = struct_of(_corrupt_record=BinaryType(), name=StringType())
    rows = read(schema, value__format="json", key__format="long")
    assert [row[0] for row in rows] == [None, None, b"{", b"bad", b"\xff"]


def test_dropmalformed_leaves_out_records_of_which_either_side_is_malformed():
    schema = struct_of(_offset=LongType(), name=StringType())
    assert [r[0] for r in read(schema, value__format="json", mode="dropMalformed")] == [10, 11, 13]
    both = read(schema, value__format="json", key__format="long", mode="DROPMALFORMED")
    assert [row[0] for row in both] == [10, 11]


def test_dropmalformed_does_not_depend_on_the_columns_asked_for():
    schema = struct_of(_offset=LongType())
    assert [r[0] for r in read(schema, value__format="json", mode="DROPMALFORMED")] == [10, 11, 13]


def test_failfast_names_the_record_and_the_reason_but_not_the_value():
    with pytest.raises(MalformedRecordError, match=r"MALFORMED_RECORD.* value of t-3 at offset 12 "):
        read(FLAT, value__format="json", mode="FAILFAST")
    with pytest.raises(MalformedRecordError, match=r"the key of t-3 at offset 13 .* got 3 bytes, expected 8"):
        read(struct_of(key=LongType()), key__format="long", mode="FAILFAST")


# ---- Rejected options ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "options", "sentence"),
    [
        (FLAT, {"value.format": "jsn"}, "value.format must be one of .*json.*'jsn'"),
        (FLAT, {"value.format": "protobuf"}, "not supported: .* from_protobuf"),
        (FLAT, {"value.format": "json", "mode": "STRICT"}, "mode must be one of"),
        (FLAT, {"value.format": "string"}, "no column 'id'"),
        (FLAT, {"value.format": "string", "value.flatten": "true"}, "value.flatten applies only"),
        (FLAT, {"value.format": "json", "value.flatten": "perhaps"}, "true or false"),
        (struct_of(_offset=IntegerType()), {"value.format": "json"}, "_offset must be .* bigint.*flatten"),
        (struct_of(_offset=LongType()), {"value.format": "long"}, "its name is offset"),
        (struct_of(value=StringType()), {"value.format": "long"}, "has type string, but .* needs bigint"),
        (struct_of(value=StringType()), {"value.format": "json", "value.flatten": "false"}, "a struct"),
        (struct_of(key=StructType([])), {"key.format": "json"}, "without fields"),
        (struct_of(_corrupt_record=LongType()), {"value.format": "json"}, "must be string or binary"),
        (StructType([StructField("a", LongType(), False)]), {"value.format": "json"}, "cannot be NOT NULL"),
        (struct_of(a=ArrayType(LongType(), False)), {"value.format": "json"}, "not nullable"),
        (
            struct_of(a=MapType(StringType(), struct_of(b=ArrayType(LongType(), False)))),
            {"value.format": "json"},
            "not nullable",
        ),
        (StructType([*FLAT.fields, FLAT.fields[0]]), {"value.format": "json"}, "id occurs twice"),
    ],
)
def test_what_does_not_fit_is_refused_on_the_driver(schema, options, sentence):
    with pytest.raises(KafkaConfigurationError, match=sentence):
        plan_output(schema, options)


# ---- Defaults ------------------------------------------------------------------------------------------


def test_default_schema_types_key_and_value():
    ddl = default_schema({"VALUE.Format": "string", "key.format": "long"})
    assert ddl.startswith("key bigint, value string, topic string, partition int")


def test_default_schema_of_json_needs_its_fields():
    with pytest.raises(KafkaConfigurationError, match=r"needs the fields: \.schema"):
        default_schema({"value.format": "json"})
    assert default_schema({"value.format": "json", "value.schema": "id BIGINT"}) == "id BIGINT"
    as_json = {"value.format": "json", "value.schema": FLAT.json(), "value.flatten": "false"}
    assert "value struct<`id` bigint, `name` string>" in default_schema(as_json)
    with pytest.raises(KafkaConfigurationError, match="neither DDL"):
        default_schema({"value.format": "json", "value.schema": '{"a":1}'})


def test_names_within_types_of_a_schema_in_json_stand_in_quotes():
    inner = StructType([StructField("a b", StringType()), StructField("c`d.e", MapType(StringType(), FLAT))])
    schema = StructType([StructField("x-y", ArrayType(inner))])
    assert default_schema({"value.format": "json", "value.schema": schema.json()}) == (
        "`x-y` array<struct<`a b`: string, `c``d.e`: map<string, struct<`id`: bigint, `name`: string>>>>"
    )


def test_options_of_json_are_known_here():
    assert set(JSON_OPTION_NAMES) <= set(FORMAT_OPTION_NAMES)


# ---- Large columns -------------------------------------------------------------------------------------


class Narrow:
    """An output that takes at most two rows per batch."""

    def batch(self, found, topic, partition):
        if found.num_rows > 2:
            raise ColumnTooLargeError("too large")
        return found


def test_batch_that_grows_too_large_is_split_in_order():
    found = pa.record_batch({"offset": list(range(9))})
    pieces = list(batches(Narrow(), found, "t", 0))
    assert [offset for piece in pieces for offset in piece.column(0).to_pylist()] == list(range(9))


def test_record_that_is_too_large_alone_is_an_error():
    class Nothing(Narrow):
        def batch(self, found, topic, partition):
            raise ColumnTooLargeError("too large")

    with pytest.raises(ColumnTooLargeError):
        list(batches(Nothing(), pa.record_batch({"offset": [1, 2]}), "t", 0))
