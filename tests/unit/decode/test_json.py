"""Decoding of JSON to columns, with the values of Spark's from_json. tests/system compares with Spark."""

import json
import math
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from decode.json_documents import SCHEMAS, documents
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkacore.decode.decoder import QUOTED_CHARACTERS, ColumnTooLargeError
from kafkacore.decode.json import JSON_OPTION_NAMES, JsonOptions, json_decoder, json_options
from kafkacore.errors import KafkaConfigurationError

SIMPLE = pa.schema(
    [
        ("a", pa.int32()),
        ("b", pa.string()),
        ("c", pa.float64()),
        ("l", pa.list_(pa.int64())),
        ("t", pa.bool_()),
    ]
)
NESTED = pa.schema(
    [
        ("s", pa.struct([("x", pa.int32()), ("y", pa.struct([("z", pa.string())]))])),
        ("l", pa.list_(pa.struct([("x", pa.int32())]))),
        ("m", pa.map_(pa.string(), pa.list_(pa.float64()))),
    ]
)


def decoded(schema, *values, **options):
    found = json_decoder(schema, JsonOptions(**options)).decode(pa.array(values, pa.binary()))
    for column in found.columns:
        column.validate(full=True)
        assert len(column) == len(values)
    return found


def rows(found):
    return [tuple(row) for row in zip(*(column.to_pylist() for column in found.columns), strict=True)]


def value_of(kind, token, **options):
    """Return the value of the only field, and whether the row is malformed."""
    found = decoded(pa.schema([("a", kind)]), b'{"a":' + token + b"}", **options)
    return found.columns[0].to_pylist()[0], found.malformed is not None


# ---- Rows ---------------------------------------------------------------------------------


def test_each_field_becomes_a_column():
    found = decoded(
        SIMPLE, b'{"a":1,"b":"x","c":1.5,"l":[1,null],"t":true}', b'{"t":false,"other":{"a":[1]},"a":2}'
    )
    assert rows(found) == [(1, "x", 1.5, [1, None], True), (2, None, None, None, False)]
    assert found.malformed is None


def test_null_and_nothing_but_space_are_all_null_and_not_malformed():
    found = decoded(SIMPLE, None, b"", b" \n\t\r")
    assert rows(found) == [(None,) * 5] * 3
    assert found.malformed is None


def test_absent_is_what_holds_no_value_and_not_what_holds_a_bad_one_or_an_empty_one():
    found = decoded(SIMPLE, None, b"", b"{}", b" \n", b"null", b'{"a":"x"}', b"x")
    assert found.absent.to_pylist() == [True, True, False, True, False, False, False]
    assert decoded(SIMPLE, b"", b"{}").absent.to_pylist() == [True, False]
    assert decoded(SIMPLE, b"{}").absent is None


@pytest.mark.parametrize(
    "value", [b"null", b"[]", b'[{"a":1}]', b"1", b'"x"', b"x", b"{", b'{"a":1', b'{"a":1,}']
)
def test_what_is_not_an_object_is_malformed_and_null(value):
    found = decoded(SIMPLE, b'{"a":1}', value, b'{"a":2}')
    assert [row[0] for row in rows(found)] == [1, None, 2]
    assert found.malformed.to_pylist() == [False, True, False]
    assert list(found.reasons) == [1]


def test_what_follows_the_object_is_not_looked_at():
    assert rows(decoded(SIMPLE, b'{"a":1} x', b'{"a":2}}', b'{"a":3}\x00'))[2][0] == 3


def test_field_of_another_type_is_null_and_leaves_the_others():
    found = decoded(SIMPLE, b'{"a":"1","b":"x","l":[1,"x",2],"c":2}')
    assert rows(found) == [(None, "x", 2.0, None, None)]
    assert found.malformed.to_pylist() == [True]
    assert "field a of type int32" in found.reasons[0]


