"""Our JSON decoder gives the values of Spark's from_json, and finds the same rows malformed."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from decode.json_documents import SCHEMAS, documents
from model.dose import dose, note
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kafkacore.decode.json import json_decoder, json_options

DOCUMENT_COUNT = dose(1_500, 40_000)
CORRUPT = "_corrupt_record"

Answers = tuple[list[tuple[Any, ...]], list[bool]]


def plain(array: pa.Array) -> list[Any]:
    """Return values that can be compared with ==, even if they are far timestamps, NaN or -0.0."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        return array.cast(pa.int64()).to_pylist()
    if pa.types.is_date32(kind):
        return array.cast(pa.int32()).to_pylist()
    if pa.types.is_floating(kind):
        return [repr(value) for value in array.to_pylist()]
    valid = array.is_valid().to_pylist()
    if pa.types.is_struct(kind):
        rows = zip(*(plain(array.field(at)) for at in range(kind.num_fields)), strict=True)
        return [row if is_valid else None for row, is_valid in zip(rows, valid, strict=True)]
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        ends = array.offsets.to_pylist()
        items = (
            plain(array.values)
            if pa.types.is_list(kind)
            else list(zip(plain(array.keys), plain(array.items), strict=True))
        )
        return [items[ends[at] : ends[at + 1]] if is_valid else None for at, is_valid in enumerate(valid)]
    return array.to_pylist()


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, list | tuple) and isinstance(theirs, list | tuple):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if ours == theirs or not (isinstance(ours, str) and isinstance(theirs, str)):
        return bool(ours == theirs)
    # Before Java 19, some doubles are printed with more digits than needed.
    try:
        return bool(json.loads(ours) == json.loads(theirs))
    except ValueError:
        return False


def is_json(document: bytes) -> bool:
    try:
        json.loads(document.decode("utf-8", "replace"))
    except ValueError:
        return False
    return True


def spark_answers(spark, found: list[bytes], ddl: str, options: dict[str, str]) -> Answers:
    fields = [field.name for field in StructType.fromDDL(ddl)]
    rows = spark.createDataFrame(list(enumerate(found)), "row int, value binary").coalesce(1)
    read = functions.from_json(
        functions.col("value").cast("string"),
        f"{ddl}, {CORRUPT} string",
        {"columnNameOfCorruptRecord": CORRUPT, **options},
    )
    columns = [functions.col(f"read.{name}").alias(name) for name in fields]
    malformed = functions.col(f"read.{CORRUPT}").isNotNull().alias(CORRUPT)
    table = rows.select("row", read.alias("read")).select("row", *columns, malformed).orderBy("row").toArrow()
    batch = table.combine_chunks().to_batches()[0]
    values = [plain(batch.column(name)) for name in fields]
    return list(zip(*values, strict=True)), batch.column(CORRUPT).to_pylist()


def our_answers(found: list[bytes], ddl: str, options: dict[str, str]) -> Answers:
    schema = to_arrow_schema(StructType.fromDDL(ddl), timezone="UTC")
    decoder = json_decoder(schema, json_options({name.lower(): value for name, value in options.items()}))
    decoded = decoder.decode(pa.array(found, pa.binary()))
    for column, field in zip(decoded.columns, schema, strict=True):
        assert column.type == field.type
        column.validate(full=True)
    malformed = decoded.malformed.to_pylist() if decoded.malformed is not None else [False] * len(found)
    return list(zip(*map(plain, decoded.columns), strict=True)), malformed


def differences(found: list[bytes], ours: Answers, theirs: Answers) -> list[tuple[bytes, Any, Any]]:
    wrong = []
    for document, *answers in zip(found, *ours, *theirs, strict=True):
        our_row, our_malformed, their_row, their_malformed = answers
        if our_malformed == their_malformed and same(our_row, their_row):
            continue
        # Spark keeps reading after invalid JSON inside an array or object; our decoder gives up the whole
        # document.
        given_up = our_malformed and all(value in (None, "None") for value in our_row)
        if not (given_up and their_malformed and not is_json(document)):
            wrong.append((document, (our_malformed, our_row), (their_malformed, their_row)))
    return wrong


