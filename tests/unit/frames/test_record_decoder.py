"""``RecordDecoder``: arguments to columns, and polled columns to tables."""

import struct

import pyarrow as pa
import pytest
from model.fetch_log import FetchLog, batch

from kafkacore import RecordDecoder
from kafkacore.decode.formats import REGISTRY_OPTION_NAMES, SCALARS
from kafkacore.decode.json_option_names import JSON_OPTION_NAMES
from kafkacore.errors import KafkaConfigurationError, MalformedRecordError
from kafkacore.frames.side_format import FORMAT_OPTION_NAMES
from kafkacore.spark.typed.options import SCALAR_TYPES, SIDE_OPTION_NAMES
from kafkacore.structs import TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
ID = pa.schema({"id": pa.int64()})
AVRO = '{"type":"record","name":"R","fields":[{"name":"id","type":"int"},{"name":"name","type":"string"}]}'
KAFKA = ["topic", "partition", "offset", "timestamp", "key", "value", "headers"]


@pytest.fixture
def polled(make_consumer):
    """Return ``polled(*values, key=…)``, which returns the columns of records with these values."""

    def polled(*values, key=None, **arguments):
        records = [(offset, key, value, [("h", b"1")]) for offset, value in enumerate(values)]
        consumer = make_consumer({A0: FetchLog(batch(records))}, "a")
        return consumer.poll_arrow(1000, **arguments)

    return polled


# ---- Columns ---------------------------------------------------------------------------------------------
def test_columns_without_a_format_are_kafkas(polled):
    table = RecordDecoder().table(polled(b"v", None, key=b"k"))
    assert table.schema.names == KAFKA
    assert table.schema.field("timestamp").type == pa.timestamp("ms", tz="UTC")
    assert table.drop_columns("timestamp").to_pylist() == [
        {
            "topic": "a",
            "partition": 0,
            "offset": offset,
            "key": b"k",
            "value": value,
            "headers": [{"key": "h", "value": b"1"}],
        }
        for offset, value in enumerate([b"v", None])
    ]


def test_no_records_give_an_empty_table_with_the_schema():
    decoder = RecordDecoder(value_format="json", schema=ID)
    table = decoder.table({})
    assert (table.num_rows, table.schema) == (0, decoder.schema)


def test_fields_are_columns_beside_kafkas_with_underscore(polled):
    schema = pa.schema({"timestamp": pa.string(), "id": pa.int64()})
    table = RecordDecoder(value_format="json", schema=schema).table(polled(b'{"id":1,"timestamp":"noon"}'))
    assert table.schema.names == [
        "_topic", "_partition", "_offset", "_timestamp", "_key", "timestamp", "id", "_headers",
    ]  # fmt: skip
    assert table.select(["timestamp", "id", "_offset"]).to_pylist() == [
        {"timestamp": "noon", "id": 1, "_offset": 0}
    ]


def test_value_is_a_struct_without_flatten(polled):
    decoder = RecordDecoder(value_format="json", schema=ID, flatten=False)
    table = decoder.table(polled(b'{"id":1}', None))
    assert table.schema.names == KAFKA
    assert table.column("value").to_pylist() == [{"id": 1}, None]


def test_columns_are_chosen_in_order_and_limit_the_poll(polled):
    decoder = RecordDecoder(value_format="json", schema=ID, columns=["id", "_timestamp_type", "_value"])
    assert set(decoder.fetched) == {"value", "timestamp_type"}
    table = decoder.table(polled(b'{"id":1}', columns=decoder.fetched))
    assert table.to_pylist() == [{"id": 1, "_timestamp_type": 0, "_value": b'{"id":1}'}]


def test_timestamps_in_another_unit_are_converted(polled):
    table = RecordDecoder(columns=["timestamp"]).table(polled(b"v", timestamp_unit="us"))
    assert table.column(0).cast(pa.int64()).to_pylist() == [1000]


def test_missing_column_is_named(polled):
    with pytest.raises(ValueError, match=r"did not return the column headers.*pass columns="):
        RecordDecoder().table(polled(b"v", columns=["offset", "timestamp", "key", "value"]))


def test_partitions_are_in_order(make_consumer):
    logs = {A1: FetchLog(batch([(0, None, b"2")])), A0: FetchLog(batch([(0, None, b"1")]))}
    polled = make_consumer(logs, "a").poll_arrow(1000)
    table = RecordDecoder(columns=["partition", "value"]).table(dict(reversed(polled.items())))
    assert table.to_pydict() == {"partition": [0, 1], "value": [b"1", b"2"]}


# ---- Formats ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "raw", "want"),
    [
        ("string", b"text", "text"),
        ("long", struct.pack(">q", -5), -5),
        ("integer", struct.pack(">i", 7), 7),
        ("short", struct.pack(">h", 7), 7),
        ("double", struct.pack(">d", 0.5), 0.5),
        ("float", struct.pack(">f", 0.5), 0.5),
        ("boolean", b"\1", True),
        ("uuid", b"0" * 8 + b"-0000-0000-0000-" + b"0" * 12, "00000000-0000-0000-0000-000000000000"),
    ],
)
def test_scalars_are_those_of_javas_serializers(polled, name, raw, want):
    decoder = RecordDecoder(key_format=name, value_format=name.upper(), columns=["key", "value"])
    assert decoder.table(polled(raw, key=raw)).to_pylist() == [{"key": want, "value": want}]