def test_nested_values_keep_what_is_good_in_them():
    found = decoded(
        NESTED,
        b'{"s":{"x":"no","y":{"z":"t"}},"l":[{"x":1},{"x":"no"},null],"m":{"k":[1],"j":null}}',
        b'{"s":null,"l":[{"x":1},5],"m":{"k":[1,"no"]}}',
    )
    assert rows(found) == [
        ({"x": None, "y": {"z": "t"}}, [{"x": 1}, {"x": None}, None], [("k", [1.0]), ("j", None)]),
        (None, None, None),
    ]
    assert found.malformed.to_pylist() == [True, True]


def test_of_a_repeated_field_the_last_good_value_counts():
    found = decoded(
        SIMPLE,
        b'{"a":1,"a":2}',
        b'{"a":1,"a":"x"}',
        b'{"b":"long","b":"s","b":5}',
        b'{"l":[1,2],"l":[3],"l":["x"]}',
    )
    assert [row[:2] + row[3:4] for row in rows(found)] == [
        (2, None, None),
        (1, None, None),
        (None, "5", None),
        (None, None, [3]),
    ]
    assert found.malformed.to_pylist() == [False, True, False, True]


def test_repeated_structs_lists_and_maps_leave_nothing_behind():
    first = b'{"s":{"x":1,"y":{"z":"p"}},"l":[{"x":1},{"x":2}],"m":{"k":[1,2],"j":[3]}'
    found = decoded(NESTED, first + b',"s":{"y":{"z":"q"}},"l":[{"x":9}],"m":{"i":[4]}}', first + b"}")
    assert rows(found)[0] == ({"x": None, "y": {"z": "q"}}, [{"x": 9}], [("i", [4.0])])
    assert rows(found)[1] == (
        {"x": 1, "y": {"z": "p"}},
        [{"x": 1}, {"x": 2}],
        [("k", [1.0, 2.0]), ("j", [3.0])],
    )


def test_names_are_found_in_any_order_with_escapes_and_by_case():
    found = decoded(
        SIMPLE, b'{"b":"x","\\u0061":1}', b"{'a':2}", b'{"A":3,"aa":4,"":5}', '{"é":1,"a":6}'.encode()
    )
    assert [row[0] for row in rows(found)] == [1, 2, None, 6]


@pytest.mark.parametrize("name", ['a"b', "a\\nb", "a\nb", '"'])
def test_name_that_json_has_to_escape_is_found_by_its_escapes_alone(name):
    bare, escaped = f'{{"{name}":1}}'.encode(), json.dumps({name: 2}).encode()
    found = decoded(pa.schema([(name, pa.int32())]), bare, escaped)
    assert found.columns[0].to_pylist() == [None, 2]


def test_schema_without_fields_still_says_what_is_malformed():
    found = decoded(pa.schema([]), b'{"a":1}', b"x", None)
    assert found.columns == []
    assert found.malformed.to_pylist() == [False, True, False]


def test_sliced_input_is_decoded_from_its_start():
    values = pa.array([b"x", None, b'{"a":1}', b"y"], pa.binary()).slice(1, 2)
    found = json_decoder(SIMPLE, JsonOptions()).decode(values)
    assert rows(found)[1][0] == 1
    assert found.malformed is None


def test_values_of_another_arrow_type_are_refused():
    with pytest.raises(TypeError, match="large_binary"):
        json_decoder(SIMPLE, JsonOptions()).decode(pa.array([b"{}"], pa.large_binary()))


def test_columns_outlive_the_decoder_and_its_next_batch():
    decoder = json_decoder(NESTED, JsonOptions())
    first = decoder.decode(pa.array([b'{"m":{"k":[1]}}'] * 100, pa.binary()))
    decoder.decode(pa.array([b'{"m":{"q":[2]}}'] * 1000, pa.binary()))
    del decoder
    assert first.columns[2].to_pylist() == [[("k", [1.0])]] * 100


def test_no_rows_give_empty_columns():
    for schema in (SIMPLE, NESTED):
        assert rows(decoded(schema)) == []


