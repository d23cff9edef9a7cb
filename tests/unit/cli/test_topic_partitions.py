"""Arguments that name topics, partitions, times and durations."""

import argparse

import pytest

from kafkacore.cli.times import duration_ms, iso_time, timestamp_ms
from kafkacore.cli.topic_partitions import TopicArgument, topic_argument


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orders", TopicArgument("orders")),
        ("orders:0", TopicArgument("orders", (0,))),
        ("orders:4,0,2-4", TopicArgument("orders", (0, 2, 3, 4))),
    ],
)
def test_topic_and_partitions_are_parsed(text, expected):
    assert topic_argument(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", ":1", "orders:", "orders:x", "orders:3-1", "orders:-1", "orders:0-99999999", "orders:9999999999"],
)
def test_what_is_no_topic_or_partition_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not "):
        topic_argument(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1700000000000", 1_700_000_000_000),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("2023-11-14T22:13:20.005", 1_700_000_000_005),
        ("2023-11-15T00:13:20+02:00", 1_700_000_000_000),
    ],
)
def test_time_is_iso_8601_or_milliseconds(text, expected):
    assert timestamp_ms(text) == expected


@pytest.mark.parametrize("text", ["noon", "-5", "1969-01-01", "99999999999999999999"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError):
        timestamp_ms(text)


def test_time_of_a_broker_is_shown_whatever_it_is():
    assert iso_time(1_700_000_000_005) == "2023-11-14T22:13:20.005Z"
    assert (iso_time(-1), iso_time(None)) == (None, None)
    assert iso_time(2**63 - 1) == str(2**63 - 1)


def test_duration_is_iso_8601():
    assert duration_ms("P1DT2H") == 93_600_000
    with pytest.raises(argparse.ArgumentTypeError, match="an hour"):
        duration_ms("an hour")