@pytest.mark.timeout(dose(120, 900))
@pytest.mark.parametrize("number", range(len(SCHEMAS)))
def test_every_row_is_as_from_json_has_it(spark, number):
    found = documents(DOCUMENT_COUNT, seed=number)
    options = {"timeZone": "America/New_York" if number % 2 else "UTC"}
    ours = our_answers(found, SCHEMAS[number], options)
    theirs = spark_answers(spark, found, SCHEMAS[number], options)
    wrong = differences(found, ours, theirs)
    note(f"JSON of schema {number}", number, documents=len(found), malformed=sum(ours[1]), differ=len(wrong))
    assert wrong == []
    assert 0.2 < sum(ours[1]) / len(found) < 0.8, "the documents must be a mix of valid and malformed ones"


def test_fail_fast_refuses_just_the_rows_that_are_malformed_here(spark):
    found = documents(400, seed=77)
    ours = our_answers(found, SCHEMAS[0], {})
    good = [document for document, malformed in zip(found, ours[1], strict=True) if not malformed]
    bad = [document for document, malformed in zip(found, ours[1], strict=True) if malformed]
    fail_fast = {"mode": "FAILFAST"}
    spark_answers(spark, good, SCHEMAS[0], fail_fast)
    for document in bad[:3]:
        with pytest.raises((PySparkException, Py4JJavaError), match="Malformed records are detected"):
            spark_answers(spark, [document], SCHEMAS[0], fail_fast)


EXACT = {
    # Documents that the generator above does not produce.
    "a int, b string": [
        b'{"a":1,"a":"x"}',
        b'{"a":1,"a":null}',
        b'{"b":"x","b":{"y":[1,2.50]},"b":"long enough to be more"}',
        b'{"z":' + b"[" * 999 + b"]" * 999 + b',"a":1}',
        b'{"z":' + b"[" * 1000 + b"]" * 1000 + b',"a":1}',
        b'{"b":' + b"[" * 999 + b"]" * 999 + b',"a":1}',
        b'{"z":' + b"1" * 1000 + b',"a":1}',
        b'{"z":' + b"1" * 1001 + b',"a":1}',
        b'{"z":1.' + b"1" * 999 + b',"a":1}',
        b'{"z":1.' + b"1" * 1000 + b',"a":1}',
        b'{"a":3,"' + b"n" * 50_001 + b'":1}',
        b'{"a":3,"' + b"n" * 50_000 + b'":1}',
        b'{"b":"\xff","a":1}',
        b'{"b":"\xe2\x82","a":1}',
        b'{"b":"\xed\xa0\x80","a":1}',
        b'{"b":"\xc0\x80","a":1}',
        b'{"b":"\xed\xa0","a":1}',
        b'{"b":"\xf0\x80\x80","a":1}',
        b'{"b":"\xf4\x90\x80\x80","a":1}',
        b'{"b":["\xff\xf1\x80"]}',
    ],
    "a array<int>, b map<string,int>": [
        b'{"a":[1],"a":["x"]}',
        b'{"a":[1,2],"a":[3]}',
        b'{"a":[3],"a":[1,2],"b":{"x":1},"b":{"y":"q"}}',
        b'{"b":{"x":1},"b":{"y":2,"y":3}}',
        b'{"b":{"\\ud83d":1,"\xff":2}}',
    ],
    "a binary, b int": [
        b'{"a":"\x00","b":1}',
        b'{"a":"AAEC\nAwQF\r\n","b":1}',
        b'{"a":"\tAAEC\\n\x1fAw==\x00","b":1}',
        b'{"a":"AAEC","z":"\n","b":1}',
    ],
    "a struct<x:int,l:array<string>>, `\ufffd` int": [
        b'{"a":{"x":1,"l":["p","q"]},"a":{"l":["r"]}}',
        b'{"a":{"x":1},"a":5}',
        b'{"a":{"x":1,"x":2},"\xff":3}',
        b'{"a":null,"a":{"l":["p",null,1.0]}}',
        b'{"a":{"l":["p"]},"a":null}',
    ],
}


@pytest.mark.parametrize("ddl", EXACT)
def test_repeated_names_limits_and_broken_text_are_as_in_from_json(spark, ddl):
    ours, theirs = our_answers(EXACT[ddl], ddl, {}), spark_answers(spark, EXACT[ddl], ddl, {})
    assert ours[1] == theirs[1]
    assert all(map(same, ours[0], theirs[0])), (ours[0], theirs[0])