# ---- Values ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [
        (pa.int8(), -128, 127),
        (pa.int16(), -32768, 32767),
        (pa.int32(), -(2**31), 2**31 - 1),
        (pa.int64(), -(2**63), 2**63 - 1),
    ],
)
def test_integers_have_their_type_s_range(kind, least, most):
    for value in (least, most, 0):
        assert value_of(kind, b"%d" % value) == (value, False)
    above = 256 if kind == pa.int8() else most + 1
    for value in (least - 1, above):
        assert value_of(kind, b"%d" % value) == (None, True)
    for token in (b"1.0", b"1e3", b'"1"', b"true", b"[1]", b"NaN"):
        assert value_of(kind, token) == (None, True)


def test_byte_wraps_around_as_jackson_s_does():
    assert value_of(pa.int8(), b"200") == (-56, False)


@pytest.mark.parametrize(
    "token", [b"01", b"+1", b"1.", b".5", b"-", b"1e", b"1x", b"tru", b"nulll", b"INF", b"0x1"]
)
def test_token_that_is_none_makes_the_whole_row_null(token):
    found = decoded(SIMPLE, b'{"c":1,"a":' + token + b"}")
    assert rows(found) == [(None,) * 5]
    assert found.malformed.to_pylist() == [True]


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False))
def test_doubles_are_exact(value):
    token = repr(value).replace("inf", "Infinity").encode()
    assert value_of(pa.float64(), token) == (value, False)


@settings(max_examples=300, deadline=None)
@given(st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?", fullmatch=True))
def test_numbers_are_read_as_python_reads_them(token):
    value = float(token)
    if "." not in token and "e" not in token.lower() and value == 0:
        value = 0.0
    assert repr(value_of(pa.float64(), token.encode())[0]) == repr(value)
    assert math.copysign(1, value_of(pa.float64(), token.encode())[0]) == math.copysign(1, value)


def test_floats_are_rounded_once():
    # Rounding to a double first would give 1.0: halfway, then to even.
    assert value_of(pa.float32(), b"1.000000059604644775390626")[0] == 1.00000011920928955078125
    assert value_of(pa.float32(), b"16777217")[0] == 16777216.0


def test_not_numbers_are_numbers_unless_forbidden():
    kind = pa.float64()
    assert math.isnan(value_of(kind, b"NaN")[0])
    for token in (b"Infinity", b"+INF", b'"Infinity"', b'"+INF"'):
        assert value_of(kind, token) == (math.inf, False)
        assert value_of(kind, token, allow_non_numeric_numbers=False) == (None, True)
    assert value_of(kind, b'"INF"') == (None, True)


@settings(max_examples=300, deadline=None)
@given(st.decimals(allow_nan=False, allow_infinity=False), st.integers(1, 38), st.integers(0, 38))
def test_decimals_are_rounded_half_up(value, precision, scale):
    scale = min(scale, precision)
    kind = pa.decimal128(precision, scale)
    exact = value.as_tuple()
    shift = exact.exponent + scale
    unscaled = int("".join(map(str, exact.digits)))
    if abs(shift) > 500:
        return
    rounded = unscaled * 10**shift if shift >= 0 else (2 * unscaled + 10**-shift) // (2 * 10**-shift)
    expected = (
        None if rounded >= 10**precision else Decimal((exact.sign, tuple(map(int, str(rounded))), -scale))
    )
    token = f"{value:E}".replace("E+", "E").encode()
    for written in (token, b'"' + token + b'"'):
        assert value_of(kind, written) == (expected, expected is None)


def test_decimal_in_text_may_have_commas_and_a_plus():
    kind = pa.decimal128(10, 2)
    for token in (b'"1,234.5"', b'"+1234.5"', b'"1234.50"', b'"1.2345E3"'):
        assert value_of(kind, token) == (Decimal("1234.50"), False)
    for token in (
        b'""',
        b'" 1"',
        b'"1.5.5"',
        b'"--1"',
        b'"e5"',
        b'"1e"',
        b'"-"',
        b'"1e99999999999"',
        b"1e-2147483648",
    ):
        assert value_of(kind, token) == (None, True)


@settings(max_examples=300, deadline=None)
@given(st.text())
def test_text_is_what_python_reads(text):
    for token in (json.dumps(text), json.dumps(text, ensure_ascii=False)):
        encoded = token.encode("utf-8", "replace")
        expected = json.loads(encoded).encode("utf-8", "replace").decode()
        assert value_of(pa.string(), encoded) == (expected, False)


def test_bytes_that_are_not_utf_8_become_the_replacement_character():
    for raw, count in (
        (b"\xff", 1),
        (b"\xe2\x82", 1),
        (b"\xed\xa0\x80", 1),
        (b"\xed\xa0", 1),
        (b"\xc0\x80", 2),
        (b"\xf0\x80\x80", 3),
    ):
        assert value_of(pa.string(), b'"' + raw + b'"') == ("\ufffd" * count, False)


def test_half_a_surrogate_pair_becomes_a_question_mark():
    assert value_of(pa.string(), rb'"\ud83dx\ude00"') == ("?x?", False)


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (b"-0", "0"),
        (b"1e3", "1000.0"),
        (b"1.50", "1.5"),
        (b"1e7", "1.0E7"),
        (b"0.0001", "1.0E-4"),
        (b"-4.9e-324", "-4.9E-324"),
        (b"123456789012345678901234567890", "123456789012345678901234567890"),
        (b"1e400", '"Infinity"'),
        (b"NaN", '"NaN"'),
        (b"true", "true"),
        (
            b'{ "a" : [ 1 , 2.50 , "x\\u0041\\/\\u0007\\n" , null , {} ] }',
            '{"a":[1,2.5,"xA/\\u0007\\n",null,{}]}',
        ),
        ('["é😀"]'.encode(), '["é\\uD83D\\uDE00"]'),
    ],
)
def test_what_is_no_text_is_written_anew_where_text_is_wanted(token, text):
    assert value_of(pa.string(), token) == (text, False)


