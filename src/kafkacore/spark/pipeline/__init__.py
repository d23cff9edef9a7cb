"""Spark jobs that stream a Kafka topic to Parquet, a Delta table, another topic or the console.

``config`` describes a job, and ``file`` reads it from TOML. ``job`` runs it on a Spark session. ``sinks``
creates the writer, and ``aggregate`` computes an additional table. ``kafkacore pipeline`` and the demo use
this package.
"""

from kafkacore.spark.pipeline.aggregate import Aggregate, count_rows, write_aggregate
from kafkacore.spark.pipeline.config import (
    AVAILABLE_NOW,
    KAFKA_COLUMNS,
    VALUE_FORMATS,
    ConsoleSink,
    DeltaSink,
    KafkaSink,
    ParquetSink,
    PipelineConfig,
    Sink,
)
from kafkacore.spark.pipeline.errors import PipelineError, SinkError
from kafkacore.spark.pipeline.job import PipelineBatch, PipelineResult, run_pipeline

__all__ = [
    "AVAILABLE_NOW",
    "KAFKA_COLUMNS",
    "VALUE_FORMATS",
    "Aggregate",
    "ConsoleSink",
    "DeltaSink",
    "KafkaSink",
    "ParquetSink",
    "PipelineBatch",
    "PipelineConfig",
    "PipelineError",
    "PipelineResult",
    "Sink",
    "SinkError",
    "count_rows",
    "run_pipeline",
    "write_aggregate",
]
