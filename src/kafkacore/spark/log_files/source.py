"""The data source ``format("kafkacore-log")``, from which Spark creates readers.

When Spark looks up any format, it imports this module. So the module imports only PySpark's base class at the
top, and the methods import the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kafkacore.spark.log_files.reader import LogReader


class KafkaCoreLogDataSource(DataSource):
    """Reads Kafka's log segment files without a broker, with the columns of the format ``kafkacore``."""

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