TIMES = [
    "2020-01-02",
    "2020-01-02 03:04:05",
    "2020-01-02 03:04:05.5",
    "2020-01-02 03:04:05.123",
    "2020-01-02 03:04:05.1234567",
    "2020-01-02T03:04:05",
    "2020-01-02t03:04:05",
    "2020-01-02T03:04:05.123",
    "2020-01-02T03:04:05.123Z",
    "2020-01-02T03:04:05z",
    "2020-01-02T03:04:05.123+01:00",
    "2020-01-02T03:04:05Z",
    "2020-01-02T03:04:05+0100",
    "2020-01-02T03:04:05+01:00",
    "2020-01-02T03:04:05+01",
    "2020-01-02T03:04:05-18:01",
    "2020/01/02",
    "20200102030405",
    "120200102030405",
    "01/02/2020 03:04:05 PM",
    "01/02/2020 12:04:05 am",
    "01/02/2020 13:04:05 AM",
    "02 Jan 2020",
    "02 jan 2020",
    "2 January 2020",
    "2020-01-02 03:04",
    "03:04:05",
    "2020",
    "2020-01",
    "20-01-02",
    "2020-01-02T03:04:05 Europe/Paris",
    "2020-02-30 00:00:00",
    "2020-01-02 24:00:00",
    "12020-01-02 00:00:00",
    "+12020-01-02 00:00:00",
    "+2020-01-02 00:00:00",
    "-2020-01-02 00:00:00",
    "0000-01-02 00:00:00",
    "-0000-01-02 00:00:00",
    " 2020-01-02 00:00:00",
    "2020-01-02 00:00:00 ",
    "2/1/2020",
    "02/01/2020",
    "2/001/2020",
    "-2/1/2020",
    "2/1/-5",
    "31/02/2020",
    "2020-01-02T03:04:05.",
    "2020-03-08 02:30:00",
    "2020-11-01 01:30:00",
]
FORMATS = [
    "yyyy-MM-dd HH:mm:ss",
    "yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]",
    "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    "yyyy-MM-dd HH:mm:ss.SSSSSS",
    "yyyy-MM-dd HH:mm:ss.S",
    "yyyy-MM-dd'T'HH:mm:ssZ",
    "yyyy-MM-dd'T'HH:mm:ssX",
    "yyyy/MM/dd",
    "yyyyMMddHHmmss",
    "MM/dd/yyyy hh:mm:ss a",
    "dd MMM yyyy",
    "d MMMM yyyy",
    "yyyy-MM-dd HH:mm",
    "HH:mm:ss",
    "yyyy",
    "yyyy-MM",
    "yy-MM-dd",
    "yyyy-MM-dd'T'HH:mm:ss VV",
    "yyyy-MM-dd'T'HH:mm:ssxxx",
    "yyyy-MM-dd'T'HH:mm:ss'Z'",
    "d/M/y",
    "dd/MM/yyyy",
    "[yyyy-MM-dd][dd/MM/yyyy]",
    "yyyy-MM-dd['T'HH:mm[:ss[.SSS]]]",
]


def test_patterns_read_what_spark_s_patterns_read(spark):
    found = [f'{{"a":"{text}"}}'.encode() for text in TIMES]
    rows = spark.createDataFrame(list(enumerate(found)), "row int, value binary").coalesce(1)
    ddl = {"date": "dateFormat", "timestamp": "timestampFormat", "timestamp_ntz": "timestampNTZFormat"}
    asked = [(kind, option, pattern) for pattern in FORMATS for kind, option in ddl.items()]
    zone = {"timeZone": "America/New_York"}
    table = (
        rows.select(
            "row",
            *(
                functions.from_json(
                    functions.col("value").cast("string"), f"a {kind}", {option: pattern, **zone}
                )
                .getField("a")
                .alias(str(at))
                for at, (kind, option, pattern) in enumerate(asked)
            ),
        )
        .orderBy("row")
        .toArrow()
        .combine_chunks()
        .to_batches()[0]
    )
    for at, (kind, option, pattern) in enumerate(asked):
        ours = our_answers(found, f"a {kind}", {option: pattern, **zone})[0]
        theirs = plain(table.column(str(at)))
        differ = [
            (text, our[0], their)
            for text, our, their in zip(TIMES, ours, theirs, strict=True)
            if our[0] != their
        ]
        assert not differ, (kind, pattern, differ)


def test_the_comparison_sees_a_difference():
    good = ([(1,), (None,)], [False, True])
    for other in (([(2,), (None,)], [False, True]), ([(1,), (None,)], [False, False])):
        assert differences([b'{"a":1}', b'{"a":"x"}'], good, other)
