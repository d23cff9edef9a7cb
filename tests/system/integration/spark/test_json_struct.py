"""``value.format=json`` with ``value.flatten=false`` gives the rows of from_json over Spark's own source.

The tests cover malformed records in each mode, and each option.
"""

from __future__ import annotations

import json
import uuid

import pyarrow as pa
import pytest
from model.spark_reads import reader_of
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kafkacore import KafkaProducer
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.decode.json import json_decoder, json_options
from kafkacore.decode.json_option_names import JSON_OPTION_NAMES

DDL = "a INT, b STRING, c STRUCT<x: DOUBLE>, d ARRAY<INT>"
CORRUPT = "_corrupt_record"
VALUES = [
    None,
    b"",
    b" ",
    b"\n\t \r",
    b"null",
    b" null ",
    b"{}",
    b"[]",
    b"[ ]",
    b"[{}]",
    b'[{"a": 1}]',
    b'[{"a": 1}, {"a": 2}]',
    b"[1]",
    b"[[]]",
    b"[null]",
    b"1",
    b"true",
    b'"text"',
    b'"',
    b"{",
    b"}",
    b"{}}",
    b"{} {",
    b"nul",
    b"nullx",
    b"\xff",
    b"\0",
    b"\xef\xbb\xbf{}",
    b'{"a": 1}',
    b'{"a": null, "b": null, "c": null, "d": null}',
    b'{"a": "x", "b": "kept"}',
    b'{"b": {"a": 1}, "c": {"x": "y"}, "d": {}}',
    b'{"c": {}, "d": []}',
    b'{"c": [], "d": [null]}',
    b'{"a": 1} trailing',
    b'{"a": 1',
]


@pytest.fixture(scope="module")
def make_topic(apache_kafka):
    def make(values):
        name = f"struct-{uuid.uuid4().hex[:8]}"
        with KafkaAdminClient(bootstrap_servers=apache_kafka.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(name, num_partitions=1)])
        with KafkaProducer(bootstrap_servers=apache_kafka.bootstrap_servers) as producer:
            for value in values:
                producer.send(name, value, key=b"k", partition=0)
        return name

    return make


@pytest.fixture(scope="module")
def topic(make_topic):
    return make_topic(VALUES)


@pytest.fixture
def read(spark, apache_kafka):
    def of(source, topic, schema=None, **options):
        reader = reader_of(spark, source, apache_kafka.bootstrap_servers, topic, **options)
        return (reader if schema is None else reader.schema(schema)).load()

    return of


@pytest.fixture
def by_us(read):
    """Return (offset, value) of each row; a struct becomes a tuple."""

    def of(topic, ddl=DDL, **options):
        structs = {"value__format": "json", "value__flatten": "false"}
        return tuples(read("kafkacore", topic, f"offset BIGINT, value STRUCT<{ddl}>", **structs, **options))

    return of


@pytest.fixture
def by_spark(read):
    def of(topic, ddl=DDL, options=None, **bounds):
        parsed = sql.from_json(sql.col("value").cast("string"), ddl, options or {})
        return tuples(read("kafka", topic, **bounds).select("offset", parsed.alias("value")))

    return of


def tuples(frame):
    rows = sorted(frame.select("offset", "value").collect(), key=lambda row: row.offset)
    return [(row.offset, None if row.value is None else plain(row.value)) for row in rows]


def plain(struct):
    """Return a struct with its floats as text, so that NaN equals NaN."""
    return tuple(str(field) if isinstance(field, float) else field for field in struct)


def test_permissive_has_the_structs_of_from_json_and_its_nulls(by_us, by_spark, topic):
    ours, theirs = by_us(topic), by_spark(topic)
    wrong = [
        (VALUES[offset], our, their)
        for (offset, our), (_, their) in zip(ours, theirs, strict=True)
        if our != their
    ]
    assert wrong == []
    assert len(ours) == len(VALUES)


def test_the_corrupt_record_is_that_of_from_json(read, topic):
    structs = {"value__format": "json", "value__flatten": "false"}
    ours = read("kafkacore", topic, f"offset BIGINT, value STRUCT<{DDL}>, {CORRUPT} STRING", **structs)
    options = {"columnNameOfCorruptRecord": CORRUPT}
    parsed = sql.from_json(sql.col("value").cast("string"), f"{DDL}, {CORRUPT} STRING", options)
    theirs = read("kafka", topic).select("offset", parsed[CORRUPT].alias(CORRUPT))
    texts = [
        {row.offset: row[CORRUPT] for row in frame.select("offset", CORRUPT).collect()}
        for frame in (ours, theirs)
    ]
    assert texts[0] == texts[1]
    assert len(set(texts[0].values())) > 10


@pytest.fixture
def malformed(by_spark, topic):
    """Return the offsets of the records that from_json considers malformed."""
    options = {"columnNameOfCorruptRecord": CORRUPT}
    rows = by_spark(topic, f"{DDL}, {CORRUPT} STRING", options)
    return {offset for offset, value in rows if value is not None and value[-1] is not None}


def test_dropmalformed_leaves_out_what_from_json_calls_malformed(by_us, by_spark, topic, malformed):
    theirs = [row for row in by_spark(topic) if row[0] not in malformed]
    assert by_us(topic, mode="DROPMALFORMED") == theirs
    assert 0 < len(theirs) < len(VALUES)


