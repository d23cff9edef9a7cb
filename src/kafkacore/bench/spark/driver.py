"""A driver program with a Spark session of its own: ``python -m kafkacore.bench.spark.driver SETTING``.

The session's settings as JSON in; then a :class:`~kafkacore.bench.spark.job.Job` a line on standard input,
for each a line of JSON on standard output: rows, seconds, processor seconds of the JVM and of the Python
processes apart, memory. The first line is ``{"event": "ready"}``. Ends with its standard input, and with it
the JVM. Does not know: sides, rounds.
"""

from __future__ import annotations

import json
import os
import queue
import statistics
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from kafkacore.bench.spark.job import COLLECT, RANGE, Job
from kafkacore.bench.spark.processes import Look, look
from kafkacore.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: How long the JVM may take to end, in seconds.
END_S = 10.0
#: Between looks at whether a stream has ended its first batch.
LOOK_MS = 10.0
ROWS_METRIC = "number of output rows"


class Answer(TypedDict, total=False):
    """A line of the driver: what a job took, and how many rows came."""

    #: ``ready``, of the first line, which has nothing else.
    event: str
    rows: int
    #: Of a job that collects.
    collected: list[int]
    #: Of a stream, without its first batch.
    measured_rows: int
    batches: int
    ms_per_batch: float
    seconds: float
    jvm_cpu_s: float
    python_cpu_s: float
    start_rss_mib: float
    peak_rss_mib: float
    worker_peak_mib: float


#: What had been used, and when.
Mark = tuple[Look, float]


class Driver:
    """Runs jobs on a session.

    Parameters
    ----------
    configs:
        Of Spark.
    folder:
        For checkpoints; each job that needs one gets its own.
    """

    def __init__(self, configs: dict[str, str], folder: Path) -> None:
        from pyspark.sql import SparkSession

        # Workers must be this Python, not the first one on PATH.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.appName("kafkacore bench spark")
        for name, value in configs.items():
            builder = builder.config(name, value)
        self._spark: SparkSession = builder.getOrCreate()
        self._jvm: subprocess.Popen[bytes] = self._spark.sparkContext._gateway.proc  # type: ignore[union-attr]
        self._folder = folder
        self._done = 0

    def run(self, job: Job) -> Answer:
        """Run it; what it took, and how many rows came."""
        self._done += 1
        start = self._mark()
        found: Answer = {"rows": 0}
        if job.is_streaming:
            found, start = self._stream(job)
        else:
            for _ in range(job.times):
                answer = self._batch(job)
                found = {**answer, "rows": found["rows"] + answer["rows"]}
        (before, start_ms), (after, end_ms) = start, self._mark()
        return {
            **found,
            "seconds": (end_ms - start_ms) / 1000,
            "jvm_cpu_s": after.jvm_cpu_s - before.jvm_cpu_s,
            "python_cpu_s": after.python_cpu_s - before.python_cpu_s,
            "start_rss_mib": before.jvm_peak_mib + sum(before.python_peaks_mib),
            "peak_rss_mib": after.jvm_peak_mib + sum(after.python_peaks_mib),
            "worker_peak_mib": after.worker_peak_mib,
        }

    def _mark(self) -> Mark:
        return look(self._jvm.pid), SYSTEM_CLOCK.monotonic_ms()

    def _frame(self, job: Job) -> DataFrame:
        if job.source == RANGE:
            frame = self._spark.range(job.rows)
        else:
            reader = self._spark.readStream if job.is_streaming else self._spark.read
            reader = reader.format(job.source).options(**job.options)
            frame = (reader.schema(job.schema) if job.schema else reader).load()
        if job.exploded_by:
            from kafkacore.bench.spark.segments import EXPLODERS, SCHEMA

            frame = frame.mapInArrow(EXPLODERS[job.exploded_by], SCHEMA)
        for select in job.selects:
            frame = frame.selectExpr(*select)
        return frame

    def _batch(self, job: Job) -> Answer:
        frame = self._frame(job)
        if job.sink == COLLECT:
            (row,) = frame.collect()
            return {"rows": row[0], "collected": [int(each) for each in row]}
        mode = "append" if "kafka" in job.sink else "overwrite"
        first = self._store().executionsList().size()
        frame.write.format(job.sink).options(**job.sink_options).mode(mode).save()
        rows = self._rows_since(first)
        # The fewest of any node, so that one that lost some shows; but a file is one row at first.
        return {"rows": (max if job.exploded_by else min)(rows, default=0)}

    def _store(self) -> Any:
        """Where Spark keeps what its queries did, up to date."""
        session: Any = self._spark
        session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        return session._jsparkSession.sharedState().statusStore()

    def _rows_since(self, first: int) -> list[int]:
        """Of each node of the queries, as their own metrics have it, which costs them nothing.

        Parameters
        ----------
        first:
            How many queries there were before. Spark's own source makes two, one of which says nothing.
        """
        store = self._store()
        executions = store.executionsList()
        found = []
        for number in range(first, executions.size()):
            execution = executions.apply(number)
            values, metrics = store.executionMetrics(execution.executionId()), execution.metrics()
            for at in range(metrics.size()):
                metric = metrics.apply(at)
                value = values.get(metric.accumulatorId())
                if metric.name() == ROWS_METRIC and value.isDefined():
                    found.append(int(str(value.get()).replace(",", "")))
        return found

    def _stream(self, job: Job) -> tuple[Answer, Mark]:
        """Its figures and when its first batch had ended: a stream is started once and runs for long."""
        checkpoint = self._folder / f"checkpoint-{self._done}"
        writer = self._frame(job).writeStream.format(job.sink).options(**job.sink_options)
        writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        start = self._mark()
        query = writer.start()
        while query.isActive and not query.recentProgress:
            SYSTEM_CLOCK.sleep_ms(LOOK_MS)
        begun, first = self._mark(), len(query.recentProgress)
        query.awaitTermination()
        batches = [each for each in query.recentProgress if each["numInputRows"]]
        times_ms = [each["durationMs"]["triggerExecution"] for each in batches]
        rows = [each["numInputRows"] for each in batches]
        # All in one batch: then its start is part of it.
        first, start = (first, begun) if len(batches) > first else (0, start)
        return {
            "rows": sum(rows),
            "measured_rows": sum(rows[first:]),
            "batches": len(rows[first:]),
            "ms_per_batch": statistics.median(times_ms[first:]) if times_ms else 0.0,
        }, start

    def end(self) -> None:
        """End the JVM, which ends with its standard input, and wait for it."""
        assert self._jvm.stdin is not None
        self._jvm.stdin.close()
        try:
            self._jvm.wait(END_S)
        except subprocess.TimeoutExpired:
            self._jvm.kill()


def _lines(found: queue.Queue[str]) -> None:
    """Standard input line by line; behind its end, this process is done, whatever it is at."""
    for line in sys.stdin:
        found.put(line)
    # The JVM ends as its own input does.
    os._exit(1)


def _say(answer: Answer) -> None:
    # Behind a line break, for what the JVM prints ends where it ends.
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
    sys.stdout.flush()


def main() -> None:
    setting = json.loads(sys.argv[1])
    jobs: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_lines, args=(jobs,), daemon=True).start()
    driver = Driver(setting["configs"], Path(setting["folder"]))
    _say({"event": "ready"})
    while line := jobs.get().strip():
        _say(driver.run(Job.from_json(line)))
    driver.end()
    os._exit(0)


if __name__ == "__main__":
    main()
