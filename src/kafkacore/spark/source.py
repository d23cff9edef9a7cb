"""``spark.read`` and ``spark.readStream`` ``.format("kafkacore")``: what Spark calls first.

Options and a schema in, readers out. Spark makes these objects in short-lived processes of its own and
pickles them to the workers, so none holds a connection when it travels.

Spark imports this module to find the format, for every job of whatever source. So it imports nothing but
PySpark's own classes: the rest comes when a method is called, and what is amiss is then said to who uses it.
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
    """Apache Kafka for Spark without a JAR. Options and columns are the built-in ``kafka`` source's."""

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

        # In output mode "complete" Spark says overwrite; the built-in sink appends then, and so does this.
        return stream_writer(schema, self.options)


def _need_new_enough_pyspark() -> None:
    """The module is the first thing that 4.2 has and 4.1 has not."""
    if importlib.util.find_spec("pyspark.sql.streaming.datasource") is None:
        import pyspark

        raise ImportError(
            f'format("kafkacore") needs PySpark 4.2 or newer, and this is {pyspark.__version__}: '
            "pip install 'pyspark>=4.2'"
        )
