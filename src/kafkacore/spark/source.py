"""``spark.read`` and ``spark.readStream`` ``.format("kafkacore")``: Spark's calls in, plans and readers out.

Spark makes these objects in short-lived processes of its own and pickles them to the workers, so none holds
a connection when it travels. Needs PySpark 4.2 or newer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.offsets import OffsetRange, Offsets, backlog, from_json, limit_to, split, to_json
from kafkacore.spark.options import SourceOptions, parse_options
from kafkacore.spark.planner import OffsetPlanner
from kafkacore.spark.schema import Column, all_columns, chosen_columns, ddl

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

#: Spark asks for the latest offset about every 11 ms; the broker is asked this often at most.
MIN_ASK_INTERVAL_MS = 50.0


class KafkaPartition(InputPartition):
    """One task's work: a range of one topic partition."""

    def __init__(self, offsets: OffsetRange) -> None:
        super().__init__(offsets)
        self.offsets = offsets


class KafkaCoreDataSource(DataSource):
    """Apache Kafka for Spark without a JAR. Options and columns are the built-in ``kafka`` source's."""

    @classmethod
    def name(cls) -> str:
        return "kafkacore"

    def schema(self) -> str:
        return ddl(all_columns(str(self.options.get("includeHeaders", "false")).lower() == "true"))

    def reader(self, schema: StructType) -> KafkaBatchReader:
        return KafkaBatchReader(parse_options(self.options, streaming=False), chosen_columns(schema))

    def streamReader(self, schema: StructType) -> KafkaStreamReader:  # noqa: N802 - Spark's name
        return KafkaStreamReader(parse_options(self.options, streaming=True), chosen_columns(schema))


class _RangeReader:
    """What both readers do in a worker."""

    def __init__(self, options: SourceOptions, columns: tuple[Column, ...]) -> None:
        self._options = options
        self._columns = columns

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark replaces an empty plan by one partition of nothing.
        if not isinstance(partition, KafkaPartition):
            return iter(())
        from kafkacore.spark.fetch import read_range

        return read_range(self._options, partition.offsets, self._columns)

    def _tasks(self, ranges: list[OffsetRange]) -> list[KafkaPartition]:
        pieces = split(ranges, self._options.min_partitions, self._options.max_records_per_partition)
        return [KafkaPartition(piece) for piece in pieces]


class KafkaBatchReader(_RangeReader, DataSourceReader):
    """From the starting offsets to the ending offsets, once."""

    def partitions(self) -> list[KafkaPartition]:
        planner = OffsetPlanner(self._options)
        try:
            start, end = planner.starting(), planner.ending()
            for tp in sorted(start):
                if start[tp] > end.get(tp, 0):
                    raise KafkaConfigurationError(
                        f"{tp.topic}-{tp.partition}: startingOffsets {start[tp]} lies after endingOffsets "
                        f"{end.get(tp, 0)}"
                    )
            return self._tasks(planner.ranges(start, end))
        finally:
            planner.close()


class KafkaStreamReader(_RangeReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Micro-batches from a checkpointed position.

    The planning calls run in one long-lived process beside the driver, which keeps the connection; ``read``
    runs in the workers on a pickled copy, which has none.
    """

    def __init__(self, options: SourceOptions, columns: tuple[Column, ...]) -> None:
        super().__init__(options, columns)
        self._clock = SYSTEM_CLOCK
        self._planner: OffsetPlanner | None = None
        self._latest: Offsets = {}
        self._asked_ms: float | None = None
        self._available_now: Offsets | None = None
        self._batch_due_ms: float | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_columns": self._columns}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__init__(state["_options"], state["_columns"])  # type: ignore[misc]  # a copy starts anew

    def _plan(self) -> OffsetPlanner:
        if self._planner is None:
            self._planner = OffsetPlanner(self._options, self._clock)
        return self._planner

    # ---- Offsets -----------------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, dict[str, int]]:  # noqa: N802 - Spark's name
        return to_json(self._plan().starting())

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._available_now = self._ask_latest()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, dict[str, int]]:  # noqa: N802
        begin = from_json(start)
        latest = self._available_now if self._available_now is not None else self._ask_latest()
        new = [tp for tp in latest if tp not in begin]
        if new:
            begin |= self._plan().earliest(new)
        if self._too_few(begin, latest):
            return start
        if isinstance(limit, ReadMaxRows):
            return to_json(limit_to(begin, latest, limit.max_rows))
        return to_json(latest)

    def _too_few(self, begin: Offsets, latest: Offsets) -> bool:
        """``minOffsetsPerTrigger``: wait for more, but no longer than ``maxTriggerDelay``. Not when
        draining.
        """
        least = self._options.min_offsets_per_trigger
        if least is None or self._available_now is not None:
            return False
        now_ms = self._clock.monotonic_ms()
        if self._batch_due_ms is None:
            self._batch_due_ms = now_ms + self._options.max_trigger_delay_ms
        if backlog(begin, latest) < least and now_ms < self._batch_due_ms:
            return True
        self._batch_due_ms = now_ms + self._options.max_trigger_delay_ms
        return False

    def _ask_latest(self) -> Offsets:
        now_ms = self._clock.monotonic_ms()
        if self._asked_ms is None or now_ms - self._asked_ms >= MIN_ASK_INTERVAL_MS:
            plan = self._plan()
            self._latest = plan.latest(plan.partitions())
            self._asked_ms = self._clock.monotonic_ms()
        return self._latest

    def reportLatestOffset(self) -> dict[str, dict[str, int]]:  # noqa: N802 - Spark's name
        return to_json(self._ask_latest())

    # ---- Batches -----------------------------------------------------------------------------------------

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[KafkaPartition]:
        if start == end:
            return []
        return self._tasks(self._plan().ranges(from_json(start), from_json(end)))

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing to do: Spark's checkpoint holds the position, and the group's offsets are nobody's
        business.
        """

    def stop(self) -> None:
        """Spark kills the process without calling this; it is here for who drives the reader by hand."""
        if self._planner is not None:
            self._planner.close()
            self._planner = None
