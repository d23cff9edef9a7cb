"""The records of a poll as text: of fetched records, which have bytes, and of records that were detached."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkacore import ConsumerRecord
from kafkacore.cli._record_lines import format_records, records_as_json
from kafkacore.cli.common import get_bytes
from kafkacore.consumer.completed_fetch import CompletedFetch, ReadOptions
from kafkacore.protocol.generated.fetch import FetchResponse
from kafkacore.record import encode
from kafkacore.structs import INT64_MAX, TopicPartition

DATA = st.none() | st.binary() | st.text().map(str.encode)
HEADERS = st.lists(st.tuples(st.text(), DATA), max_size=3)
LETTERS = tuple(map(ord, "tpoTkKsSRh"))


def fetched(*rows, topic="t", timestamp_ms=5):
    """Return records of a fetch response. Each row is a value, a key and headers."""
    values, keys, headers = zip(*rows, strict=True)
    batches = encode(values, keys, headers, timestamp_ms=timestamp_ms)
    data = FetchResponse.PartitionData(
        partition_index=3, aborted_transactions=None, records=b"".join(map(bytes, batches))
    )
    return CompletedFetch(TopicPartition(topic, 3), data, 0, 17, ReadOptions()).fetch_records(len(rows))


def in_python(record):
    """Return the JSON object that ``consume --json`` prints."""
    fields = {"topic": record.topic, "partition": 3, "offset": record.offset, "timestamp": record.timestamp}
    for name in ("key", "value"):
        _put(fields, name, getattr(record, name))
    if record.headers:
        fields["headers"] = []
        for name, value in record.headers:
            header = {"key": name}
            _put(header, "value", value)
            fields["headers"].append(header)
    return fields


def _put(fields, name, data):
    line = json.loads(records_as_json([ConsumerRecord("t", 0, 0, 0, 0, 0, None, data)]))
    assert get_bytes(line, "value") == data
    fields.update({key.replace("value", name): line[key] for key in line if key.startswith("value")})


@given(st.lists(st.tuples(DATA, DATA, HEADERS), min_size=1, max_size=4), st.text(min_size=1))
def test_json_has_every_field_as_json_dumps_writes_it(rows, topic):
    records = fetched(*rows, topic=topic)
    expected = "".join(json.dumps(in_python(one), ensure_ascii=False) + "\n" for one in records).encode()
    assert records_as_json(records) == expected
    assert records_as_json([one.detach() for one in records]) == expected


@given(st.lists(st.tuples(DATA, DATA, HEADERS), min_size=1, max_size=4))
def test_fields_of_detached_records_are_the_same(rows):
    records = fetched(*rows)
    text = format_records(records, (*LETTERS, b"\n"), b"null")
    assert format_records([one.detach() for one in records], (*LETTERS, b"\n"), b"null") == text


def test_json_escapes_and_base64():
    value = bytes(range(0x20)) + b'"\\/\x7f'
    (line,) = records_as_json(fetched((value, "grüße".encode(), [("ü", b"\xff")]))).splitlines()
    assert line == (
        rb'{"topic": "t", "partition": 3, "offset": 0, "timestamp": 5, "key": "gr' + "üß".encode() + b'e", '
        rb'"value": "\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f\u0010\u0011'
        rb"\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f\"\\/"
        + b"\x7f"
        b'", "headers": [{"key": "' + "ü".encode() + b'", "value_base64": "/w=="}]}'
    )


def test_values_of_fetched_records_are_copied():
    rows = [(b"%d" % number * 100, None, []) for number in range(1000, 1100)]
    rows.append((None, None, []))
    assert format_records(fetched(*rows), (ord("s"), b"\n"), b"NULL") == b"".join(
        (b"NULL" if value is None else value) + b"\n" for value, _, _ in rows
    )


@pytest.mark.parametrize("number", [0, 9, 10, -1, INT64_MAX, -INT64_MAX - 1])
def test_numbers_are_decimal(number):
    record = ConsumerRecord("t", 0, 0, number, number, 0, None, b"")
    assert format_records([record], (ord("o"), b" ", ord("T")), b"") == b"%d %d" % (number, number)


def test_topic_of_each_record_is_its_own():
    records = [*fetched((b"1", None, []), topic="a"), *fetched((b"2", None, []), topic="b\n")]
    assert format_records(records, (ord("t"), ord("s")), b"") == b"a1b\\n2"
    assert [json.loads(line)["topic"] for line in records_as_json(records).splitlines()] == ["a", "b\n"]


@pytest.mark.parametrize("wrong", [[None], ["x"], [ConsumerRecord("t", 0, 0, 0, 0, 0, "key", "value")]])
def test_other_objects_are_refused(wrong):
    with pytest.raises((TypeError, AttributeError)):
        format_records(wrong, (ord("s"),), b"")
    with pytest.raises((TypeError, AttributeError)):
        records_as_json(wrong)


def test_unknown_field_is_refused():
    with pytest.raises(ValueError, match="unknown field 'x'"):
        format_records(fetched((b"v", None, [])), (ord("x"),), b"")
