"""``start`` and ``end`` of ``read_topic`` to ranges of offsets."""

from datetime import UTC, datetime, timedelta, timezone

import numpy
import pytest

from kafkacore.errors import KafkaConfigurationError, UnknownTopicOrPartitionError
from kafkacore.frames.positions import check_positions, ranges_to_read
from kafkacore.structs import OffsetAndTimestamp, TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Log:
    """Partition 0 has the offsets 10 to 19, with the timestamps 100 to 109. Partition 1 is empty."""

    def beginning_offsets(self, partitions):
        return {tp: 10 if tp == A0 else 5 for tp in partitions}

    def end_offsets(self, partitions):
        return {tp: 20 if tp == A0 else 5 for tp in partitions}

    def offsets_for_times(self, times):
        found = {tp: max(at - 90, 10) for tp, at in times.items()}
        return {
            tp: OffsetAndTimestamp(offset, offset + 90) if tp == A0 and offset < 20 else None
            for tp, offset in found.items()
        }


def at(ms):
    return EPOCH + timedelta(milliseconds=ms)


@pytest.mark.parametrize(
    ("start", "end", "want"),
    [
        ("earliest", "latest", (10, 20)),
        (12, 15, (12, 15)),
        (numpy.int64(12), 15, (12, 15)),
        (0, 99, (10, 20)),
        ({0: 12}, {0: 15}, (12, 15)),
        ({0: 12}, "latest", (12, 20)),
        ({1: 5}, {1: 5}, (10, 20)),
        ({0: "latest"}, "latest", None),
        ("latest", "latest", None),
        (15, 12, None),
        (15, "earliest", None),
        (30, "latest", None),
        (at(102), at(105), (12, 15)),
        (at(102) - timedelta(microseconds=1), at(105) - timedelta(microseconds=999), (12, 15)),
        (at(102).astimezone(timezone(timedelta(hours=5))), "latest", (12, 20)),
        (at(-5), at(10**9), (10, 20)),
        (at(10**9), "latest", None),
    ],
)
def test_range_is_within_the_log(start, end, want):
    check_positions("start", start)
    check_positions("end", end)
    ranges = ranges_to_read(Log(), [A0, A1], start, end)
    assert ranges == ({} if want is None else {A0: want})


def test_mapping_with_a_missing_partition_is_refused():
    with pytest.raises(UnknownTopicOrPartitionError, match="partition a-7 does not exist"):
        ranges_to_read(Log(), [A0, A1], {7: 0}, "latest")


@pytest.mark.parametrize("position", ["first", -1, 1.5, True, None, {0: "end"}, {0: -1}])
def test_other_position_is_refused(position):
    with pytest.raises(KafkaConfigurationError, match="start must be 'earliest', 'latest', an offset"):
        check_positions("start", position)


def test_time_without_time_zone_is_refused():
    with pytest.raises(KafkaConfigurationError, match=r"in end has no time zone: set one"):
        check_positions("end", {0: datetime(2026, 1, 1)})