def test_avro_has_the_fields_of_its_schema(polled):
    decoder = RecordDecoder(value_format="avro", schema=AVRO, columns=["name", "id"])
    assert decoder.schema == pa.schema({"name": pa.string(), "id": pa.int32()})
    assert decoder.table(polled(b"\x02\x04ab")).to_pylist() == [{"name": "ab", "id": 1}]


def test_structured_key_is_a_struct(polled):
    decoder = RecordDecoder(key_format="json", key_schema=ID, value_format="json", schema=ID)
    table = decoder.table(polled(b'{"id":2}', key=b'{"id":1}'))
    assert table.select(["_key", "id"]).to_pylist() == [{"_key": {"id": 1}, "id": 2}]


def test_json_options_have_sparks_names(polled):
    decoder = RecordDecoder(
        value_format="json",
        schema=pa.schema({"at": pa.timestamp("us", tz="UTC")}),
        columns=["at"],
        format_options={"value.timestampFormat": "dd/MM/yyyy", "timezone": "+01:00"},
    )
    table = decoder.table(polled(b'{"at":"02/01/1970"}'))
    assert table.column("at").cast(pa.int64()).to_pylist() == [23 * 3600 * 1_000_000]


# ---- Malformed records -----------------------------------------------------------------------------------
def test_malformed_value_is_null_by_default(polled):
    decoder = RecordDecoder(value_format="json", schema=ID, columns=["id", "_corrupt_record"])
    assert decoder.table(polled(b'{"id":1}', b"{")).to_pylist() == [
        {"id": 1, "_corrupt_record": None},
        {"id": None, "_corrupt_record": b"{"},
    ]


def test_dropmalformed_skips_the_record(polled):
    decoder = RecordDecoder(value_format="json", schema=ID, columns=["_offset"], mode="dropmalformed")
    assert decoder.table(polled(b"{", b'{"id":1}')).to_pydict() == {"_offset": [1]}


def test_failfast_names_the_record(polled):
    decoder = RecordDecoder(value_format="long", mode="FAILFAST")
    with pytest.raises(MalformedRecordError, match="the value of a-0 at offset 1 is malformed: got 3 bytes"):
        decoder.table(polled(struct.pack(">q", 1), b"bad"))


# ---- Invalid arguments -----------------------------------------------------------------------------------
NOT_NULL = pa.schema([pa.field("id", pa.int64(), nullable=False)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"value_format": "protobuf"}, "value_format must be one of binary, string"),
        ({"key_format": "bytes"}, "key_format must be one of binary, string"),
        ({"value_format": "json"}, r"json needs the fields: schema=pyarrow\.schema"),
        ({"key_format": "json"}, r"json needs the fields: key_schema=pyarrow\.schema"),
        ({"value_format": "json", "schema": "id BIGINT"}, "json needs the fields"),
        ({"value_format": "string", "schema": ID}, "value_format is string: remove schema"),
        ({"value_format": "avro"}, "set schema to the Avro schema in JSON"),
        ({"value_format": "avro", "schema": ID}, r"value\.schema"),
        ({"value_format": "avro", "schema": "{"}, "not an Avro schema"),
        (
            {"value_format": "avro", "format_options": {"schema.registry.url": "http://127.0.0.1:1"}},
            r"set schema, or set value\.subject",
        ),
        ({"value_format": "json", "schema": NOT_NULL}, "field id of schema cannot be NOT NULL"),
        (
            {"value_format": "json", "schema": pa.schema({"a": pa.list_(pa.struct(list(NOT_NULL)))})},
            "field id of schema cannot be NOT NULL",
        ),
        ({"value_format": "json", "schema": pa.schema({"_key": pa.string()})}, "field _key .*flatten=False"),
        ({"value_format": "json", "schema": pa.schema({"a": pa.large_string()})}, "declare it as a string"),
        ({"mode": "strict"}, "mode must be one of PERMISSIVE"),
        ({"columns": ["ofset"]}, "no column 'ofset': did you mean offset"),
        ({"columns": ["_offset"]}, "no column '_offset'"),
        ({"columns": ["key", "key"]}, "column key occurs twice"),
        ({"columns": []}, "columns is empty"),
        ({"format_options": {"schema.registry.uri": "x"}}, r"did you mean schema\.registry\.url"),
    ],
)
def test_invalid_argument_is_refused(arguments, message):
    with pytest.raises(KafkaConfigurationError, match=message):
        RecordDecoder(**arguments)


def test_maps_are_accepted(polled):
    schema = pa.schema({"m": pa.map_(pa.string(), pa.int64())})
    decoder = RecordDecoder(value_format="json", schema=schema, columns=["m"])
    assert decoder.table(polled(b'{"m":{"a":1}}')).to_pylist() == [{"m": [("a", 1)]}]


def test_names_are_those_of_the_spark_source():
    of_both = {*REGISTRY_OPTION_NAMES, *JSON_OPTION_NAMES}
    assert of_both == set(SIDE_OPTION_NAMES)
    assert of_both < set(FORMAT_OPTION_NAMES)
    assert set(SCALARS) == set(SCALAR_TYPES)