def test_failfast_gives_the_same_rows_or_fails_as_from_json_does(
    by_us, by_spark, make_topic, topic, malformed
):
    sound = make_topic([value for offset, value in enumerate(VALUES) if offset not in malformed])
    assert by_us(sound, mode="FAILFAST") == by_spark(sound, options={"mode": "FAILFAST"})
    for offset in sorted(malformed)[::8]:
        bounds = {
            "startingOffsets": json.dumps({topic: {"0": offset}}),
            "endingOffsets": json.dumps({topic: {"0": offset + 1}}),
        }
        with pytest.raises(PySparkException, match=f"MALFORMED_RECORD_IN_PARSING.* at offset {offset} "):
            by_us(topic, mode="FAILFAST", **bounds)
        with pytest.raises((PySparkException, Py4JJavaError), match="Malformed records are detected"):
            by_spark(topic, options={"mode": "FAILFAST"}, **bounds)


TIMES = [
    b'{"v": "2024-03-10 02:30:00"}',
    b'{"v": "2024-03-10T02:30:00.123456"}',
    b'{"v": "2024-11-03 01:30:00-05:00"}',
    b'{"v": "2024-07-01"}',
    b'{"v": "01.07.2024 12:34"}',
    b'{"v": "2024-07-01T12:34:56.789GMT+01:00"}',
    b'{"v": 1700000000}',
    b'{"v": "x"}',
]
NUMBERS = [
    b'{"v": NaN}',
    b'{"v": "NaN"}',
    b'{"v": Infinity}',
    b'{"v": -Infinity}',
    b'{"v": "-INF"}',
    b'{"v": +INF}',
    b'{"v": 1.5}',
]
QUOTES = [b"{'v': 'x'}", b"{\"v\": 'x'}", b"{'v': \"it's\"}", b'{"v": "x"}']
FORMS = [
    b'{/* c */ "v": "x"}',
    b'{v: "x"}',
    b'{"v": 007}',
    b'{"v": "\\q"}',
    b'{"v": "a\tb"}',
    b'{"v": "\xc3\xa9"}',
    b'{"v": 1.5}',
]
OTHER_FORM = "dd.MM.yyyy HH:mm"
#: Option → type of the field, documents, and values of the option.
OPTIONS = {
    "timeZone": ("TIMESTAMP", TIMES, ["UTC", "America/New_York", "+01:00"]),
    "dateFormat": ("DATE", TIMES, ["yyyy-MM-dd", OTHER_FORM, "yyyy-MM-dd[ HH:mm:ss]"]),
    "timestampFormat": ("TIMESTAMP", TIMES, ["yyyy-MM-dd HH:mm:ss", OTHER_FORM]),
    "timestampNTZFormat": ("TIMESTAMP_NTZ", TIMES, ["yyyy-MM-dd HH:mm:ss", OTHER_FORM]),
    "allowNonNumericNumbers": ("DOUBLE", NUMBERS, ["true", "false"]),
    "allowSingleQuotes": ("STRING", QUOTES, ["true", "false"]),
    "allowComments": ("STRING", FORMS, ["false"]),
    "allowUnquotedFieldNames": ("STRING", FORMS, ["false"]),
    "allowNumericLeadingZeros": ("INT", FORMS, ["false"]),
    "allowBackslashEscapingAnyCharacter": ("STRING", FORMS, ["false"]),
    "allowUnquotedControlChars": ("STRING", FORMS, ["false"]),
    "enableDateTimeParsingFallback": ("TIMESTAMP", TIMES, ["true", "false"]),
    "encoding": ("STRING", FORMS, ["UTF-8"]),
    "locale": ("STRING", FORMS, ["en-US"]),
}


def test_each_option_is_compared():
    assert set(OPTIONS) == set(JSON_OPTION_NAMES)


CASES = [
    (
        kind,
        documents,
        {"timeZone": "UTC", **({"timestampFormat": OTHER_FORM} if is_fallback else {}), option: text},
    )
    for option, (kind, documents, texts) in OPTIONS.items()
    for is_fallback in [option == "enableDateTimeParsingFallback"]
    for text in texts
]


def test_each_option_has_the_effect_that_it_has_in_from_json(spark):
    everything = list(dict.fromkeys(one for _, documents, _ in CASES for one in documents))
    rows = spark.createDataFrame(list(enumerate(everything)), "row int, value binary").coalesce(1)
    text = sql.col("value").cast("string")
    columns = [
        sql.from_json(text, f"v {kind}", options)["v"].alias(str(at))
        for at, (kind, _, options) in enumerate(CASES)
    ]
    theirs = rows.select("row", *columns).orderBy("row").toArrow()
    found = {}
    for at, (kind, documents, options) in enumerate(CASES):
        schema = to_arrow_schema(StructType.fromDDL(f"v {kind}"), timezone="UTC")
        decoder = json_decoder(schema, json_options({name.lower(): value for name, value in options.items()}))
        [column] = decoder.decode(pa.array(documents, pa.binary())).columns
        their_column = theirs.column(str(at)).to_pylist()
        wanted = [str(their_column[everything.index(one)]) for one in documents]
        assert [str(value) for value in column.to_pylist()] == wanted, options
        found.setdefault(list(options)[-1], []).append(wanted)
    for option, effects in found.items():
        assert len(effects) == 1 or any(one != effects[0] for one in effects), (
            f"{option} does not change the result for these documents"
        )


def test_options_of_the_read_reach_the_decoder(by_us, by_spark, make_topic):
    options = {
        "timeZone": "America/New_York",
        "timestampFormat": "dd.MM.yyyy HH:mm",
        "dateFormat": "dd.MM.yyyy HH:mm",
        "allowNonNumericNumbers": "false",
        "enableDateTimeParsingFallback": "true",
    }
    topic = make_topic([*TIMES, *NUMBERS])
    ddl = "v TIMESTAMP"
    assert by_us(topic, ddl, **options) == by_spark(topic, ddl, options)
    assert by_us(topic, ddl, **options) != by_us(topic, ddl)
