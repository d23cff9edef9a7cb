"""Parsing of ``auto_offset_reset``: names, and durations in Java's format (KIP-1106)."""

import pytest

from kafkacore.consumer.config import resolve
from kafkacore.consumer.offset_reset import OffsetResetStrategy, parse_duration_ms
from kafkacore.errors import KafkaConfigurationError

NOW = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("PT20.345S", 20_345),
        ("PT15M", 900_000),
        ("PT10H", 36_000_000),
        ("P2D", 172_800_000),
        ("P2DT3H4M", 183_840_000),
        ("PT-6H+360M", 0),
        ("-PT-6H-3M", 21_780_000),
        ("+PT0S", 0),
        ("pt1.5s", 1500),
        ("PT1,5S", 1500),
        ("PT1.S", 1000),
        ("P1DT-1.25S", 86_398_750),
        ("PT0.000000001S", 0),
    ],
)
def test_durations_are_read_as_java_reads_them(text, ms):
    assert parse_duration_ms(text) == ms


NO_DURATIONS = [
    *("", "P", "PT", "P1DT", "1D", "P1Y", "P1W", "PT1", "PT1.2H", "P1H", "PT.5S", " PT1S", "PT1S "),
    *("PT1.0123456789S", "-PT1S", "PT-1S", "P-1D", f"PT{2**63}S"),
]


@pytest.mark.parametrize("text", NO_DURATIONS)
def test_what_is_no_duration_or_is_negative_is_refused(text):
    with pytest.raises(ValueError, match="duration"):
        parse_duration_ms(text)


def test_strategies_ask_for_an_end_or_a_time():
    assert OffsetResetStrategy.parse("earliest") is OffsetResetStrategy.EARLIEST
    assert OffsetResetStrategy.parse("latest").timestamp(NOW) == -1
    assert OffsetResetStrategy.EARLIEST.timestamp(NOW) == -2
    assert OffsetResetStrategy.parse("by_duration:PT1H").timestamp(NOW) == NOW - 3_600_000
    assert OffsetResetStrategy.parse("by_duration:P99999D").timestamp(NOW) == 0


def test_strategies_are_equal_by_what_they_mean():
    hour = OffsetResetStrategy.parse("by_duration:PT1H")
    assert hour == OffsetResetStrategy.parse("by_duration:PT1H") != OffsetResetStrategy.LATEST
    assert len({hour, OffsetResetStrategy.parse("by_duration:PT1H"), OffsetResetStrategy.NONE}) == 2
    assert hour != "by_duration:PT1H"
    assert "PT1H" in repr(hour)


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("earliest", "earliest"),
        ("latest", "latest"),
        ("none", "none"),
        (None, "none"),
        ("smallest", "earliest"),
        ("largest", "latest"),
        ("by_duration:PT1H", "by_duration:PT1H"),
    ],
)
def test_spellings_of_the_setting(given, used):
    assert resolve({"auto_offset_reset": given})["auto_offset_reset"] == used


@pytest.mark.parametrize(
    "given", ["first", "", "by_duration", "by_duration:", "by_duration:-PT1S", "by_duration:1h", 0, True, -1]
)
def test_impossible_values_of_the_setting_are_refused_with_what_is_possible(given):
    with pytest.raises(KafkaConfigurationError, match=r"auto_offset_reset=.*by_duration"):
        resolve({"auto_offset_reset": given})
