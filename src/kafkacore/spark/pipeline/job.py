"""Run a pipeline: start the query, report each batch, and stop when asked.

Spark can stop a query only at once. So the job waits for the next progress event and stops the query then.
Spark has written the offsets of the following batch before any of its tasks begins, so the next run repeats
that batch.
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

#: How long to wait for a query between looks at its progress, in seconds ...
LOOK_S = 0.5
#: ... and while it is to stop: what comes after the batch in progress must not get far.
STOP_LOOK_S = 0.01


@dataclass(frozen=True)
class PipelineBatch:
    """What one micro-batch with records did.

    Parameters
    ----------
    number:
        Spark's number of it, which goes on over restarts.
    rows:
        Records in it.
    duration_ms:
        What it took, planning and commit included.
    behind:
        Offsets that were left to read when it ended; ``None`` if that is not known.
    phases_ms:
        What each of Spark's phases took.
    total_rows:
        Records of this run up to its end.
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
    """What a run did. ``rows`` counts this run's records, not what the sink already held; ``stopped``: it was
    asked to stop before its trigger ended it.
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
        The session to run on; it stays open.
    config:
        The job.
    on_progress:
        Called with the number of records read so far, each time that the query is looked at.
    on_batch:
        Called with each batch that has come to its end with records.
    stop_wanted:
        Once it says so, the batch in progress is finished and no other begun.

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
    _check_session(spark, config)
    with spark_errors(KafkaConfigurationError):
        query = _start(spark, config)
    seen = _Batches(query, on_progress, on_batch)
    ended = stopped = False
    try:
        with spark_errors(PipelineError):
            while not ended and not stopped:
                ended = bool(query.awaitTermination(LOOK_S))  # type: ignore[arg-type]  # takes fractions
                seen.look()
                stopped = not ended and stop_wanted()
            if stopped:
                _finish_batch(query, seen)
    finally:
        if not ended:
            in_time(query.stop)
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
    """The sinks that write from this process need the batches to come here."""
    from pyspark.sql.utils import is_remote

    if is_remote() and isinstance(config.sink, ConsoleSink | DeltaSink):
        sink = "console" if isinstance(config.sink, ConsoleSink) else "delta"
        raise KafkaConfigurationError(
            f"the sink {sink} writes from the process that Spark runs in, which a client of Spark Connect is "
            "not: use a session of this process, or another sink"
        )


def _start(spark: SparkSession, config: PipelineConfig) -> StreamingQuery:
    writer = stream_writer(stream_frame(spark, config), config.sink)
    writer = writer.option("checkpointLocation", str(config.checkpoint))
    if config.trigger == AVAILABLE_NOW:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=config.trigger).start()


class _Batches:
    """What a query has done since it was first looked at.

    Spark keeps the last hundred progress reports; batches are remembered by number, so that none is counted
    twice.
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

    def look(self) -> None:
        """Tell what has come to its end since the last look."""
        for progress in self._query.recentProgress:
            # In Spark Connect a progress has no such item, and the property adds up those of the sources.
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


def _finish_batch(query: StreamingQuery, seen: _Batches) -> None:
    """Wait until the batch in progress, if there is one, has come to its end.

    Spark can only be told to stop at once. The next batch takes tens of milliseconds before a task of it
    begins (its offsets are written down first), and so is left to the next run.
    """
    before = seen.last
    while query.isActive and query.status["isTriggerActive"]:
        query.awaitTermination(STOP_LOOK_S)  # type: ignore[arg-type]  # takes fractions
        last = query.lastProgress
        if last is not None and last["batchId"] > before:
            break
    seen.look()
