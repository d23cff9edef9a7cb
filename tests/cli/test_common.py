"""Records as lines of JSON, and the arguments that several commands share."""

import argparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkacore.cli.common import assignment, get_bytes, natural, put_bytes
from kafkacore.errors import KafkaConfigurationError


@given(st.none() | st.binary())
def test_bytes_survive_their_line_of_json(data):
    fields: dict[str, object] = {}
    put_bytes(fields, "value", data)
    assert get_bytes(fields, "value") == data


def test_text_is_shown_as_text():
    fields: dict[str, object] = {}
    put_bytes(fields, "value", "grüße".encode())
    assert fields == {"value": "grüße"}


def test_a_nested_value_is_taken_as_json():
    assert get_bytes({"value": {"a": [1, 2]}}, "value") == b'{"a":[1,2]}'


def test_what_is_not_base64_is_refused():
    with pytest.raises(KafkaConfigurationError, match="not base64"):
        get_bytes({"value_base64": "%%%"}, "value")


@pytest.mark.parametrize(("parse", "text"), [(assignment, "novalue"), (assignment, "=x"), (natural, "-1")])
def test_malformed_argument_is_named(parse, text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not"):
        parse(text)
