"""``value.format`` and ``key.format`` in a real Spark, with our broker."""

import base64
import datetime
import decimal
import io
import json
import ssl
import struct

import fastavro
import pytest
import trustme
from decode.registry_server import scripted_registry
from pyspark.errors import PySparkException

UTC = datetime.UTC
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "more", "type": {"type": "map", "values": ["null", "int"]}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "raw", "type": {"type": "fixed", "name": "Raw", "size": 2}},
        {"name": "either", "type": ["int", "string"]},
        {
            "name": "inner",
            "type": {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "float"}]},
        },
    ],
}


def order(number):
    return {
        "id": number,
        "name": None if number % 3 == 0 else f"n{number}",
        "at": datetime.datetime(2024, 1, 1, 0, 0, number, 5000, UTC),
        "day": datetime.date(2024, 1, 1 + number),
        "price": decimal.Decimal(number) / 4,
        "tags": ["t"] * number,
        "more": {"k": number, "none": None},
        "kind": "AB"[number % 2],
        "raw": b"\0\1",
        "either": number if number % 2 else "s",
        "inner": {"x": number / 2},
    }


def avro(schema, value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


JSON = [
    b'{"id":1,"name":"a","tags":["x"],"inner":{"y":[{"z":1.5}]},"m":{"k":2}}',
    None,
    b"{broken",
    b'{"id":4}',
]
RECORDS = [(0, struct.pack(">q", number), value) for number, value in enumerate(JSON)]


@pytest.fixture(scope="module")
def topic(make_topic):
    return make_topic(RECORDS, partitions=1)


@pytest.fixture
def load(spark, our_broker, topic):
    def of(schema=None, name=topic, source=None, **options):
        reader = (
            (source or spark.read)
            .format("kafkacore")
            .option("kafka.bootstrap.servers", our_broker.bootstrap_servers)
        )
        reader = reader.option("subscribe", name).option("startingOffsets", "earliest")
        for option, text in options.items():
            reader = reader.option(option.replace("__", "."), text)
        return (reader if schema is None else reader.schema(schema)).load()

    return of


def test_json_becomes_the_columns_of_the_schema(load):
    schema = (
        "name string, id bigint, tags array<string>, inner struct<y:array<struct<z:double>>>, "
        "m map<string,int>, _offset bigint, _key bigint, _corrupt_record string"
    )
    rows = [tuple(row) for row in load(schema, value__format="json", key__format="long").collect()]
    assert json.loads(json.dumps(rows[0])) == ["a", 1, ["x"], [[[1.5]]], {"k": 2}, 0, 0, None]
    assert rows[1] == (None, None, None, None, None, 1, 1, None)
    assert rows[2] == (None, None, None, None, None, 2, 2, "{broken")
    assert rows[3][:2] == (None, 4)


def test_dropmalformed_and_failfast(load):
    frame = load("id bigint, _offset bigint", value__format="json", mode="DROPMALFORMED")
    assert [row._offset for row in frame.collect()] == [0, 1, 3]
    with pytest.raises(
        PySparkException, match=r"MALFORMED_RECORD_IN_PARSING: the value of spark-\d+-0 at offset 2"
    ):
        load("id bigint", value__format="json", mode="FAILFAST").collect()


def test_scalars_type_kafkas_own_columns(load):
    frame = load(key__format="long", value__format="string")
    assert frame.dtypes[:2] == [("key", "bigint"), ("value", "string")]
    assert [(row.key, row.value) for row in frame.collect()] == [
        (number, None if value is None else value.decode()) for number, value in enumerate(JSON)
    ]


def test_json_without_flatten_is_a_struct(load):
    frame = load("offset bigint, value struct<id:bigint>", value__format="json", value__flatten="false")
    assert [row.value and row.value.id for row in frame.collect()] == [1, None, None, 4]
    assert frame.filter("value is null").count() == 1


def test_wrong_option_is_one_sentence(load):
    with pytest.raises(PySparkException, match=r"value\.format must be one of"):
        load("id bigint", value__format="jsn").collect()
    with pytest.raises(PySparkException, match=r"json needs the fields: \.schema"):
        load(value__format="json").collect()


# ---- Avro ----------------------------------------------------------------------------------------------


def test_avro_has_the_columns_of_its_schema(load, make_topic):
    name = make_topic([(0, None, avro(AVRO, order(number))) for number in range(5)], partitions=1)
    frame = load(name=name, value__format="avro", value__schema=json.dumps(AVRO))
    assert frame.columns == [field["name"] for field in AVRO["fields"]]
    for number, row in enumerate(frame.collect()):
        want = order(number)
        got = row.asDict(recursive=True)
        assert got.pop("either") == {
            "member0": number if number % 2 else None,
            "member1": None if number % 2 else "s",
        }
        got["at"] = got["at"].astimezone(UTC)
        del want["either"]
        assert got == want


def test_avro_of_a_registry_is_read_by_a_stream(load, spark, make_topic, tmp_path):
    grown = {**AVRO, "fields": [*AVRO["fields"][:2], {"name": "new", "type": "boolean"}]}
    with scripted_registry() as registry:
        registry.schema(1, AVRO)
        registry.schema(2, grown)
        registry.answer("/subjects/orders-value/versions/latest", (200, {"schema": json.dumps(grown)}))
        values = [
            b"\0\0\0\0\1" + avro(AVRO, order(1)),
            b"\0\0\0\0\2" + avro(grown, {"id": 2, "name": "b", "new": True}),
            b"\0\0\0\0\7",
        ]
        name = make_topic([(0, None, value) for value in values], partitions=1)
        frame = load(
            name=name,
            source=spark.readStream,
            value__format="avro",
            schema__registry__url=registry.url,
            value__subject="orders-value",
        )
        out, checkpoint = str(tmp_path / "out"), str(tmp_path / "checkpoint")
        writer = frame.writeStream.format("parquet").option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start(out).awaitTermination()
        rows = {tuple(row) for row in spark.read.parquet(out).select("id", "name", "new").collect()}
    assert rows == {(1, "n1", None), (2, "b", True), (None, None, None)}


def test_registry_by_https_has_its_certificate_and_password_by_the_options(load, make_topic, tmp_path):
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    (tmp_path / "auth").write_text("me:s3cret")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    name = make_topic([(0, None, b"\0\0\0\0\1" + avro(AVRO, order(1)))], partitions=1)
    options = {"value__format": "avro", "schema__registry__ssl__cafile": str(tmp_path / "authority.pem")}
    with scripted_registry(tls) as registry:
        registry.schema(1, AVRO)
        registry.answer(f"/subjects/{name}-value/versions/latest", (200, {"schema": json.dumps(AVRO)}))
        options["schema__registry__url"] = registry.url
        frame = load(name=name, schema__registry__auth=f"${{file:{tmp_path}/auth}}", **options)
        assert [row.name for row in frame.collect()] == ["n1"]
        assert {sent for _, sent in registry.asked} == {f"Basic {base64.b64encode(b'me:s3cret').decode()}"}
        del options["schema__registry__ssl__cafile"]
        with pytest.raises(PySparkException, match=r"not trusted .*: set schema\.registry\.ssl\.cafile"):
            load("id bigint", name=name, **options).collect()


def test_registry_that_does_not_answer_ends_the_query(load, make_topic):
    name = make_topic([(0, None, b"\0\0\0\0\1\2")], partitions=1)
    with scripted_registry() as registry:
        registry.answer("/schemas/ids/1", (401, b""))
        frame = load("id bigint", name=name, value__format="avro", schema__registry__url=registry.url)
        with pytest.raises(PySparkException, match=r"answered 401: check schema\.registry\.auth"):
            frame.collect()
