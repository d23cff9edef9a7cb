"""The reader of ``spark.readStream``: it plans the offsets and the tasks of each micro-batch.

For the whole life of the stream, one Python process on the driver runs the planning calls and keeps a
connection. Workers call ``read`` on a pickled copy without a connection. The reader needs PySpark 4.2 or
newer.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import KafkaError
from kafkacore.spark.columns.output import OutputPlan
from kafkacore.spark.reader.offsets import JsonOffsets, Offsets, backlog, from_json, limit_to, to_json
from kafkacore.spark.reader.options import SourceOptions, names_of
from kafkacore.spark.reader.planner import OffsetPlanner
from kafkacore.spark.reader.range_reader import KafkaPartition, RangeReader
from kafkacore.structs import TopicPartition


class AvailableNowError(KafkaError):
    """The topic lost or gained data that a query with Trigger.AvailableNow depends on."""


class KafkaStreamReader(RangeReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reader of micro-batches that continue from a checkpoint."""

    def __init__(self, options: SourceOptions, plan: OutputPlan) -> None:
        super().__init__(options, plan)
        self._clock = SYSTEM_CLOCK
        self._planner: OffsetPlanner | None = None
        self._initial: JsonOffsets | None = None
        self._latest: Offsets | None = None
        self._is_available_now = False
        self._available_now: Offsets | None = None
        self._triggered_ms: float | None = None

    def __getstate__(self) -> dict[str, object]:
        return {"_options": self._options, "_output_plan": self._output_plan}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        self.__init__(state["_options"], state["_output_plan"])  # type: ignore[misc]  # reset all other state

    def _plan(self) -> OffsetPlanner:
        if self._planner is None:
            self._planner = OffsetPlanner(self._options, self._clock)
        return self._planner

    # ---- Offsets -----------------------------------------------------------------------------------------

    def initialOffset(self) -> JsonOffsets:  # noqa: N802 - Spark's name
        """Return the offsets at which a query without a checkpoint starts.

        Spark calls this twice and must get the same offsets, so they are cached.
        """
        if self._initial is None:
            self._initial = to_json(self._plan().starting())
        return self._initial

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Read only up to the offsets that the first :meth:`latestOffset` finds."""
        self._is_available_now = True

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the read limit of a micro-batch: a maximum, a minimum, or none.

        Python has no composite read limit, so a maximum takes precedence over a minimum. Spark passes the
        returned limit to :meth:`latestOffset`, which reads the actual numbers from the options.
        """
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: JsonOffsets, limit: ReadLimit) -> JsonOffsets:  # noqa: N802
        """Return the end offsets of the next micro-batch, or ``start`` to wait for more records."""
        begin = from_json(start)
        latest = self._latest = self._find_latest(begin)
        if not latest:
            # Without any partition there is no batch. As in Spark's own source, this is not data loss.
            return start
        if isinstance(limit, ReadAllAvailable):
            return to_json(latest)
        if self._too_few(begin, latest):
            return start
        if self._options.max_offsets_per_trigger is None:
            return to_json(latest)
        first = self._plan().earliest_of_new(latest.keys() - begin.keys())
        return to_json(limit_to({**begin, **first}, latest, self._options.max_offsets_per_trigger))

    def _find_latest(self, known: Offsets) -> Offsets:
        if self._available_now is not None:
            return self._available_now
        latest = self._plan().latest(known)
        if self._is_available_now:
            self._available_now = latest
        return latest

    def _too_few(self, begin: Offsets, latest: Offsets) -> bool:
        """Return whether to wait for ``minOffsetsPerTrigger``.

        A batch waits at most ``maxTriggerDelay`` after the previous batch. As in Spark's own source, the
        first batch of a query does not wait, and a query with AvailableNow ends instead of waiting.
        """
        least = self._options.min_offsets_per_trigger
        if least is None:
            return False
        now_ms = self._clock.monotonic_ms()
        last_ms = self._triggered_ms
        if (
            last_ms is not None
            and now_ms - last_ms < self._options.max_trigger_delay_ms
            and backlog(begin, latest) < least
        ):
            return True
        self._triggered_ms = now_ms
        return False

    def reportLatestOffset(self) -> JsonOffsets | None:  # noqa: N802 - Spark's name
        """Return the latest offsets that the last :meth:`latestOffset` found."""
        return to_json(self._latest) if self._latest else None

    # ---- Batches -----------------------------------------------------------------------------------------

    def partitions(self, start: JsonOffsets, end: JsonOffsets) -> list[KafkaPartition]:
        """Return the tasks of a micro-batch.

        Raises
        ------
        DataLossError
            Records were deleted before they were read, and ``failOnDataLoss`` is true.
        AvailableNowError
            The partitions or offsets that a query with AvailableNow found at its start have changed.
        """
        begin, until = from_json(start), from_json(end)
        if begin == until:
            return []
        if self._available_now is not None:
            self._check_available_now(until)
        return self._tasks(self._plan().ranges(begin, until))

    def _check_available_now(self, until: Offsets) -> None:
        """Check, like Spark's own source, that no partition or offset was lost since the query started."""
        at_start = self._available_now
        assert at_start is not None
        _refuse(
            "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_END_OFFSET_AND_PREFETCHED",
            "partitions were added or deleted",
            until.keys() ^ at_start.keys(),
        )
        _refuse(
            "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_PREFETCHED",
            "the batch ends after the offsets found at that time",
            {tp for tp, offset in until.items() if offset > at_start[tp]},
        )
        latest = self._plan().latest(until)
        _refuse(
            "LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW",
            "partitions were deleted",
            until.keys() - latest.keys(),
        )
        _refuse(
            "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_LATEST_WITH_TRIGGER_AVAILABLENOW",
            "the log ends before the end of the batch",
            {tp for tp, offset in until.items() if offset > latest[tp]},
        )

    def commit(self, end: JsonOffsets) -> None:
        """Do nothing, because Spark's checkpoint stores the position."""

    def stop(self) -> None:
        """Close the connection. Spark kills the process instead of calling this method."""
        if self._planner is not None:
            self._planner.close()
            self._planner = None


def _refuse(condition: str, what: str, partitions: Set[TopicPartition]) -> None:
    if partitions:
        raise AvailableNowError(
            f"[{condition}] since the query with Trigger.AvailableNow started, {what}: "
            f"{names_of(sorted(partitions))}; restart the query"
        )
