"""Our typed columns equal Spark's from_avro and casts over its own source, on one topic of Apache Kafka."""

import datetime
import decimal
import io
import json
import struct
import uuid

import fastavro
import pytest
from model.spark_reads import reader_of
from pyspark.sql import functions as sql
from pyspark.sql.avro.functions import from_avro

from kafkacore import KafkaProducer
from kafkacore.admin import KafkaAdminClient, NewTopic

FIELDS = [
    {"name": "b", "type": "boolean"},
    {"name": "i", "type": "int"},
    {"name": "l", "type": ["null", "long"]},
    {"name": "f", "type": "float"},
    {"name": "d", "type": ["double", "null"]},
    {"name": "s", "type": ["null", "string"]},
    {"name": "raw", "type": "bytes"},
    {"name": "fixed", "type": {"type": "fixed", "name": "F", "size": 3}},
    {"name": "kind", "type": {"type": "enum", "name": "K", "symbols": ["UP", "DOWN"]}},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "ms", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "us", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3}},
    {
        "name": "small",
        "type": {
            "type": "fixed",
            "name": "P",
            "size": 4,
            "logicalType": "decimal",
            "precision": 9,
            "scale": 0,
        },
    },
    {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
    {"name": "list", "type": {"type": "array", "items": ["null", "string"]}},
    {"name": "map", "type": {"type": "map", "values": {"type": "array", "items": "long"}}},
    {"name": "wide", "type": ["int", "long"]},
    {"name": "real", "type": ["null", "float", "double"]},
    {"name": "either", "type": ["null", "int", "string", {"type": "array", "items": "int"}]},
    {
        "name": "inner",
        "type": {
            "type": "record",
            "name": "I",
            "fields": [{"name": "x", "type": ["null", "int"]}, {"name": "kind", "type": "K"}],
        },
    },
]
SCHEMA = {"type": "record", "name": "R", "namespace": "n", "fields": FIELDS}


def value(n):
    at = datetime.datetime(1900 + n * 3, 1 + n % 12, 1, 2, 3, 4, 567000)
    return {
        "b": n % 2 == 0,
        "i": (-(2**31), 2**31 - 1, n)[n % 3],
        "l": (None, -(2**63), 2**63 - 1, n)[n % 4],
        "f": n / 8,
        "d": None if n % 5 == 0 else n * 1e300,
        "s": None if n % 4 == 0 else "é" * n,
        "raw": bytes(range(n)),
        "fixed": b"\0\xff" + bytes([n]),
        "kind": ("UP", "DOWN")[n % 2],
        "day": at.date(),
        "ms": at.replace(tzinfo=datetime.UTC),
        "us": at.replace(tzinfo=datetime.UTC, microsecond=n),
        "local": at.replace(microsecond=n),
        "price": decimal.Decimal(-(7**n)) / 1000 if n < 20 else decimal.Decimal("0.001"),
        "small": decimal.Decimal((-1) ** n * n),
        "id": uuid.UUID(int=n),
        "list": [None, "x"] * (n % 3),
        "map": {f"k{m}": [m] * m for m in range(n % 3)},
        "wide": n if n % 2 else 2**40,
        "real": (None, 0.5)[n % 2],
        "either": (None, n, f"s{n}", [n, n])[n % 4],
        "inner": {"x": None if n % 2 else n, "kind": "DOWN"},
    }


@pytest.fixture(scope="module")
def topic(apache_kafka):
    name = f"typed-{uuid.uuid4().hex[:8]}"
    schema = fastavro.parse_schema(SCHEMA)
    with KafkaAdminClient(bootstrap_servers=apache_kafka.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, num_partitions=1)])
    with KafkaProducer(bootstrap_servers=apache_kafka.bootstrap_servers) as producer:
        for n in range(40):
            out = io.BytesIO()
            fastavro.schemaless_writer(out, schema, value(n))
            producer.send(name, out.getvalue(), key=struct.pack(">q", -n), partition=0)
        for broken in (None, b"", out.getvalue()[:30]):
            producer.send(name, broken, key=b"abc", partition=0)
    return name


@pytest.fixture
def read(spark, apache_kafka, topic):
    def of(source, **options):
        return reader_of(spark, source, apache_kafka.bootstrap_servers, topic, **options).load()

    return of


def test_avro_is_what_from_avro_makes_of_it(read):
    ours = read("kafkacore", value__format="avro", value__schema=json.dumps(SCHEMA))
    decoded = from_avro(sql.col("value"), json.dumps(SCHEMA), {"mode": "PERMISSIVE"})
    theirs = read("kafka").select(decoded.alias("v")).select("v.*")
    assert [(f.name, f.dataType) for f in ours.schema] == [(f.name, f.dataType) for f in theirs.schema]
    rows = ours.collect()
    assert len(rows) == 43
    assert rows == theirs.collect()


def test_dropmalformed_leaves_out_what_from_avro_makes_null(read):
    ours = read("kafkacore", value__format="avro", value__schema=json.dumps(SCHEMA), mode="DROPMALFORMED")
    # A tombstone is not a malformed record.
    assert ours.count() == 41
    assert ours.filter("i is null").count() == 1


def test_numbers_and_text_are_what_casts_make_of_them(read):
    ours = read("kafkacore", key__format="long", value__format="binary").select("offset", "key", "value")
    theirs = read("kafka").selectExpr(
        "offset", "if(length(key) = 8, cast(conv(hex(key), 16, -10) AS BIGINT), null) AS key", "value"
    )
    assert ours.collect() == theirs.collect()
