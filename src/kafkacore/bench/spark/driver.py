"""Spark driver program that runs jobs: ``python -m kafkacore.bench.spark.driver SETTING``.

The argument contains the settings of the session in JSON. Each line on standard input is a
:class:`~kafkacore.bench.spark.job.Job`. The program prints ``{"event": "ready"}``, and then one line of JSON
per job: rows, seconds, memory, and the CPU seconds of the JVM and of the Python processes. The program and
its JVM exit when standard input ends.
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
from kafkacore.bench.spark.processes import Usage, usage_of
from kafkacore.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Seconds to wait for the JVM to exit.
END_S = 10.0
#: Time in ms between two checks whether a stream has completed its first batch.
CHECK_INTERVAL_MS = 10.0
ROWS_METRIC = "number of output rows"


class Answer(TypedDict, total=False):
    """Line that the driver prints: the number of rows of a job, and the resources that it used."""

    #: The first line that the driver prints contains only this key, with the value ``ready``.
    event: str
    rows: int
    #: Row that a job with the sink :data:`~kafkacore.bench.spark.job.COLLECT` returned.
    collected: list[int]
    #: Number of rows of a stream, without the rows of the first batch.
    measured_rows: int
    batches: int
    ms_per_batch: float
    seconds: float
    jvm_cpu_s: float
    python_cpu_s: float
    start_rss_mib: float
    peak_rss_mib: float
    worker_peak_mib: float


#: Resources used so far, and the current time.
Mark = tuple[Usage, float]


class Driver:
    """Spark session that runs jobs.

    Parameters
    ----------
    configs:
        Settings of Spark.
    folder:
        Directory for checkpoints.
    """

    def __init__(self, configs: dict[str, str], folder: Path) -> None:
        from pyspark.sql import SparkSession

        # The workers must run this Python, not the first one on PATH.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.appName("kafkacore bench spark")
        for name, value in configs.items():
            builder = builder.config(name, value)
        self._spark: SparkSession = builder.getOrCreate()
        self._jvm: subprocess.Popen[bytes] = self._spark.sparkContext._gateway.proc  # type: ignore[union-attr]
        self._folder = folder
        self._done = 0

    def run(self, job: Job) -> Answer:
        """Run a job, and return its number of rows and the resources that it used."""
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
        return usage_of(self._jvm.pid), SYSTEM_CLOCK.monotonic_ms()

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
        # Use the minimum over all nodes of the query plan, so that lost rows are noticed. With exploded_by,
        # the source returns one row per file, so use the maximum.
        return {"rows": (max if job.exploded_by else min)(rows, default=0)}

    def _store(self) -> Any:
        """Wait until all events are processed, and return the store with Spark's metrics of its queries."""
        session: Any = self._spark
        session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        return session._jsparkSession.sharedState().statusStore()

    def _rows_since(self, first: int) -> list[int]:
        """Return the number of rows of each node of the query plans, from Spark's metrics.

        Parameters
        ----------
        first:
            Number of queries that ran earlier and are left out. A job with Spark's own source runs two
            queries, and one of these queries does not have this metric.
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
        """Run a stream. Return its figures and the resources used at the end of its first batch.

        The first batch is not measured, because it includes the start of the stream.
        """
        checkpoint = self._folder / f"checkpoint-{self._done}"
        writer = self._frame(job).writeStream.format(job.sink).options(**job.sink_options)
        writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        start = self._mark()
        query = writer.start()
        while query.isActive and not query.recentProgress:
            SYSTEM_CLOCK.sleep_ms(CHECK_INTERVAL_MS)
        begun, first = self._mark(), len(query.recentProgress)
        query.awaitTermination()
        batches = [each for each in query.recentProgress if each["numInputRows"]]
        times_ms = [each["durationMs"]["triggerExecution"] for each in batches]
        rows = [each["numInputRows"] for each in batches]
        # With a single batch, the start of the stream is part of the measurement.
        first, start = (first, begun) if len(batches) > first else (0, start)
        return {
            "rows": sum(rows),
            "measured_rows": sum(rows[first:]),
            "batches": len(rows[first:]),
            "ms_per_batch": statistics.median(times_ms[first:]) if times_ms else 0.0,
        }, start

    def end(self) -> None:
        """Stop the JVM by closing its standard input, and wait for it."""
        assert self._jvm.stdin is not None
        self._jvm.stdin.close()
        try:
            self._jvm.wait(END_S)
        except subprocess.TimeoutExpired:
            self._jvm.kill()


def _lines(found: queue.Queue[str]) -> None:
    """Read standard input line by line, and exit the process when it ends."""
    for line in sys.stdin:
        found.put(line)
    # The JVM exits when its own standard input ends.
    os._exit(1)


def _say(answer: Answer) -> None:
    # Start with a line break, because the last output of the JVM may not end with a line break.
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
