"""Offset ranges that match a query's conditions, and the conditions that Spark must still evaluate."""

from datetime import UTC, datetime

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from kafkacore.spark.columns.schema import SPARK_TYPES
from kafkacore.spark.reader.filters import narrowed_by
from kafkacore.spark.reader.offsets import OffsetRange

COLUMNS = {column: column for column in SPARK_TYPES}
RANGES = [OffsetRange(topic, number, 100, 200) for topic in ("a1", "a2", "b1") for number in range(3)]
NOT_ASKED = None


def left(*filters, columns=COLUMNS, at_times=NOT_ASKED):
    narrowing, remaining = narrowed_by(filters, columns)
    return narrowing.of(RANGES, at_times), remaining


@pytest.mark.parametrize(
    ("condition", "topics"),
    [
        (EqualTo(("topic",), "a1"), {"a1"}),
        (EqualNullSafe(("topic",), "a1"), {"a1"}),
        (In(("topic",), ["a1", "b1", "c"]), {"a1", "b1"}),
        (Not(EqualTo(("topic",), "a1")), {"a2", "b1"}),
        (Not(In(("topic",), ["a1", "b1"])), {"a2"}),
        (StringStartsWith(("topic",), "a"), {"a1", "a2"}),
        (StringEndsWith(("topic",), "1"), {"a1", "b1"}),
        (StringContains(("topic",), "2"), {"a2"}),
        (GreaterThan(("topic",), "a1"), {"a2", "b1"}),
        (LessThanOrEqual(("topic",), "a2"), {"a1", "a2"}),
        (IsNotNull(("topic",)), {"a1", "a2", "b1"}),
        (IsNull(("topic",)), set()),
    ],
)
def test_topic_is_decided_exactly(condition, topics):
    ranges, remaining = left(condition)
    assert {one.topic for one in ranges} == topics
    assert len(ranges) == 3 * len(topics)
    assert remaining == []


@pytest.mark.parametrize(
    ("condition", "numbers"),
    [
        (EqualTo(("partition",), 1), {1}),
        (In(("partition",), [0, 2, 9]), {0, 2}),
        (Not(EqualTo(("partition",), 1)), {0, 2}),
        (GreaterThan(("partition",), 1), {2}),
        (GreaterThanOrEqual(("partition",), 1), {1, 2}),
        (LessThan(("partition",), 1), {0}),
        (Not(IsNull(("partition",))), {0, 1, 2}),
    ],
)
def test_partition_is_decided_exactly(condition, numbers):
    ranges, remaining = left(condition)
    assert {one.partition for one in ranges} == numbers
    assert remaining == []


@pytest.mark.parametrize(
    ("condition", "first", "end"),
    [
        (EqualTo(("offset",), 150), 150, 151),
        (EqualNullSafe(("offset",), 199), 199, 200),
        (GreaterThan(("offset",), 150), 151, 200),
        (GreaterThanOrEqual(("offset",), 150), 150, 200),
        (GreaterThanOrEqual(("offset",), 3), 100, 200),
        (LessThan(("offset",), 150), 100, 150),
        (LessThanOrEqual(("offset",), 150), 100, 151),
        (In(("offset",), [150, 152, 151]), 150, 153),
        (IsNotNull(("offset",)), 100, 200),
    ],
)
def test_offset_becomes_the_bounds_of_every_range(condition, first, end):
    ranges, remaining = left(condition)
    assert {(one.start, one.end) for one in ranges} == {(first, end)}
    assert len(ranges) == len(RANGES)
    assert remaining == []


def test_a_list_of_offsets_with_gaps_is_bounded_and_still_evaluated():
    condition = In(("offset",), [150, 120, 7])
    ranges, remaining = left(condition)
    assert {(one.start, one.end) for one in ranges} == {(100, 151)}
    assert remaining == [condition]


@pytest.mark.parametrize(
    "filters",
    [
        [GreaterThan(("offset",), 150), LessThan(("offset",), 140)],
        [EqualTo(("offset",), 500)],
        [LessThan(("offset",), -1)],
        [IsNull(("offset",))],
        [IsNull(("timestamp",))],
        [EqualTo(("topic",), "a1"), EqualTo(("topic",), "a2")],
        [EqualTo(("partition",), 1), EqualTo(("partition",), 2)],
    ],
)
def test_conditions_that_cannot_hold_leave_nothing_to_read(filters):
    ranges, remaining = left(*filters)
    assert ranges == []
    assert remaining == []


@pytest.mark.parametrize("kind", [EqualTo, GreaterThan, GreaterThanOrEqual])
def test_time_is_looked_up_for_the_start_and_still_evaluated(kind):
    asked = {}

    def at_times(times):
        asked.update(times)
        return {tp: 130 + tp.partition for tp in times}

    condition = kind(("timestamp",), datetime(2026, 1, 1, 0, 0, 0, 1500, tzinfo=UTC))
    ranges, remaining = left(condition, EqualTo(("topic",), "a2"), at_times=at_times)
    assert [(one.partition, one.start, one.end) for one in ranges] == [
        (0, 130, 200),
        (1, 131, 200),
        (2, 132, 200),
    ]
    # The look-up must not be later than the condition's time, which has microseconds.
    assert {tp.topic for tp in asked} == {"a2"}
    assert set(asked.values()) == {1_767_225_600_000}
    assert remaining == [condition]


def test_the_latest_of_several_times_is_looked_up():
    early, late = (datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2))
    narrowing, _ = narrowed_by(
        [GreaterThan(("timestamp",), late), GreaterThan(("timestamp",), early)], COLUMNS
    )
    assert narrowing.from_ms == int(late.timestamp() * 1000) - 1


@pytest.mark.parametrize(
    "condition",
    [
        # Records after the first one with that timestamp may have earlier timestamps.
        LessThan(("timestamp",), datetime(2026, 1, 1, tzinfo=UTC)),
        LessThanOrEqual(("timestamp",), datetime(2026, 1, 1, tzinfo=UTC)),
        Not(EqualTo(("timestamp",), datetime(2026, 1, 1, tzinfo=UTC))),
        # Kafka uses negative timestamps for special offsets.
        GreaterThan(("timestamp",), datetime(1969, 1, 1, tzinfo=UTC)),
        EqualTo(("value",), b"v"),
        IsNotNull(("key",)),
        EqualTo(("headers", "key"), "k"),
        EqualTo(("timestampType",), 0),
        Not(EqualTo(("offset",), 150)),
        EqualTo(("partition",), None),
        In(("topic",), ["a1", None]),
        EqualTo(("offset",), True),
    ],
)
def test_what_cannot_be_decided_by_a_range_is_left_to_spark(condition):
    ranges, remaining = left(condition)
    assert ranges == RANGES
    assert remaining == [condition]


def test_a_values_field_called_as_a_column_of_kafkas_is_not_one():
    columns = {"_partition": "partition"}
    field = EqualTo(("partition",), 1)
    ranges, remaining = left(field, EqualTo(("_partition",), 2), columns=columns)
    assert {one.partition for one in ranges} == {2}
    assert remaining == [field]
