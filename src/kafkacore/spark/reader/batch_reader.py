"""The reader of ``spark.read``."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql.datasource import DataSourceReader, Filter

from kafkacore.spark.columns.output import OutputPlan, kafka_columns
from kafkacore.spark.reader.filters import Narrowing, PushFilters, narrowed_by
from kafkacore.spark.reader.options import SourceOptions
from kafkacore.spark.reader.planner import OffsetPlanner
from kafkacore.spark.reader.range_reader import KafkaPartition, RangeReader


class KafkaBatchReader(RangeReader, DataSourceReader):
    """Reader of the records between the starting offsets and the ending offsets."""

    def __init__(self, options: SourceOptions, plan: OutputPlan) -> None:
        super().__init__(options, plan)
        self._narrowing = Narrowing()

    @property
    def pushFilters(self) -> PushFilters:  # noqa: N802 - Spark's name
        return PushFilters(self._take_filters)

    def _take_filters(self, filters: list[Filter]) -> Iterable[Filter]:
        self._narrowing, remaining = narrowed_by(filters, kafka_columns(self._output_plan))
        return remaining

    def partitions(self) -> list[KafkaPartition]:
        planner = OffsetPlanner(self._options)
        try:
            return self._tasks(self._narrowing.of(planner.batch_ranges(), planner.at_times))
        finally:
            planner.close()
