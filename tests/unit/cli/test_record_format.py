"""Format strings of ``consume --format``: kcat's fields, escapes, and bytes that are hostile to terminals."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkacore import ConsumerRecord
from kafkacore.cli.record_format import FIELDS, RecordFormat, unescaped
from kafkacore.errors import KafkaConfigurationError

HOSTILE = b"\x1b[31m\r\n\0\xff%s\\n"


def record(key=b"k", value=b"v", headers=(), topic="t"):
    return ConsumerRecord(topic, 3, 0, 42, 1_700_000_000_000, 0, key, value, headers)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%t-%p@%o %T %k=%s", b"t-3@42 1700000000000 k=v"),
        ("%K,%S,%R", b"1,1,\0\0\0\1"),
        ("100%% %s\\n", b"100% v\n"),
        ("%%s", b"%s"),
        ('\\x41\\x4\\t\\r\\0\\\\\\%%\\"é', b'A\x04\t\r\0\\\\%"\xc3\xa9'),
        ("", b""),
        ("no fields\\", b"no fields\\"),
    ],
)
def test_fields_and_escapes_are_replaced(text, expected):
    assert RecordFormat(text, b"NULL")([record()]) == expected


def test_null_differs_from_an_empty_text():
    text = RecordFormat("%k|%K|%s|%S|%R", b"NULL")
    assert text([record(key=None, value=None)]) == b"NULL|-1|NULL|-1|\xff\xff\xff\xff"
    assert text([record(key=b"", value=b"")]) == b"|0||0|\0\0\0\0"


def test_headers_are_a_list_of_names_and_values():
    text = RecordFormat("[%h]", b"NULL")
    assert text([record()]) == b"[]"
    assert text([record(headers=[("a", b"1"), ("a", None), ("b", b"")])]) == b"[a=1,a=NULL,b=]"


def test_data_is_copied_and_names_are_escaped():
    hostile = record(HOSTILE, HOSTILE, [("x\n\x1b", HOSTILE)], topic="t\n\x1b[31m")
    assert RecordFormat("%k%s", b"")([hostile]) == HOSTILE + HOSTILE
    assert RecordFormat("%t", b"")([hostile]) == rb"t\n\x1b[31m"
    assert RecordFormat("%h", b"")([hostile]) == rb"x\n\x1b=" + HOSTILE


@given(st.text(), st.none() | st.binary(), st.none() | st.binary())
def test_any_format_formats_or_is_refused(text, key, value):
    with suppress(KafkaConfigurationError):
        assert isinstance(RecordFormat(text, b"-")([record(key, value)]), bytes)


@pytest.mark.parametrize("byte", [0x80, 0xC3, 0xFF])
def test_argument_that_is_not_utf8_keeps_its_bytes(byte):
    assert unescaped(bytes([byte]).decode("utf-8", "surrogateescape")) == bytes([byte])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("%v", "unknown field %v in the format '%v': use one of %t, %p"),
        ("50%", "unknown field % in the format '50%'"),
        ("%s\\q", r"unknown escape \\q"),
        ("\\xyz", r"unknown escape \\x"),
    ],
)
def test_unknown_field_or_escape_is_named(text, sentence):
    with pytest.raises(KafkaConfigurationError, match=sentence):
        RecordFormat(text, b"")


def test_every_field_has_a_meaning():
    assert all(FIELDS.values())
