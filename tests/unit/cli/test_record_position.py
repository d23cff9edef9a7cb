"""Positions of ``consume --from`` and ``--until``: offsets, times, and ages."""

import argparse
from datetime import datetime

import pytest

from kafkacore.cli.record_position import record_position
from kafkacore.structs import OffsetAndTimestamp, TopicPartition

TP, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)
ENDS = {TP: 100, OTHER: 7}
NOW_MS = 1_800_000_000_000


class Consumer:
    """Answers look-ups of offsets by time: offset 5 in the first partition, none in the second."""

    def __init__(self):
        self.asked = None

    def offsets_for_times(self, timestamps):
        self.asked = set(timestamps.values())
        return {TP: OffsetAndTimestamp(5, 0, 0), OTHER: None}


@pytest.mark.parametrize(
    ("text", "offsets"),
    [("beginning", (0, 0)), ("end", (100, 7)), ("latest", (100, 7)), ("12", (12, 12)), ("-10", (90, -3))],
)
def test_offset_counts_from_the_start_or_the_end(text, offsets):
    found = record_position(text).offsets(Consumer(), list(ENDS), ENDS, NOW_MS)
    assert tuple(found.values()) == offsets


@pytest.mark.parametrize(
    ("text", "wanted_ms"),
    [
        ("@1700000000123", 1_700_000_000_123),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("2023-11-14T23:13:20+01:00", 1_700_000_000_000),
        ("2023-11-14", int(datetime(2023, 11, 14).timestamp() * 1000)),
        ("15m", NOW_MS - 900_000),
        ("2h", NOW_MS - 7_200_000),
        ("500ms", NOW_MS - 500),
        ("PT1H30M", NOW_MS - 5_400_000),
        ("999999w", 0),
    ],
)
def test_time_is_looked_up(text, wanted_ms):
    consumer = Consumer()
    position = record_position(text)
    assert position.time(NOW_MS) == wanted_ms
    assert position.offsets(consumer, list(ENDS), ENDS, NOW_MS) == {TP: 5, OTHER: 7}
    assert consumer.asked == {wanted_ms}


@pytest.mark.parametrize(
    "text", ["", "noon", "-15m", "1.5h", "2023-13-01", "1960-01-01T00:00:00Z", "PT", "9" * 19, "@", "@-1"]
)
def test_other_text_is_refused_with_the_forms(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not a position: give an offset"):
        record_position(text)
