"""Log each micro-batch of streaming queries and collect metrics for Prometheus.

The monitor works for queries on any source. Lag is computed for Kafka only
(:mod:`kafkacore.spark.progress`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, overload

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from kafkacore.logs import logger_of
from kafkacore.metrics import DictReporter, KafkaMetric, MetricName
from kafkacore.spark.causes import last_cause
from kafkacore.spark.progress import Lag, lag

logger = logger_of(__name__)

GROUP = "spark-query-metrics"
#: Maximum number of queries whose metrics are kept. Queries that have ended are dropped first.
MAX_QUERIES = 100
#: Number of phases that the log line of a batch shows, the slowest first.
SLOWEST_PHASES = 3

#: Description of each metric, by its name.
DESCRIPTIONS = {
    "active": "1 while the query runs, 0 after it has ended.",
    "starts-total": "Number of times the query was started while the monitor was registered.",
    "failures-total": "Number of times the query ended with an error.",
    "batches-total": "Number of completed micro-batches.",
    "rows-total": "Number of rows that the query has read from its sources.",
    "batch-id": "ID of the last completed micro-batch.",
    "batch-rows": "Number of rows in the last completed micro-batch.",
    "batch-duration-ms": "Duration of the last completed micro-batch, in ms.",
    "input-rows-rate": "Rows per second that arrived from the sources (Spark's inputRowsPerSecond).",
    "processed-rows-rate": "Rows per second that the last micro-batch processed (Spark's "
    "processedRowsPerSecond).",
    "phase-duration-ms": "Duration of one phase of the last micro-batch, in ms. The tag phase has Spark's "
    "name of the phase.",
    "offsets-behind-latest": "Number of offsets of one partition between the end of the last micro-batch and "
    "the latest offset.",
    "offsets-behind-latest-avg": "Average of offsets-behind-latest over all partitions.",
    "offsets-behind-latest-max": "Largest offsets-behind-latest of all partitions.",
    "offsets-behind-latest-min": "Smallest offsets-behind-latest of all partitions.",
    "observed": "A numeric value that the query reports through DataFrame.observe.",
}


@dataclass
class _Query:
    """State of one query. It survives restarts of the query."""

    name: str
    starts: int = 0
    failures: int = 0
    batches: int = 0
    rows: int = 0
    active: bool = True
    last: Mapping[str, object] = field(default_factory=dict)
    lag: Lag | None = None

    def figures(self) -> Iterator[tuple[str, dict[str, str], float]]:
        """Yield the name, the tags and the value of each metric."""
        yield "active", {}, float(self.active)
        yield "starts-total", {}, self.starts
        yield "failures-total", {}, self.failures
        yield "batches-total", {}, self.batches
        yield "rows-total", {}, self.rows
        if not self.last:
            return
        yield "batch-id", {}, _number(self.last.get("batchId"))
        yield "batch-rows", {}, _number(self.last.get("numInputRows"))
        yield "batch-duration-ms", {}, _number(self.last.get("batchDuration"))
        yield "input-rows-rate", {}, _number(self.last.get("inputRowsPerSecond"))
        yield "processed-rows-rate", {}, _number(self.last.get("processedRowsPerSecond"))
        for phase, duration_ms in _mapping(self.last.get("durationMs")).items():
            yield "phase-duration-ms", {"phase": phase}, _number(duration_ms)
        yield from self._lag_figures()
        yield from self._observed()

    def _lag_figures(self) -> Iterator[tuple[str, dict[str, str], float]]:
        if self.lag is None:
            return
        yield "offsets-behind-latest-avg", {}, self.lag.average
        yield "offsets-behind-latest-max", {}, self.lag.maximum
        yield "offsets-behind-latest-min", {}, self.lag.minimum
        for tp, behind in self.lag.partitions.items():
            yield "offsets-behind-latest", {"topic": tp.topic, "partition": str(tp.partition)}, behind

    def _observed(self) -> Iterator[tuple[str, dict[str, str], float]]:
        for name, row in _mapping(self.last.get("observedMetrics")).items():
            values = row.asDict() if hasattr(row, "asDict") else _mapping(row)
            for figure, value in values.items():
                if isinstance(value, (int, float)):
                    yield "observed", {"observation": name, "figure": figure}, value


class QueryMonitor(StreamingQueryListener):
    """Listener that logs the progress of all streaming queries of a session and collects their metrics.

    Register it with ``spark.streams.addListener(monitor)``.

    Parameters
    ----------
    level:
        Level of the log lines for each batch, start and end of a query. A failed query is logged as an error.

    Notes
    -----
    To export the metrics to Prometheus, call
    ``kafkacore.metrics.prometheus.start_exporter(monitor, port)`` or
    ``REGISTRY.register(KafkaMetricsCollector(monitor))``. The metrics are named like
    ``kafkacore_spark_query_rows_total`` and have the label ``query``: the name of the query, or its id if it
    has no name. ``kafkacore_spark_query_partition_offsets_behind_latest`` also has the labels ``topic`` and
    ``partition``.

    A Python source cannot report the bytes and retries of its tasks to Spark, so there are no metrics for
    them. To count bytes, observe ``sum(length(value))``. Retries of the planner are in Spark's log. The
    source does not join a consumer group, so there are no rebalances to count.
    """

    def __init__(self, level: int = logging.INFO) -> None:
        super().__init__()
        self._level = level
        self._lock = threading.Lock()
        self._queries: dict[str, _Query] = {}

    # ---- Spark's events ----------------------------------------------------------------------------------

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        with self._lock:
            query = self._query(str(event.id), event.name)
            query.starts += 1
            query.active = True
        logger.log(self._level, "query %s started (run %s)", query.name, event.runId)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        progress = event.progress
        with self._lock:
            query = self._query(str(progress.id), progress.name)
            query.active = True
            query.batches += 1
            query.rows += int(_number(progress.numInputRows))
            query.last, query.lag = progress, lag(progress)
        logger.log(self._level, "%s", batch_line(query.name, progress, query.lag))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Do nothing, because an idle query has no new progress."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        with self._lock:
            query = self._query(str(event.id), None)
            query.active = False
            query.failures += event.exception is not None
        if event.exception is None:
            logger.log(self._level, "query %s ended", query.name)
        else:
            logger.error("query %s failed: %s", query.name, last_cause(event.exception))

    def _query(self, query_id: str, name: str | None) -> _Query:
        query = self._queries.get(query_id)
        if query is None:
            if len(self._queries) >= MAX_QUERIES:
                ended = (known for known, one in self._queries.items() if not one.active)
                del self._queries[next(ended, next(iter(self._queries)))]
            query = self._queries[query_id] = _Query(name or query_id)
        return query

    # ---- Figures -----------------------------------------------------------------------------------------

    @overload
    def metrics(self, raw: Literal[False] = False) -> dict[str, dict[str, float]]: ...
    @overload
    def metrics(self, raw: Literal[True]) -> dict[MetricName, KafkaMetric]: ...
    def metrics(self, raw: bool = False) -> dict[str, dict[str, float]] | dict[MetricName, KafkaMetric]:
        """Return the current metrics in the form that a client's ``metrics()`` has.

        Parameters
        ----------
        raw:
            Whether to return ``{MetricName: KafkaMetric}``, which ``KafkaMetricsCollector`` expects.

        Returns
        -------
        dict
            ``{group: {name: float}}``, or ``{MetricName: KafkaMetric}`` if ``raw`` is true.
        """
        with self._lock:
            found = {
                MetricName(name, GROUP, DESCRIPTIONS[name], {"query": query.name, **tags}): value
                for query in self._queries.values()
                for name, tags, value in query.figures()
            }
        metrics = {name: KafkaMetric(name, _constant(value)) for name, value in found.items()}
        if raw:
            return metrics
        reporter = DictReporter()
        reporter.init(metrics.values())
        return reporter.snapshot()


def batch_line(name: str, progress: Mapping[str, object], behind: Lag | None) -> str:
    """Return the log line of a batch: rows, rate, duration by phase, and lag."""
    phases = _mapping(progress.get("durationMs"))
    took = [(took, phase) for phase, took in phases.items() if phase != "triggerExecution" and took]
    slowest = sorted(took, reverse=True)[:SLOWEST_PHASES]
    parts = [
        f"{name}: batch {progress.get('batchId')}",
        f"{int(_number(progress.get('numInputRows'))):,} rows",
        f"{_number(progress.get('processedRowsPerSecond')):,.0f} rows/s",
        f"{int(_number(progress.get('batchDuration'))):,} ms"
        + (f" ({', '.join(f'{phase} {took:,}' for took, phase in slowest)})" if slowest else ""),
    ]
    if behind is not None:
        parts.append(f"{behind.total:,} behind" + (f" (at most {behind.maximum:,})" if behind.total else ""))
    return ", ".join(parts)


def _constant(value: float) -> Callable[[float], float]:
    return lambda now_ms: value


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _number(value: object) -> float:
    """Return a number as a float, or 0. For an empty batch Spark omits rates or reports NaN."""
    return float(value) if isinstance(value, (int, float)) and value == value else 0.0
