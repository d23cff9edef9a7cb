"""A whole job: a Kafka topic in; Parquet, a Delta table, another topic or the screen out.

``config`` says what, ``job`` runs it on a Spark session, ``sinks`` are where it goes, ``aggregate`` is a
table beside it, ``file`` reads a job from TOML. ``kafkacore pipeline`` and the demo fill in a config. Does
not know: command lines, progress bars, the embedded broker.
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
