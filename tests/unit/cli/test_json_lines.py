"""The compiled reader of ``produce --json`` reads a line as Python's json does, or leaves it to that."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkacore import ConsumerRecord
from kafkacore.cli._json_lines import usual_record
from kafkacore.cli._record_lines import records_as_json
from kafkacore.cli.common import CommandError
from kafkacore.cli.produce import _record

TEXT = st.none() | st.text()
LEAF = TEXT | st.integers() | st.booleans() | st.floats()
NAMES = (
    st.sampled_from(["key", "value", "timestamp", "headers", "offset", "value_base64", "a\\b", ""])
    | st.text()
)
HEADERS = st.lists(st.fixed_dictionaries({"key": st.text(), "value": TEXT}))
OBJECTS = st.dictionaries(NAMES, LEAF | HEADERS | st.dictionaries(NAMES, LEAF, max_size=2), max_size=5)


def check(line):
    """Require that a line that is read at all is read as the general code reads it."""
    found = usual_record(line)
    if found is not None:
        assert found == _record(line, 1)
    return found


@given(
    st.none() | st.text(), st.none() | st.text(), st.lists(st.tuples(st.text(), TEXT)), st.integers(0, 2**59)
)
def test_what_consume_prints_is_read(key, value, headers, timestamp_ms):
    headers = [(name, None if text is None else text.encode()) for name, text in headers]
    key, value = (None if text is None else text.encode() for text in (key, value))
    line = records_as_json([ConsumerRecord("t", 0, 0, 7, timestamp_ms, 0, key, value, headers)])
    found = check(line)
    if b"\\u" not in line:
        assert found == (value, key, headers, timestamp_ms)


@given(OBJECTS, st.booleans(), st.sampled_from([None, (",", ":"), (" ,\t", "\r: ")]))
def test_any_object_is_read_alike(fields, ensure_ascii, separators):
    check(json.dumps(fields, ensure_ascii=ensure_ascii, separators=separators).encode())


@given(st.data())
def test_changed_line_is_read_alike_or_refused(data):
    line = bytearray(
        b'{"key": "k\\n", "value": null, "timestamp": -12, "headers": [{"key": "a", "value": "\xc3\xbc"}]}'
    )
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(line)))
        line[at : at + data.draw(st.integers(0, 2))] = data.draw(
            st.binary(max_size=2)
            | st.sampled_from([b'"', b"\\", b"}", b"{", b",", b"0", b".", b" ", b"null"])
        )
    with contextlib.suppress(CommandError):
        check(bytes(line))


@given(st.integers(0, 100))
def test_part_of_a_line_is_left_to_the_general_code(size):
    line = b'{"key": "k\\n", "value": null, "timestamp": 1, "headers": [{"key": "a", "value": "b"}]}'
    assert (usual_record(line[:size]) is None) == (size < len(line))


@pytest.mark.parametrize(
    "line",
    [
        b"", b"{", b"{}", b"[]", b'{"value": {"a": 1}}', b'{"value": "\xff"}', b'{"value": "\\u00e9"}',
        b'{"value": "a", "value": "b"}', b'{"value": 1}', b'{"value": "a"} x', b'{"value_base64": "YQ=="}',
        b'{"timestamp": 1.5}', b'{"timestamp": 01}', b'{"timestamp": 9999999999999999999}',
        b'{"headers": [{"key": "a"}]}', b'{"headers": null}', b'{\0"\0', b'{"value": "\\',
    ],
)  # fmt: skip
def test_other_forms_are_left_to_the_general_code(line):
    assert usual_record(line) is None


@pytest.mark.parametrize("wrong", [None, "text", 5])
def test_other_objects_are_refused(wrong):
    with pytest.raises(TypeError):
        usual_record(wrong)
