"""Build the streaming DataFrame of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.columns.schema import SPARK_TYPES
from kafkacore.spark.pipeline.config import KAFKA_COLUMNS, PipelineConfig
from kafkacore.spark.pipeline.errors import spark_errors
from kafkacore.spark.typed.options import SCALAR_TYPES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def stream_frame(spark: SparkSession, config: PipelineConfig) -> DataFrame:
    """Return the DataFrame of the source with decoded values and the derived columns."""
    from pyspark.sql import functions as sql

    frame = _fields(spark, config) if config.structured else _kafka_columns(spark, config)
    for name, expression in config.derive:
        with spark_errors(KafkaConfigurationError, f"derived column {name}"):
            frame = frame.withColumn(name, sql.expr(expression))
    return frame


def _fields(spark: SparkSession, config: PipelineConfig) -> DataFrame:
    """Return the fields of the value, and the kept columns of Kafka under Kafka's names."""
    reader = spark.readStream.format("kafkacore").options(**config.source_options())
    fields = _parsed(config.schema) if config.schema else reader.load().schema
    if twice := [name for name in config.keep if name in fields.names]:
        raise KafkaConfigurationError(
            f"the value already has a field {', '.join(twice)}: do not keep the Kafka column of that name"
        )
    kept = {name: kind for name, kind in SPARK_TYPES.items() if name in config.keep}
    if "key" in kept:
        kept["key"] = SCALAR_TYPES.get(config.key_format, kept["key"])
    if kept:
        beside = _parsed(", ".join(f"_{name} {kind}" for name, kind in kept.items()))
        fields = type(beside)(fields.fields + beside.fields)
    return reader.schema(fields).load().withColumnsRenamed({f"_{name}": name for name in kept})


def _parsed(schema: str) -> StructType:
    from pyspark.sql.types import StructType

    with spark_errors(KafkaConfigurationError, "schema"):
        parsed = StructType.fromDDL(schema)
    if not isinstance(parsed, StructType):
        raise KafkaConfigurationError(f"{schema!r} is not a list of fields such as 'id BIGINT, name STRING'")
    return parsed


def _kafka_columns(spark: SparkSession, config: PipelineConfig) -> DataFrame:
    reader = spark.readStream.format("kafkacore").options(**config.source_options())
    frame = reader.load()
    if not config.keep:
        return frame
    # Pass a schema with only the needed columns, so that Spark sends no other columns from Python to the JVM.
    wanted = [name for name in KAFKA_COLUMNS if name == "value" or name in config.keep]
    fields = type(frame.schema)([frame.schema[name] for name in wanted])
    return reader.schema(fields).load()