def test_control_characters_between_groups_of_base64_are_passed_over():
    # Raw line ends in base64 are invalid JSON, but Jackson accepts them.
    for token in (b'"AAEC\r\nAwQF\n"', b'"\x00AAEC\x00\x1f\\nAwQF"'):
        assert value_of(pa.binary(), token) == (bytes(range(6)), False)
    for token in (b'"AAE\nC"', b'"AAEC\n', b'"AAEC\x00', b'"AAEC\x00\\', b"'AAEC\n'", b'"AAEC\n\\q"'):
        assert value_of(pa.binary(), token) == (None, True)
    assert value_of(pa.string(), b'"AAEC\n"') == (None, True)


def test_binary_is_base64_with_its_padding():
    for token, value in (
        (b'"aGk="', b"hi"),
        (b'" aGk= "', b"hi"),
        (b'"\\u0061Gk="', b"hi"),
        (b'""', b""),
        (b'"aGk=aGk="', b"hihi"),
    ):
        assert value_of(pa.binary(), token) == (value, False)
    for token in (b'"aGk"', b'"a"', b'"aGk=="', b'"a Gk="', b'"-_=="', b"1"):
        assert value_of(pa.binary(), token) == (None, True)


def test_deep_nesting_and_long_numbers_are_refused_where_jackson_refuses_them():
    def document(value):
        return b'{"z":' + value + b',"a":1}'

    good = [b"[" * 999 + b"]" * 999, b"1" * 1000, b"1." + b"1" * 999]
    bad = [b"[" * 1000 + b"]" * 1000, b"1" * 1001, b"1." + b"1" * 1000, b"[" * 100_000]
    found = decoded(SIMPLE, *map(document, good + bad))
    assert found.malformed.to_pylist() == [False] * 3 + [True] * 4


# ---- Options and schemas ---------------------------------------------------------------------------------


