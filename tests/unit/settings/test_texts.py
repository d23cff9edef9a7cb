"""Parsers of settings given as text."""

from __future__ import annotations

import pytest

from kafkacore.settings import SettingType, suggestion, table
from kafkacore.settings.setting import Setting
from kafkacore.settings.texts import (
    InvalidTextError,
    check_limits,
    read,
    read_boolean,
    read_choice,
    read_java_number,
    read_java_whole,
    words,
)


def test_boolean_ignores_case_and_spaces() -> None:
    assert read_boolean(" True ") is True
    assert read_boolean("FALSE", strip=False) is False


@pytest.mark.parametrize(("text", "strip"), [("yes", True), ("1", True), ("", True), (" true", False)])
def test_other_text_is_no_boolean(text: str, strip: bool) -> None:
    with pytest.raises(InvalidTextError, match=r"^must be true or false$"):
        read_boolean(text, strip=strip)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (SettingType.BOOLEAN, "true", True),
        (SettingType.INT, "7", 7),
        (SettingType.LONG, "-1", -1),
        (SettingType.DOUBLE, "0.5", 0.5),
        (SettingType.STRING, "7", "7"),
        (SettingType.PASSWORD, "true", "true"),
    ],
)
def test_text_is_read_by_its_type(kind: SettingType, text: str, value: object) -> None:
    assert read(kind, text) == value


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [(SettingType.INT, "must be a whole number"), (SettingType.DOUBLE, "must be a number")],
)
def test_text_that_is_no_number_is_refused(kind: SettingType, sentence: str) -> None:
    with pytest.raises(InvalidTextError, match=sentence):
        read(kind, "many")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("+7", 7),
        ("007", 7),
        ("0" * 5000 + "7", 7),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", None),
        ("1_000", None),
        (" 7", None),
        ("\u0663", None),
        ("", None),
    ],
)
def test_java_whole_numbers(text: str, number: int | None) -> None:
    assert read_java_whole(text) == number


def test_java_numbers() -> None:
    assert read_java_number("1e3") == 1000
    assert read_java_number(".5f") == 0.5
    for text in ("NaN", "1_0", "inf", ""):
        with pytest.raises(InvalidTextError):
            read_java_number(text)


def test_limits_are_included_and_an_exception_is_allowed() -> None:
    level = Setting("level", SettingType.INT, low=1, high=9, exception=-1)
    for number in (1, 9, -1):
        check_limits(level, number)
    with pytest.raises(InvalidTextError, match=r"^must be between 1 and 9, or -1$"):
        check_limits(level, 0)


def test_choice_is_found_in_any_case() -> None:
    assert read_choice(("PEM", "PKCS12"), "pem") == "PEM"
    with pytest.raises(InvalidTextError, match=r"^must be one of PEM, PKCS12$"):
        read_choice(("PEM", "PKCS12"), "JKS")


def test_list_has_no_empty_parts() -> None:
    assert words(" a, ,b,") == ["a", "b"]


def test_unknown_name_gets_the_nearest() -> None:
    known = table(Setting("linger_ms", SettingType.INT), Setting("batch_size", SettingType.INT))
    assert suggestion("linger_m", known) == "; did you mean linger_ms?"
    assert suggestion("xyzzy", known) == ""
