"""Narrow the ranges of a batch read by the filters of the query.

Filters on topic and partition drop whole ranges. Filters on the offset cut ranges. ``timestamp >= t`` moves
the start of a range to the first record at or after ``t``. Spark must still evaluate this filter, because
older records may follow. For the same reason ``timestamp < t`` cannot cut a range. Spark evaluates all other
filters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
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

from kafkacore.decode.kafka_columns import Column
from kafkacore.spark.reader.offsets import OffsetRange, Offsets
from kafkacore.structs import INT64_MAX, TopicPartition

#: Exclusive upper bound of all offsets.
END_OF_OFFSETS = INT64_MAX

#: Function that takes a time in ms since the epoch for each partition. It returns, for each partition, the
#: first offset at or after that time.
AtTimes = Callable[[Mapping[TopicPartition, int]], Offsets]
#: Predicate on the topic or the partition of a row.
Holds = Callable[[Any], bool]

#: For each type of filter, the function that tests one value, which is never null.
_TESTS: dict[type[Filter], Callable[[Any, Any], bool]] = {
    EqualTo: lambda found, wanted: bool(found == wanted),
    EqualNullSafe: lambda found, wanted: bool(found == wanted),
    GreaterThan: lambda found, wanted: bool(found > wanted),
    GreaterThanOrEqual: lambda found, wanted: bool(found >= wanted),
    LessThan: lambda found, wanted: bool(found < wanted),
    LessThanOrEqual: lambda found, wanted: bool(found <= wanted),
    In: lambda found, wanted: found in wanted,
    StringStartsWith: lambda found, wanted: str(found).startswith(wanted),
    StringEndsWith: lambda found, wanted: str(found).endswith(wanted),
    StringContains: lambda found, wanted: wanted in found,
}


@dataclass(frozen=True)
class Narrowing:
    """Combined restrictions of all filters on a read.

    Parameters
    ----------
    conditions:
        Spark's filters on the topic and the partition.
    first, end:
        Range of offsets to read; ``end`` is exclusive.
    from_ms:
        Lowest timestamp to read, in ms since the epoch; ``None`` without a limit.
    is_empty:
        Whether no row can satisfy the filters.
    """

    conditions: tuple[tuple[Column, Filter], ...] = ()
    first: int = 0
    end: int = END_OF_OFFSETS
    from_ms: int | None = None
    is_empty: bool = False

    def of(self, ranges: Iterable[OffsetRange], at_times: AtTimes) -> list[OffsetRange]:
        """Return the parts of ``ranges`` that have to be read.

        Parameters
        ----------
        ranges:
            The ranges without filters.
        at_times:
            Function that looks up offsets by time. It is called at most once, and only if there is a filter
            on the timestamp. For a partition without a record at or after the time, it returns the end of the
            log.
        """
        narrowed = [self._cut(one) for one in ranges if self._is_wanted(one)]
        left = [one for one in narrowed if one.size > 0]
        if self.from_ms is None or not left:
            return left
        begins = at_times({one.topic_partition: self.from_ms for one in left})
        late = [replace(one, start=max(one.start, begins[one.topic_partition])) for one in left]
        return [one for one in late if one.size > 0]

    def _is_wanted(self, one: OffsetRange) -> bool:
        values: dict[Column, object] = {"topic": one.topic, "partition": one.partition}
        return not self.is_empty and all(
            _holds(condition, values[column]) for column, condition in self.conditions
        )

    def _cut(self, one: OffsetRange) -> OffsetRange:
        return replace(one, start=max(one.start, self.first), end=min(one.end, self.end))


def narrowed_by(filters: Iterable[Filter], columns: Mapping[str, Column]) -> tuple[Narrowing, list[Filter]]:
    """Return the restrictions of ``filters``, and the filters that Spark must still evaluate for each row.

    Parameters
    ----------
    filters:
        Filters that are combined with AND.
    columns:
        Kafka's column for each column of the schema.
    """
    narrowing = Narrowing()
    remaining = []
    for condition in filters:
        column = _column_of(condition, columns)
        narrowing, is_done = _AND.get(column, _unchanged)(narrowing, condition)
        if not is_done:
            remaining.append(condition)
    return narrowing, remaining


def _column_of(condition: Filter, columns: Mapping[str, Column]) -> Column | None:
    inner = condition.child if isinstance(condition, Not) else condition
    path: tuple[str, ...] = getattr(inner, "attribute", ())
    return columns.get(path[0]) if len(path) == 1 else None


# ---- Adding a filter --------------------------------------------------------------------------------------
def _unchanged(narrowing: Narrowing, condition: Filter) -> tuple[Narrowing, bool]:
    return narrowing, False


def _and_constant(column: Column, narrowing: Narrowing, condition: Filter) -> tuple[Narrowing, bool]:
    """Add a filter on the topic or the partition, which are constant within a range."""
    inner = condition.child if isinstance(condition, Not) else condition
    kind = str if column == "topic" else int
    if not isinstance(inner, IsNull | IsNotNull):
        if type(inner) not in _TESTS:
            return narrowing, False
        values = inner.value if isinstance(inner, In) else [inner.value]  # type: ignore[attr-defined]
        # A comparison with null is null, and so is its negation.
        if not all(type(value) is kind for value in values):
            return narrowing, False
    return replace(narrowing, conditions=(*narrowing.conditions, (column, condition))), True


def _holds(condition: Filter, value: object) -> bool:
    if isinstance(condition, Not):
        return not _holds(condition.child, value)
    if isinstance(condition, IsNull | IsNotNull):
        return isinstance(condition, IsNotNull)
    return _TESTS[type(condition)](value, condition.value)  # type: ignore[attr-defined]


def _and_offset(narrowing: Narrowing, condition: Filter) -> tuple[Narrowing, bool]:
    if isinstance(condition, IsNull | IsNotNull):
        return _and_never_null(narrowing, condition)
    bounds = _offset_bounds(condition)
    if bounds is None:
        return narrowing, False
    first, end = bounds
    # A range replaces the filter In only if its list contains every offset from the minimum to the maximum.
    is_done = not isinstance(condition, In) or end - first <= len(set(condition.value))
    narrowed = replace(narrowing, first=max(narrowing.first, first), end=min(narrowing.end, end))
    return narrowed, is_done


def _offset_bounds(condition: Filter) -> tuple[int, int] | None:
    """Return the bounds of the offsets that satisfy the filter. The upper bound is exclusive."""
    value = getattr(condition, "value", None)
    if isinstance(condition, In) and value and all(type(one) is int for one in value):
        return min(value), max(value) + 1
    if type(value) is not int:
        return None
    match condition:
        case EqualTo() | EqualNullSafe():
            return value, value + 1
        case GreaterThan():
            return value + 1, END_OF_OFFSETS
        case GreaterThanOrEqual():
            return value, END_OF_OFFSETS
        case LessThan():
            return 0, value
        case LessThanOrEqual():
            return 0, value + 1
    return None


def _and_time(narrowing: Narrowing, condition: Filter) -> tuple[Narrowing, bool]:
    """Add a filter on the timestamp.

    Such a filter only moves the start of a range. After the first record at or after a time, records with
    earlier timestamps may follow.
    """
    if isinstance(condition, IsNull | IsNotNull):
        return _and_never_null(narrowing, condition)
    if not isinstance(condition, EqualTo | EqualNullSafe | GreaterThan | GreaterThanOrEqual | In):
        return narrowing, False
    values = condition.value if isinstance(condition, In) else [condition.value]
    if not values or not all(isinstance(value, datetime) and value.tzinfo for value in values):
        return narrowing, False
    from_ms = int(min(values).timestamp() * 1000) - 1
    # In Kafka's ListOffsets, negative timestamps stand for the earliest and the latest offset.
    if from_ms < 0:
        return narrowing, False
    least = from_ms if narrowing.from_ms is None else max(narrowing.from_ms, from_ms)
    return replace(narrowing, from_ms=least), False


def _and_never_null(narrowing: Narrowing, condition: Filter) -> tuple[Narrowing, bool]:
    return replace(narrowing, is_empty=narrowing.is_empty or isinstance(condition, IsNull)), True


_AND: dict[Column | None, Callable[[Narrowing, Filter], tuple[Narrowing, bool]]] = {
    "topic": partial(_and_constant, "topic"),
    "partition": partial(_and_constant, "partition"),
    "offset": _and_offset,
    "timestamp": _and_time,
}


class PushFilters:
    """Callable that a reader returns as its ``pushFilters``.

    While ``spark.sql.python.filterPushdown.enabled`` is off, which is the default, Spark rejects a read whose
    reader overrides ``pushFilters``. It recognizes an override by the method's ``__func__``. So this object
    has the ``__func__`` of the base class, and Spark calls it only if the setting is on.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, take: Callable[[list[Filter]], Iterable[Filter]]) -> None:
        self._take = take

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        return self._take(filters)
