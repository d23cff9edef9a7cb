"""``spark.read.format("kafkacore-log")``: what Spark calls first. Options and a schema in, a reader out.

Spark imports this module to find the format, for every job of whatever source: it imports nothing but
PySpark's own classes before a method is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kafkacore.spark.log_files.reader import LogReader


class KafkaCoreLogDataSource(DataSource):
    """Kafka's log segment files, with the columns of ``kafkacore``. No broker is needed."""

    @classmethod
    def name(cls) -> str:
        return "kafkacore-log"

    def schema(self) -> StructType | str:
        from kafkacore.spark.typed.formats import default_schema

        return default_schema(self.options)

    def reader(self, schema: StructType) -> LogReader:
        from kafkacore.spark.log_files.columns import plan_columns
        from kafkacore.spark.log_files.options import parse_log_options
        from kafkacore.spark.log_files.reader import LogReader

        options = parse_log_options(self.options)
        return LogReader(options, plan_columns(schema, self.options, options.corrupt_column))
