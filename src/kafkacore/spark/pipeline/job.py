"""Run a pipeline: start the query, report each batch, and stop when asked.

Spark cannot stop a query at the end of the current batch: a stop takes effect at once. So the job waits for
the next progress report and then stops the query. By that time Spark may have planned the next batch. Spark
writes the offsets of a batch before its first task starts, so the next run repeats that batch. On a slow
machine the stop may find a batch that has been written, but not reported yet. The sink then has one batch
more than the report counts, and the next run does not read it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.errors import KafkaConfigurationError
from kafkacore.spark.pipeline.aggregate import write_aggregate
from kafkacore.spark.pipeline.config import (
    AVAILABLE_NOW,
    ConsoleSink,
    DeltaSink,
    ParquetSink,
    PipelineConfig,
)
from kafkacore.spark.pipeline.errors import PipelineError, spark_errors
from kafkacore.spark.pipeline.frame import stream_frame
from kafkacore.spark.pipeline.sinks import stream_writer
from kafkacore.spark.progress import lag
from kafkacore.spark.session import in_time

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

#: Seconds between two checks of a query's progress.
CHECK_S = 0.5
#: Seconds between two checks while the query should stop. The interval is short, so that the query stops
#: before the next batch has done much work.
STOP_CHECK_S = 0.01


@dataclass(frozen=True)
class PipelineBatch:
    """Report of a micro-batch that had records.

    Parameters
    ----------
    number:
        Spark's number of the batch, which continues after a restart.
    rows:
        Number of records.
    duration_ms:
        Duration in ms, including planning and commit.
    behind:
        Number of offsets left to read when the batch ended; ``None`` if unknown.
    phases_ms:
        Duration of each phase of Spark, in ms.
    total_rows:
        Number of records of this run up to the end of this batch.
    """

    number: int
    rows: int
    duration_ms: int
    behind: int | None
    phases_ms: Mapping[str, int]
    total_rows: int

    @property
    def rows_per_second(self) -> float:
        return self.rows * 1000 / self.duration_ms if self.duration_ms else 0.0


@dataclass(frozen=True)
class PipelineResult:
    """Result of a run.

    Parameters
    ----------
    rows:
        Number of records of this run, without the records that were in the sink before. A stop on request
        may leave one more batch in the sink; see :mod:`kafkacore.spark.pipeline.job`.
    batches:
        Number of batches that had records.
    stream_seconds, aggregate_seconds:
        Duration of the stream and of the computation of the aggregate, in seconds.
    stopped:
        Whether the run was stopped on request before its trigger ended it.
    """

    rows: int
    batches: int
    stream_seconds: float
    aggregate_seconds: float
    stopped: bool = False


def run_pipeline(
    spark: SparkSession,
    config: PipelineConfig,
    on_progress: Callable[[int], None] = lambda rows: None,
    clock: Clock = SYSTEM_CLOCK,
    on_batch: Callable[[PipelineBatch], None] = lambda batch: None,
    stop_wanted: Callable[[], bool] = lambda: False,
) -> PipelineResult:
    """Run the job until its trigger ends it (available-now), or until it fails, is interrupted or stopped.

    Parameters
    ----------
    spark:
        The session to run on. It stays open.
    config:
        The job.
    on_progress:
        Function that is called with the number of records read so far, at each check of the progress.
    clock:
        Clock that measures durations.
    on_batch:
        Function that is called with each completed batch that had records.
    stop_wanted:
        Function that returns whether to stop. The job then completes the current batch and ends.

    Returns
    -------
    PipelineResult
        Number of records and batches, and durations.

    Raises
    ------
    KafkaConfigurationError
        Spark cannot parse or apply the schema or an expression.
    PipelineError
        The query failed. Records that were written stay, and the next run continues from the checkpoint.
    SinkError
        The stream has ended, but the sink cannot be read for the aggregate.
    """
    started_ms = clock.monotonic_ms()
    _check_session(spark, config)
    with spark_errors(KafkaConfigurationError):
        query = _start(spark, config)
    seen = _Batches(query, on_progress, on_batch)
    ended = stopped = False
    try:
        with spark_errors(PipelineError):
            while not ended and not stopped:
                ended = bool(query.awaitTermination(CHECK_S))  # type: ignore[arg-type]  # takes fractions
                seen.update()
                stopped = not ended and stop_wanted()
            if stopped:
                _finish_batch(query, seen.last)
    finally:
        if not ended:
            in_time(query.stop)
    if stopped:
        # The next batch may have completed before the stop took effect.
        with spark_errors(PipelineError):
            seen.update()
    streamed_ms = clock.monotonic_ms()
    if config.aggregate is not None and not stopped:
        assert isinstance(config.sink, ParquetSink), "checked by PipelineConfig"
        write_aggregate(spark, config.sink.path, config.aggregate)
    return PipelineResult(
        rows=seen.total_rows,
        batches=len(seen.rows),
        stream_seconds=(streamed_ms - started_ms) / 1000,
        aggregate_seconds=(clock.monotonic_ms() - streamed_ms) / 1000,
        stopped=stopped,
    )


def _check_session(spark: SparkSession, config: PipelineConfig) -> None:
    """Raise an error if Spark Connect is used with a sink that needs the batches in the driver process."""
    from pyspark.sql.utils import is_remote

    if is_remote() and isinstance(config.sink, ConsoleSink | DeltaSink):
        sink = "console" if isinstance(config.sink, ConsoleSink) else "delta"
        raise KafkaConfigurationError(
            f"the sink {sink} does not work with Spark Connect, because it writes from Spark's driver "
            "process: use a classic session or another sink"
        )


def _start(spark: SparkSession, config: PipelineConfig) -> StreamingQuery:
    writer = stream_writer(stream_frame(spark, config), config.sink)
    writer = writer.option("checkpointLocation", str(config.checkpoint))
    if config.trigger == AVAILABLE_NOW:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=config.trigger).start()


class _Batches:
    """Batches that a query has completed.

    Spark keeps the last hundred progress reports. Batches are identified by number, so that no batch is
    counted twice.
    """

    def __init__(
        self,
        query: StreamingQuery,
        on_progress: Callable[[int], None],
        on_batch: Callable[[PipelineBatch], None],
    ) -> None:
        self.rows: dict[int, int] = {}
        self.total_rows = 0
        self.last = -1
        self._query = query
        self._on_progress = on_progress
        self._on_batch = on_batch

    def update(self) -> None:
        """Report the batches that have completed since the last call."""
        for progress in self._query.recentProgress:
            # Use the property numInputRows, which adds up the rows of all sources. In Spark Connect, a
            # progress report has no item of that name.
            number, rows = progress.batchId, progress.numInputRows
            self.last = max(self.last, number)
            if rows and number not in self.rows:
                self.rows[number] = rows
                self.total_rows += rows
                self._on_batch(self._batch(progress))
        self._on_progress(self.total_rows)

    def _batch(self, progress: StreamingQueryProgress) -> PipelineBatch:
        behind = lag(progress)
        return PipelineBatch(
            number=progress.batchId,
            rows=progress.numInputRows,
            duration_ms=progress.batchDuration,
            behind=None if behind is None else behind.total,
            phases_ms=dict(progress.durationMs),
            total_rows=self.total_rows,
        )


def _finish_batch(query: StreamingQuery, before: int) -> None:
    """Wait until the current batch, if there is one, has completed.

    Spark takes tens of milliseconds to plan the next batch. So the query usually stops before the next batch
    writes records.
    """
    while query.isActive and query.status["isTriggerActive"]:
        query.awaitTermination(STOP_CHECK_S)  # type: ignore[arg-type]  # takes fractions
        last = query.lastProgress
        if last is not None and last["batchId"] > before:
            break
