"""Log each batch of streaming queries, and count for Prometheus.

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

from kafkacore.metrics import DictReporter, KafkaMetric, MetricName
from kafkacore.spark.causes import last_cause
from kafkacore.spark.progress import Lag, lag

logger = logging.getLogger(__name__)

GROUP = "spark-query-metrics"
#: Figures of so many queries are kept; those that ended first are forgotten first.
MAX_QUERIES = 100
#: Phases of a batch that a line names.
SLOWEST_PHASES = 3

#: Name of each figure → its meaning.
DESCRIPTIONS = {
    "active": "1 while the query runs, 0 after its end",
    "starts-total": "how often the query was started while this was listening",
    "failures-total": "how often it ended by an error",
    "batches-total": "micro-batches that it has finished",
    "rows-total": "rows that its sources gave",
    "batch-id": "of the batch that was finished last",
    "batch-rows": "rows of the batch that was finished last",
    "batch-duration-ms": "what the last batch took",
    "input-rows-rate": "rows per second that came in",
    "processed-rows-rate": "rows per second that the last batch came to",
    "phase-duration-ms": "what a phase of the last batch took, by Spark's names of phases",
    "offsets-behind-latest": "offsets of a partition that the last batch had not read",
    "offsets-behind-latest-avg": "of a partition on average",
    "offsets-behind-latest-max": "of the partition that is furthest behind",
    "offsets-behind-latest-min": "of the partition that is least behind",
    "observed": "a figure that the query itself observes (DataFrame.observe)",
}


@dataclass
class _Query:
    """What is known of one query, over its restarts."""

    name: str
    starts: int = 0
    failures: int = 0
    batches: int = 0
    rows: int = 0
    active: bool = True
    last: Mapping[str, object] = field(default_factory=dict)
    lag: Lag | None = None

    def figures(self) -> Iterator[tuple[str, dict[str, str], float]]:
        """Name, further tags and value of each."""
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
    """To be added to a session: ``spark.streams.addListener(monitor)``. It sees all of the session's queries.

    Parameters
    ----------
    level:
        Of the line that is logged for each batch, and for each start and end; a query that fails is an error.

    Notes
    -----
    For Prometheus ``kafkacore.metrics.prometheus.start_exporter(monitor, port)``, or
    ``REGISTRY.register(KafkaMetricsCollector(monitor))``: ``kafkacore_spark_query_rows_total`` with the label
    ``query``, ``kafkacore_spark_query_partition_offsets_behind_latest`` with ``topic`` and ``partition`` too,
    and so on. ``query`` is the query's name, or its id if it has none.

    What a Python source cannot tell Spark is not here: bytes and retries of the tasks (observe
    ``sum(length(value))`` for bytes), retries of the planner (they are in Spark's log). There are no
    rebalances: the source joins no group.
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
        """Nothing new: what the last batch left is what there is."""

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
        """The figures as of now, in the form of a client's: ``{group: {name: float}}``.

        Parameters
        ----------
        raw:
            Give ``{MetricName: KafkaMetric}``, as ``KafkaMetricsCollector`` takes it.
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
    """A batch in a line: rows, rate, time by phase, lag."""
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
    """Spark leaves rates out, or says NaN, for a batch of nothing."""
    return float(value) if isinstance(value, (int, float)) and value == value else 0.0