def test_options_come_from_their_names_in_lower_case():
    given_options = {"timezone": "Europe/Paris", "allowsinglequotes": "FALSE", "other": "x"}
    assert json_options(given_options) == JsonOptions(time_zone="Europe/Paris", allow_single_quotes=False)
    assert json_options({}) == JsonOptions()
    assert pickle.loads(pickle.dumps(JsonOptions())) == JsonOptions()
    assert "timestampFormat" in JSON_OPTION_NAMES


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"allownonnumericnumbers": "maybe"}, "allowNonNumericNumbers must be true or false, not 'maybe'"),
        ({"allowcomments": "true"}, "allowComments can only be"),
        ({"encoding": "UTF-16"}, "encoding can only be"),
        ({"locale": "de-DE"}, "locale can only be"),
    ],
)
def test_option_that_cannot_be_followed_is_named(options, sentence):
    with pytest.raises(KafkaConfigurationError, match=sentence):
        json_options(options)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("", "1 to"),
        ("yyyy-MM-dd EEE", "EEE"),
        ("yyyyy", "yyyyy"),
        ("yyyy-MM-dd'T", "quote"),
        ("yyyy]", "bracket"),
        ("dMyyyy", "variable length"),
        ("hh:mm", "h together with the letter a"),
        ("VV yyyy", "at the end"),
        ("x" * 1000, "1 to"),
        ("{yyyy}", "quotes"),
    ],
)
def test_pattern_that_is_not_read_is_refused_in_a_sentence(pattern, why):
    with pytest.raises(KafkaConfigurationError, match=f"option timestampFormat: .*{why}"):
        json_decoder(SIMPLE, JsonOptions(timestamp_format=pattern))


def test_patterns_are_read_with_what_they_leave_out():
    def read(kind, text, **options):
        return value_of(kind, b'"' + text + b'"', **options)[0]

    assert read(pa.date32(), b"02/01/2020", date_format="dd/MM/yyyy") == date(2020, 1, 2)
    pattern = "yyyy-MM-dd'T'HH:mm[:ss[.SSS]][XXX]"
    for text, found in (
        (b"2020-01-02T03:04", 0),
        (b"2020-01-02T03:04:05", 5),
        (b"2020-01-02T02:04:05.000-01:00", 5),
    ):
        assert read(pa.timestamp("us"), text[:19], timestamp_ntz_format=pattern) is not None
        moment = read(pa.timestamp("us", "UTC"), text, timestamp_format=pattern)
        assert moment == datetime(2020, 1, 2, 3, 4, found, tzinfo=UTC)
    assert read(pa.timestamp("us", "UTC"), b"2020-01-02 03:04", timestamp_format=pattern) is None
    options = {"timestamp_format": pattern, "enable_date_time_parsing_fallback": True}
    assert read(pa.timestamp("us", "UTC"), b"2020-01-02 03:04", **options) is not None


def test_times_without_a_zone_are_of_the_session_s():
    kind = pa.timestamp("us", "UTC")
    for zone, hour in (("UTC", 12), ("+02:00", 10), ("Europe/Paris", 10), ("PST", 19)):
        found = value_of(kind, b'"2020-07-01T12:00:00"', time_zone=zone)[0]
        assert found == datetime(2020, 7, 1, hour, tzinfo=UTC)
    # A local time skipped by the change to summer time, and one that occurs twice in autumn.
    assert value_of(kind, b'"2020-03-29T02:30:00"', time_zone="Europe/Paris")[0].hour == 1
    assert value_of(kind, b'"2020-10-25T02:30:00"', time_zone="Europe/Paris")[0].hour == 0


def test_zones_that_do_not_exist_are_malformed_however_many():
    kind = pa.timestamp("us", "UTC")
    values = [b'{"a":"2020-01-02T03:04:05 Zone/%d"}' % number for number in range(2000)]
    found = decoded(pa.schema([("a", kind)]), *values, b'{"a":"2020-01-02T03:04:05 Europe/Paris"}')
    assert found.malformed.to_pylist() == [True] * 2000 + [False]


def test_unknown_time_zone_is_refused():
    with pytest.raises(KafkaConfigurationError, match="Mars/Olympus"):
        json_decoder(SIMPLE, JsonOptions(time_zone="Mars/Olympus"))


@pytest.mark.parametrize(
    ("schema", "what"),
    [
        (pa.schema([("a", pa.duration("us"))]), "a is of type duration"),
        (pa.schema([("a", pa.struct([("b", pa.list_(pa.large_string()))]))]), r"a\.b\[\] is of type"),
        (pa.schema([("a", pa.map_(pa.int32(), pa.string()))]), "a is of type map"),
        (pa.schema([("a", pa.int32()), ("a", pa.string())]), "two fields"),
        (pa.schema([("a\0", pa.int32())]), "zero character"),
    ],
)
def test_schema_that_cannot_be_decoded_to_is_refused(schema, what):
    with pytest.raises(KafkaConfigurationError, match=what):
        json_decoder(schema, JsonOptions())


