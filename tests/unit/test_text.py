"""Parsing of text written by people."""

from __future__ import annotations

import pytest

from kafkacore.text import did_you_mean, parse_boolean


@pytest.mark.parametrize(
    ("text", "expected"), [("true", True), ("False", False), (" TRUE ", True), ("1", None), ("", None)]
)
def test_booleans_are_read_as_kafka_reads_them(text: str, expected: bool | None) -> None:
    assert parse_boolean(text) is expected


def test_spaces_count_unless_stripped() -> None:
    assert parse_boolean(" true", strip=False) is None
    assert parse_boolean("TRUE", strip=False) is True


def test_the_nearest_name_is_suggested() -> None:
    known = ["linger_ms", "batch_size"]
    assert did_you_mean("lingerms", known) == "did you mean linger_ms?"
    assert did_you_mean("lingerms", known, show=repr) == "did you mean 'linger_ms'?"
    assert did_you_mean("x", known, "see --help") == "see --help"
    assert did_you_mean("lingerms", known, cutoff=1) == ""
