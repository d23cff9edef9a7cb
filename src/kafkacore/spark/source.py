"""The data source ``format("kafkacore")``, from which Spark creates readers and writers.

Spark creates these objects in short-lived processes and pickles them for the workers, so a pickled object
must not hold a connection.

When Spark looks up any format, it imports this module. So the module imports only PySpark's base class at the
top, and the methods import the rest. An import error then affects only jobs that use this format.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kafkacore.spark.reader.batch_reader import KafkaBatchReader
    from kafkacore.spark.reader.stream_reader import KafkaStreamReader
    from kafkacore.spark.sink.writers import KafkaBatchWriter, KafkaStreamWriter


class KafkaCoreDataSource(DataSource):
    """Data source for Apache Kafka with the options and columns of Spark's built-in ``kafka`` source."""

    @classmethod
    def name(cls) -> str:
        return "kafkacore"

    def schema(self) -> StructType | str:
        from kafkacore.spark.typed.formats import default_schema

        return default_schema(self.options)

    def reader(self, schema: StructType) -> KafkaBatchReader:
        _need_new_enough_pyspark()
        from kafkacore.spark.reader.batch_reader import KafkaBatchReader
        from kafkacore.spark.reader.options import parse_options
        from kafkacore.spark.typed.formats import plan_output

        return KafkaBatchReader(
            parse_options(self.options, streaming=False), plan_output(schema, self.options)
        )

    def streamReader(self, schema: StructType) -> KafkaStreamReader:  # noqa: N802 - Spark's name
        _need_new_enough_pyspark()
        from kafkacore.spark.reader.options import parse_options
        from kafkacore.spark.reader.stream_reader import KafkaStreamReader
        from kafkacore.spark.typed.formats import plan_output

        return KafkaStreamReader(
            parse_options(self.options, streaming=True), plan_output(schema, self.options)
        )

    def writer(self, schema: StructType, overwrite: bool) -> KafkaBatchWriter:
        _need_new_enough_pyspark()
        from kafkacore.spark.sink.writers import batch_writer

        return batch_writer(schema, self.options, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> KafkaStreamWriter:  # noqa: N802 - Spark's name
        _need_new_enough_pyspark()
        from kafkacore.spark.sink.writers import stream_writer

        # In output mode "complete" Spark sets overwrite. Like the built-in sink, this sink appends anyway.
        return stream_writer(schema, self.options)


def _need_new_enough_pyspark() -> None:
    """Raise ImportError if PySpark is older than 4.2, and therefore lacks a module that 4.2 added."""
    if importlib.util.find_spec("pyspark.sql.streaming.datasource") is None:
        import pyspark

        raise ImportError(
            f'format("kafkacore") needs PySpark 4.2 or newer, and this is {pyspark.__version__}. '
            "Run pip install 'pyspark>=4.2'"
        )