def test_schema_nested_too_deep_is_refused():
    kind = pa.int32()
    for _ in range(200):
        kind = pa.list_(kind)
    with pytest.raises(KafkaConfigurationError, match="nested deeper"):
        json_decoder(pa.schema([("a", kind)]), JsonOptions())


def test_what_decodes_to_too_much_is_split_and_malformed_alone():
    wide = pa.struct([(f"f{number}", pa.int64()) for number in range(100)])
    decoder = json_decoder(pa.schema([("a", pa.list_(wide)), ("b", pa.int32())]), JsonOptions(), 10_000_000)
    small = b'{"a":[' + b"{}," * 5_000 + b'{}],"b":1}'
    large = b'{"a":[' + b"{}," * 50_000 + b'{}],"b":1}'
    with pytest.raises(ColumnTooLargeError, match="2 decoded values of JSON"):
        decoder.decode(pa.array([small, large], pa.binary()))
    found = decoder.decode(pa.array([large], pa.binary()))
    assert rows(found) == [(None, None)]
    assert found.malformed.to_pylist() == [True]
    assert decoder.decode(pa.array([small], pa.binary())).columns[1].to_pylist() == [1]


def test_reasons_are_short_and_few():
    found = decoded(SIMPLE, *[b'{"a":"' + b"x" * 10_000 + b'"}'] * 100)
    assert 0 < len(found.reasons) <= 8
    assert all(len(reason) < 3 * QUOTED_CHARACTERS for reason in found.reasons.values())


# ---- Arbitrary input --------------------------------------------------------------------------------

#: A valid row placed between the others, to detect rows that affect their neighbours.
BETWEEN = b'{"a":7,"b":"between","l":[7]}'


@settings(max_examples=400)
@given(
    st.lists(
        st.binary(max_size=80)
        | st.text(alphabet='{}[]",:\\eE.+-0123456789 atruefalsn\u00e9', max_size=60).map(str.encode)
    )
)
def test_hostile_bytes_leave_their_neighbours_alone(values):
    for schema in (SIMPLE, NESTED):
        mixed = [value for pair in values for value in (pair, BETWEEN)]
        found = decoded(schema, *mixed)
        alone = rows(decoded(schema, BETWEEN))[0]
        assert rows(found)[1::2] == [alone] * len(values)


@pytest.mark.parametrize("seed", range(4))
def test_every_cut_and_every_flipped_byte_of_a_document_is_survived(seed):
    kind = pa.struct(
        [("a", pa.string()), ("b", pa.list_(pa.timestamp("us", "UTC"))), ("c", pa.decimal128(10, 2))]
    )
    schema = pa.schema(
        [(name, kind) for name in "abc"] + [("d", pa.map_(pa.string(), kind)), ("e", pa.binary())]
    )
    whole = max(documents(200, seed=1000 + seed), key=len)
    flipped = [whole[:at] + bytes([whole[at] ^ 1 << seed]) + whole[at + 1 :] for at in range(len(whole))]
    decoded(schema, *(whole[:at] for at in range(len(whole))), *flipped)


@pytest.mark.parametrize("seed", range(3))
def test_malformed_or_not_agrees_with_python_on_what_is_json(seed):
    found = [document for document in documents(1000, seed) if document.lstrip(b" \n\t\r").startswith(b"{")]
    malformed = decoded(pa.schema([]), *found).malformed.to_pylist()
    for document, is_malformed in zip(found, malformed, strict=True):
        try:
            json.JSONDecoder().raw_decode(document.decode("utf-8", "replace").lstrip(" \n\t\r"))
        except ValueError:
            # Spark also accepts single quotes and other spellings of infinity.
            if not any(mark in document for mark in (b"'", b"INF", b"+Inf")):
                assert is_malformed, document
        else:
            assert not is_malformed, document


def test_schemas_of_the_comparison_are_many():
    assert len(set(SCHEMAS)) >= 7
