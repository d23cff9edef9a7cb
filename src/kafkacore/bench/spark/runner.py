"""Run the rows of a benchmark. In each row, the sides (compared queries) take turns, round by round.

Each side has its own driver program. Before the measurement, each side reads all records once, and all sides
must have read the same records.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from kafkacore.bench.children import Worker, WorkerError
from kafkacore.bench.cluster import BenchCluster
from kafkacore.bench.machine import describe_machine, versions
from kafkacore.bench.result import MEGA, Case, Entry, Figures, Result, Standing, summarize, whole_result
from kafkacore.bench.runner import Progress
from kafkacore.bench.spark.driver import Answer
from kafkacore.bench.spark.job import RANGE, Job
from kafkacore.bench.spark.options import JARS_SENTENCE, SparkBenchOptions
from kafkacore.bench.spark.rows import (
    BINARY,
    FEWER,
    OURS,
    ROWS,
    SMALLEST_TRIGGER,
    THEIRS,
    THEIRS_TUNED,
    TRIGGERS,
    Place,
    Row,
    check_of,
)
from kafkacore.bench.spark.topics import DISTINCT, fill, letters, record_count
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import KafkaConfigurationError

#: For the row ``memory``: bytes of a value, and maximum bytes of its topic, which is read repeatedly.
LARGE_BYTES = 1_000
LARGE_TOPIC_BYTES = 10**9
DRIVER = "kafkacore.bench.spark.driver"
#: Jars whose versions are part of the result. A name may also contain the version of Scala, as in
#: ``spark-sql-kafka-0-10_2.13-4.2.0.jar``.
_JAR = re.compile(
    r"((?:spark-sql-kafka|spark-token-provider|kafka-clients).*)-(\d+\.[\w.]+(?:-[a-z]\w*)?)\.jar"
)


def run_spark_bench(options: SparkBenchOptions, progress: Progress, command: str = "") -> Result:
    """Run a benchmark.

    Parameters
    ----------
    options:
        Rows and settings.
    progress:
        Display of the progress.
    command:
        Command line of the user, for the result.

    Returns
    -------
    dict
        A result of schema 1, as from :func:`kafkacore.bench.runner.run_bench`.

    Raises
    ------
    KafkaConfigurationError
        The options are invalid, or a required package is missing.
    KafkaError
        The cluster cannot be used.
    """
    options.check()
    try:
        spark_version = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        raise KafkaConfigurationError(
            "bench spark needs PySpark: run pip install 'kafkacore[spark]'"
        ) from None
    with ExitStack() as stack:
        bench = _SparkBench(options, progress, stack)
        results = [entry for name in options.rows for entry in bench.row(name)]
        return whole_result(
            command,
            bench.started_ms,
            describe_machine(),
            versions([]) | {"pyspark": spark_version} | bench.jar_versions(),
            bench.cluster.name,
            options.to_dict(),
            bench.missing,
            results,
        )


class _SparkBench:
    """The common state of all rows of a benchmark."""

    def __init__(self, options: SparkBenchOptions, progress: Progress, stack: ExitStack) -> None:
        self.started_ms = SYSTEM_CLOCK.wall_ms()
        self.missing: dict[str, str] = {}
        self._options = options
        self._progress = progress
        self._stack = stack
        self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kafkacore-bench-")))
        self.cluster = stack.enter_context(BenchCluster(options.bootstrap, progress.say, options.broker_pid))
        #: Locations of records to read, by the kind of the records.
        self._places: dict[str, Place] = {}
        if not options.jars():
            self._report_missing("Spark's own source", JARS_SENTENCE)

    def _report_missing(self, what: str, why: str) -> None:
        self.missing[what] = why
        self._progress.say(f"skipping {what}: {why}")

    def jar_versions(self) -> dict[str, str]:
        """Return the version of each jar of Spark's own source, by the name of the jar."""
        found = {}
        for path in self._options.jars():
            if match := _JAR.fullmatch(Path(path).name):
                found[f"{match[1]} (jar)"] = match[2]
        return found

    # ---- A row -------------------------------------------------------------------------------------------

    def row(self, name: str) -> list[Entry]:
        """Measure one row of the benchmark, and return an entry for each side (compared query)."""
        row = ROWS[name]
        if row.reads == "json" and self._options.json_values is None:
            self._report_missing(f"row {name}", "no JSON to read; run pip install 'kafkacore[demo]'")
            return []
        place = self._place(row.reads)
        jobs = row.jobs(place)
        if not self._options.jars():
            jobs = {side: job for side, job in jobs.items() if side not in (THEIRS, THEIRS_TUNED)}
        if BINARY in jobs and importlib.util.find_spec("aiokafka") is None:
            self._report_missing(BINARY, "aiokafka is not installed; run pip install 'kafkacore[bench]'")
            del jobs[BINARY]
        case = self._case(name, place)
        standings = [Standing(side, {"query": job.query()}) for side, job in jobs.items()]
        rounds = self._options.rounds if name != "memory" else 1
        total = rounds * len(jobs)
        with (
            ExitStack() as stack,
            self._progress.step(f"{name}: {row.what}", total, "run" if total == 1 else "runs") as advance,
        ):
            sides = {side: self._driver(stack) for side in jobs}
            void = self._warm_up(row, place, jobs, sides) if name != "memory" else {}
            for done in range(total):
                standing = standings[done % len(standings)]
                side = standing.name
                if side in void:
                    standing.rounds.append({"void": void[side]})
                else:
                    standing.rounds.append(self._round(name, place, jobs[side], sides[side]))
                advance(done + 1)
        return summarize(case, standings)

    def _case(self, name: str, place: Place) -> Case:
        records = place.records * place.times
        return Case(f"spark-{name}", self._options.codec, self._options.partitions, records, place.size)

    def _driver(self, stack: ExitStack) -> Worker[Answer]:
        """Start a driver program and wait until it is ready. Closing ``stack`` stops the program."""
        folder = tempfile.mkdtemp(dir=self._folder)
        configs = {
            "spark.master": f"local[{self._options.cores}]",
            # ``binaryFile`` loads a whole log segment as one value. Its copies exceed the default of 1 GB.
            "spark.driver.memory": "4g",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.streaming.numRecentProgressUpdates": "1000",
        }
        if jars := self._options.jars():
            configs["spark.jars"] = ",".join(jars)
        setting = json.dumps({"configs": configs | self._options.configs, "folder": folder})
        command = [sys.executable, "-P", "-m", DRIVER, setting]
        worker = Worker[Answer](command, self._options.run_limit_s, self.cluster.check_alive)
        stack.enter_context(worker)
        worker.answer()
        stack.callback(worker.send_line, "")
        return worker

    def _warm_up(
        self, row: Row, place: Place, jobs: dict[str, Job], sides: dict[str, Worker[Answer]]
    ) -> dict[str, str]:
        """Run every side once without measuring it, and return why a side cannot be measured."""
        void: dict[str, str] = {}
        read: dict[str, list[int]] = {}
        for side, job in jobs.items():
            try:
                if row.is_checked:
                    read[side] = _ask(sides[side], check_of(job))["collected"]
                self._run(job, sides[side])
            except WorkerError as failure:
                void[side] = f"failed: {failure}"
        for side, found in read.items():
            if found[0] != place.records:
                void[side] = f"read {found[0]:,} of {place.records:,} rows"
            elif found != read.get(OURS, found):
                void[side] = f"read other values than {OURS}"
        return void

    # ---- A round -----------------------------------------------------------------------------------------

    def _round(self, name: str, place: Place, job: Job, driver: Worker[Answer]) -> Figures:
        broker_before_s = self.cluster.cpu_seconds()
        try:
            used, written = self._run(job, driver)
        except WorkerError as failure:
            return {"void": f"failed: {failure}"}
        broker_after_s = self.cluster.cpu_seconds()
        expected = place.records * place.times
        # Spark's own sink does not report the number of rows, so use the number of records in the topic.
        actual = used["rows"] if written is None else written
        void = None if actual == expected else f"{actual:,} of {expected:,} rows"
        counted = max(1, used.get("measured_rows", expected))
        cpu_s = used["jvm_cpu_s"] + used["python_cpu_s"]
        figures: Figures = {
            "seconds": used["seconds"],
            "cpu_s": cpu_s,
            "start_rss_mib": used["start_rss_mib"],
            "peak_rss_mib": used["peak_rss_mib"],
            "void": void,
        }
        if used["worker_peak_mib"]:
            figures["worker_peak_mib"] = used["worker_peak_mib"]
        if name == "trigger":
            batches = max(1, used["batches"])
            return {
                **figures,
                "ms_per_batch": used["ms_per_batch"],
                "cpu_ms_per_batch": cpu_s * 1000 / batches,
                "batches": used["batches"],
            }
        figures = {
            **figures,
            "records_per_s": counted / max(used["seconds"], 1e-9),
            "mb_per_s": counted * self._case(name, place).size / MEGA / max(used["seconds"], 1e-9),
            "cpu_s_per_million": cpu_s / counted * MEGA,
            "jvm_cpu_s_per_million": used["jvm_cpu_s"] / counted * MEGA,
            "python_cpu_s_per_million": used["python_cpu_s"] / counted * MEGA,
        }
        if broker_before_s is not None and broker_after_s is not None:
            figures["broker_cpu_s_per_million"] = (broker_after_s - broker_before_s) / expected * MEGA
        return figures

    def _run(self, job: Job, driver: Worker[Answer]) -> tuple[Answer, int | None]:
        """Run a job. Return the driver's answer, and the number of records that were written to Kafka."""
        if job.source != RANGE:
            return _ask(driver, job), None
        topic = self.cluster.create_topic(self._options.partitions)
        try:
            used = _ask(driver, replace(job, sink_options=job.sink_options | {"topic": topic}))
            return used, record_count(self.cluster.bootstrap, topic, self._options.partitions)
        finally:
            self.cluster.delete_topic(topic)

    # ---- Records to read ---------------------------------------------------------------------------------

    def _place(self, kind: str) -> Place:
        if kind not in self._places:
            self._places[kind] = self._filled(kind)
        return self._places[kind]

    def _filled(self, kind: str) -> Place:
        options, size = self._options, self._options.size
        place = Place(self.cluster.bootstrap, "", options.records, str(self._folder), size=size)
        place = replace(place, rows_a_trigger=min(place.rows_a_trigger, max(1, options.records // 2)))
        records = max(1, options.records // FEWER.get(kind, 1))
        if kind == "none":
            return replace(place, records=records)
        cluster = self.cluster
        values = letters(min(DISTINCT, records), size)
        if kind == "few":
            records = min(records, TRIGGERS * SMALLEST_TRIGGER)
        elif kind == "json":
            assert options.json_values is not None, "checked by the caller"
            values = list(options.json_values.values())
            place = replace(place, json_schema=options.json_values.schema)
        elif kind == "large":
            records = max(1, min(options.memory_bytes, LARGE_TOPIC_BYTES) // LARGE_BYTES)
            values = letters(min(10_000, records), LARGE_BYTES)
            place = replace(place, times=max(1, options.memory_bytes // (records * LARGE_BYTES)))
        elif kind == "segments":
            # The embedded broker writes Kafka's files to a known directory.
            cluster = self._stack.enter_context(BenchCluster(None, self._progress.say))
            place = replace(place, segments=str(cluster.data_dir))
        with self._progress.step(f"{records:,} {kind} records"):
            topic = fill(cluster, options.partitions, records, values, options.codec)
        mean = round(sum(map(len, values)) / len(values))
        return replace(place, topic=topic, records=records, size=mean)


def _ask(driver: Worker[Answer], job: Job) -> Answer:
    driver.send_line(job.to_json())
    return driver.answer()
