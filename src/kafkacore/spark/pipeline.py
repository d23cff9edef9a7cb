"""A whole job: a Kafka topic in, Parquet out, exactly once, with an optional aggregate beside it.

:class:`PipelineConfig` says what; :func:`run_pipeline` runs it on a Spark session. The demo is a call of
this on a known topic. Does not know: command lines, progress bars, the embedded broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.errors import KafkaConfigurationError, KafkaError
from kafkacore.spark.options import parse_options
from kafkacore.spark.schema import all_columns, ddl
from kafkacore.spark.session import in_time

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

#: The trigger that reads what is there, in as many batches as it takes, and ends.
AVAILABLE_NOW = "available-now"
#: Columns of the source that may be kept beside the parsed ones.
KAFKA_COLUMNS = all_columns(include_headers=False)
#: How long to wait for a query between looks at its progress, in seconds.
LOOK_S = 1


class PipelineError(KafkaError):
    """The Spark job failed; the message is its cause in one sentence, ``__cause__`` the whole story."""


class SinkError(PipelineError):
    """What the sink says that it holds cannot be read: a file of it is gone or damaged."""


@dataclass(frozen=True)
class Aggregate:
    """A table computed from the whole sink after the stream has ended.

    Parameters
    ----------
    group_by:
        Columns to group by; the result is ordered by them.
    columns:
        Name of each result column and its SQL expression, such as ``("flights", "count(*)")``.
    path:
        Folder of the Parquet that is written, replacing what was there.
    """

    group_by: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    path: Path


@dataclass(frozen=True)
class PipelineConfig:
    """What to read, how to parse it, and where it goes.

    Parameters
    ----------
    bootstrap_servers:
        ``host:port[,host:port…]``.
    topic:
        Topic, or comma-separated topics.
    path:
        Folder of the Parquet sink.
    checkpoint:
        Folder of the checkpoint: the job goes on from there, and a second run adds nothing.
    value_format:
        "json" parses the value by ``schema``; "raw" keeps the Kafka columns as they are.
    schema:
        Spark DDL of the JSON, such as ``"id BIGINT, name STRING"``.
    derive:
        Further columns: name and SQL expression, applied in order; a name that exists is replaced.
    partition_by:
        Columns that become folders of the sink.
    keep:
        Kafka columns to keep beside the parsed ones (see :data:`KAFKA_COLUMNS`).
    trigger:
        "available-now", or an interval such as "10 seconds".
    options:
        Further options of the source, such as ``maxOffsetsPerTrigger`` or ``kafka.security.protocol``.
    """

    bootstrap_servers: str
    topic: str
    path: Path
    checkpoint: Path
    value_format: Literal["json", "raw"] = "json"
    schema: str | None = None
    derive: tuple[tuple[str, str], ...] = ()
    partition_by: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    trigger: str = AVAILABLE_NOW
    starting_offsets: str = "earliest"
    options: Mapping[str, str] = field(default_factory=dict)
    aggregate: Aggregate | None = None

    def __post_init__(self) -> None:
        if self.value_format == "json" and not self.schema:
            raise KafkaConfigurationError(
                'format json needs a schema in Spark\'s DDL, such as "id BIGINT, name STRING"'
            )
        if self.value_format == "raw" and self.schema:
            raise KafkaConfigurationError("format raw keeps the bytes as they are: leave out the schema")
        if unknown := [name for name in self.keep if name not in KAFKA_COLUMNS]:
            raise KafkaConfigurationError(
                f"Kafka has no column {', '.join(unknown)} to keep: choose among {', '.join(KAFKA_COLUMNS)}"
            )
        if self.aggregate is not None and self.trigger != AVAILABLE_NOW:
            raise KafkaConfigurationError("an aggregate is computed when the stream ends: use available-now")
        parse_options(self.source_options(), streaming=True)  # says now what Spark would say after its start

    def source_options(self) -> dict[str, str]:
        """What the source is given."""
        return {
            "kafka.bootstrap.servers": self.bootstrap_servers,
            "subscribe": self.topic,
            "startingOffsets": self.starting_offsets,
            **self.options,
        }


@dataclass(frozen=True)
class PipelineResult:
    """What a run did. ``rows`` counts this run's records, not what the sink already held."""

    rows: int
    batches: int
    stream_seconds: float
    aggregate_seconds: float


def run_pipeline(
    spark: SparkSession,
    config: PipelineConfig,
    on_progress: Callable[[int], None] = lambda rows: None,
    clock: Clock = SYSTEM_CLOCK,
) -> PipelineResult:
    """Run the job until its trigger ends it (available-now), or until it fails or is interrupted.

    Parameters
    ----------
    spark:
        The session to run on; it stays open.
    config:
        The job.
    on_progress:
        Called with the number of records read so far.

    Raises
    ------
    KafkaConfigurationError
        Spark does not understand the schema or an expression, or they do not fit together.
    PipelineError
        The query failed. What had been written stays, and running again goes on from the checkpoint.
    SinkError
        The stream has ended, but what it has written cannot be read for the aggregate.
    """
    started_ms = clock.monotonic_ms()
    with _spark_errors(KafkaConfigurationError):
        query = _start(spark, config)
    rows: dict[int, int] = {}
    ended = False
    try:
        with _spark_errors(PipelineError):
            while not ended:
                ended = bool(query.awaitTermination(LOOK_S))
                on_progress(_count(query, rows))
    finally:
        if not ended:
            in_time(query.stop)
    streamed_ms = clock.monotonic_ms()
    if config.aggregate is not None:
        write_aggregate(spark, config.path, config.aggregate)
    return PipelineResult(
        rows=sum(rows.values()),
        batches=len(rows),
        stream_seconds=(streamed_ms - started_ms) / 1000,
        aggregate_seconds=(clock.monotonic_ms() - streamed_ms) / 1000,
    )


def transformed(frame: DataFrame, config: PipelineConfig) -> DataFrame:
    """The source's frame with the value parsed and the derived columns added."""
    from pyspark.sql import functions as sql

    if config.value_format == "json":
        assert config.schema is not None, "checked by PipelineConfig"
        parsed = sql.from_json(frame["value"].cast("string"), config.schema, {"mode": "FAILFAST"})
        frame = frame.select(parsed.alias("json"), *config.keep).select("json.*", *config.keep)
    for name, expression in config.derive:
        frame = frame.withColumn(name, sql.expr(expression))
    return frame


def write_aggregate(spark: SparkSession, sink: Path, aggregate: Aggregate) -> None:
    """Compute ``aggregate`` from everything that the sink holds, and replace the former one."""
    from pyspark.sql import functions as sql

    with _spark_errors(SinkError):
        held = spark.read.parquet(str(sink))
    with _spark_errors(KafkaConfigurationError):
        columns = [sql.expr(expression).alias(name) for name, expression in aggregate.columns]
        table = held.groupBy(*aggregate.group_by).agg(*columns).orderBy(*aggregate.group_by).coalesce(1)
    with _spark_errors(SinkError):
        table.write.mode("overwrite").parquet(str(aggregate.path))


def count_rows(spark: SparkSession, sink: Path) -> int:
    """How many rows the sink holds, by what its own list of files says.

    Raises
    ------
    SinkError
        A file that is on the list is not there or is damaged.
    """
    with _spark_errors(SinkError):
        return spark.read.parquet(str(sink)).count()


def _start(spark: SparkSession, config: PipelineConfig) -> StreamingQuery:
    reader = spark.readStream.format("kafkacore").options(**config.source_options())
    if config.value_format == "json":
        # Only the columns that are used cross from Python into the JVM.
        kept = [name for name in KAFKA_COLUMNS if name in config.keep and name != "value"]
        reader = reader.schema(ddl(["value", *kept]))
    frame = transformed(reader.load(), config)
    missing = [name for name in config.partition_by if name not in frame.columns]
    if missing:
        raise KafkaConfigurationError(
            f"cannot partition by {', '.join(missing)}: the columns are {', '.join(frame.columns)}"
        )
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(config.checkpoint))
    if config.partition_by:
        writer = writer.partitionBy(*config.partition_by)
    if config.trigger == AVAILABLE_NOW:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=config.trigger)
    return writer.start(str(config.path))


def _count(query: StreamingQuery, rows: dict[int, int]) -> int:
    """Spark keeps the last hundred progress reports; remembered by batch, so that none is counted twice."""
    for progress in query.recentProgress:
        if progress["numInputRows"]:
            rows[progress["batchId"]] = progress["numInputRows"]
    return sum(rows.values())


@contextmanager
def _spark_errors(kind: type[KafkaError]) -> Iterator[None]:
    """Turn what PySpark and its bridge to the JVM raise into ``kind``, with one sentence."""
    from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]  # py4j has no types
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JNetworkError, ConnectionError) as error:
        raise PipelineError("Spark's JVM has ended; what it said last is in Spark's log") from error
    except (PySparkException, Py4JError) as error:
        raise kind(last_cause(str(error))) from error


def last_cause(text: str) -> str:
    """The line of a Spark error that says what was wrong: the innermost Python exception, else the first
    line.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if line.startswith("kafkacore.") and ":" in line]
    if named:
        return named[-1].split(":", 1)[1].strip()
    malformed = [line for line in lines if "MALFORMED_RECORD_IN_PARSING" in line]
    return (malformed or lines or ["the query failed without a message"])[0]
