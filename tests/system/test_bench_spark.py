"""``kafkacore bench spark``: its Spark settings, its checks, and the processor and memory use that it reads.

Whole runs: ``system/integration/test_bench_spark.py``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest

from kafkacore.bench.children import Worker, WorkerError
from kafkacore.bench.cluster import BenchCluster
from kafkacore.bench.spark.job import Job
from kafkacore.bench.spark.options import JARS_SENTENCE, SparkBenchOptions
from kafkacore.bench.spark.processes import descendants, usage_of
from kafkacore.bench.spark.rows import OURS, ROWS, Place, check_of
from kafkacore.bench.spark.runner import run_spark_bench
from kafkacore.bench.spark.segments import EXPLODERS
from kafkacore.bench.spark.topics import fill, letters, record_count
from kafkacore.errors import KafkaConfigurationError

PLACE = Place("host:9092", "topic", 1_000, "folder", json_schema="a INT", segments="segments")


@pytest.mark.parametrize("name", list(ROWS))
def test_every_row_puts_us_first_and_has_goals_for_sides_that_there_are(name):
    jobs = ROWS[name].jobs(PLACE)
    assert next(iter(jobs)) == OURS
    assert set(ROWS[name].goals) <= set(jobs) - {OURS}


@pytest.mark.parametrize("name", list(ROWS))
def test_job_travels_as_one_line(name):
    for job in ROWS[name].jobs(PLACE).values():
        line = job.to_json()
        assert "\n" not in line
        assert Job.from_json(line) == job


def test_query_is_shown_as_one_would_write_it_and_without_places():
    query = ROWS["stream"].jobs(PLACE)[OURS].query()
    assert query == (
        'spark.readStream.format("kafkacore").option("startingOffsets", "earliest")'
        '.option("maxOffsetsPerTrigger", "1000000").load()'
        '.writeStream.format("noop").trigger(availableNow=True).start()'
    )
    assert "host" not in ROWS["write"].jobs(PLACE)[OURS].query()


def test_check_reads_the_same_and_ends_in_one_row():
    job = ROWS["schema"].jobs(PLACE)[OURS]
    assert check_of(job).query().startswith(job.query().split(".write.")[0])
    assert check_of(job).sink == "collect"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"rows": ("read", "run")}, "unknown row 'run': it must be one of read, schema"),
        ({"records": 5}, "--records must be at least 100"),
        ({"rounds": 0}, "--rounds must be at least 1"),
        ({"kafka_jars": "nowhere/*"}, "does not contain Spark's kafka source: set --spark"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_a_sentence(wrong, sentence):
    with pytest.raises(KafkaConfigurationError, match=sentence.replace("*", r"\*")):
        SparkBenchOptions(**wrong).check()


def test_jars_without_sparks_own_source_are_not_it(tmp_path):
    (tmp_path / "other.jar").touch()
    assert SparkBenchOptions(kafka_jars=f"{tmp_path}/*").jars() == []
    (tmp_path / "spark-sql-kafka-0-10_2.13-4.2.0.jar").touch()
    assert len(SparkBenchOptions(kafka_jars=f"{tmp_path}/*").jars()) == 2


def test_result_names_no_place_of_the_machine():
    options = SparkBenchOptions(kafka_jars="/somewhere/*", bootstrap="host:9092")
    assert '"/' not in json.dumps(options.to_dict())


#: A parent process that waits until one computing child has ended, and keeps a second one running. It answers
#: each line with the processor seconds that it has used itself.
FAMILY = """
import os, subprocess, sys
compute = "import os\\nwhile sum(os.times()[:2]) < 0.3: pass"
subprocess.run([sys.executable, "-S", "-c", compute])
wait = compute + "\\nprint(flush=True)\\ninput()"
child = subprocess.Popen([sys.executable, "-S", "-c", wait], stdin=-1, stdout=-1)
child.stdout.readline()
for _ in sys.stdin:
    print(sum(os.times()[:2]), flush=True)
"""


def test_processor_time_of_what_is_below_a_process_counts_also_when_it_has_ended():
    command = [sys.executable, "-S", "-c", FAMILY]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:

        def own_cpu_s() -> float:
            assert parent.stdin is not None
            assert parent.stdout is not None
            parent.stdin.write("\n")
            parent.stdin.flush()
            return float(parent.stdout.readline())

        before_s = own_cpu_s()
        found, below = usage_of(parent.pid), descendants(parent.pid)
        after_s = own_cpu_s()
        parent.kill()
    assert found.python_cpu_s >= 0.6 - 0.05
    # The JVM's time excludes the 0.3 s of each child, however slow the machine is.
    assert before_s <= found.jvm_cpu_s <= after_s
    assert list(below.values()) == [parent.pid]
    assert len(found.python_peaks_mib) == 1
    assert found.worker_peak_mib > 1
    assert os.getpid() not in below


@pytest.mark.parametrize("decoder", list(EXPLODERS))
def test_peer_of_segment_files_gives_the_records_of_a_file(decoder, monkeypatch):
    import pyarrow as pa

    from kafkacore.bench.spark import segments
    from kafkacore.record import RecordBatchBuilder

    monkeypatch.setattr(segments, "_ROWS", 2)

    builder = RecordBatchBuilder(16_384)
    for number in range(3):
        builder.append(1_000 + number, b"k%d" % number, b"v%d" % number)
    content = bytes(builder.close())
    batch = pa.RecordBatch.from_pydict(
        {
            "path": ["file:/backup/flights-7/00000000000000000000.log"],
            "content": pa.array([content], pa.binary()),
        }
    )
    first, last = EXPLODERS[decoder](iter([batch]))
    assert (first.num_rows, last.num_rows) == (2, 1)
    (found,) = pa.Table.from_batches([first, last]).combine_chunks().to_batches()
    assert found.column("topic").to_pylist() == ["flights"] * 3
    assert found.column("partition").to_pylist() == [7] * 3
    assert found.column("key").to_pylist() == [b"k0", b"k1", b"k2"]
    assert found.column("value").to_pylist() == [b"v0", b"v1", b"v2"]
    assert found.column("timestamp").cast(pa.int64()).to_pylist() == [1_000_000, 1_001_000, 1_002_000]
    assert found.column("timestampType").to_pylist() == [0] * 3
    assert found.schema.field("timestamp").type == pa.timestamp("us", "UTC")


class SilentProgress:
    """A progress reporter that only records its lines."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, line: str) -> None:
        self.said.append(line)

    def step(
        self, name: str, total: int | None = None, unit: str = ""
    ) -> AbstractContextManager[Callable[[int], None]]:
        return nullcontext(lambda done: None)


def test_without_the_jars_our_side_is_alone_and_it_is_said_how_to_get_them(our_broker):
    progress = SilentProgress()
    options = SparkBenchOptions(bootstrap=our_broker.bootstrap_servers, rows=())
    result = run_spark_bench(options, progress)
    assert result["missing"] == {"Spark's own source": JARS_SENTENCE}
    assert progress.said == [f"skipping Spark's own source: {JARS_SENTENCE}"]
    assert not result["void"]


def test_row_of_typed_values_is_left_out_without_a_data_set(our_broker):
    options = SparkBenchOptions(bootstrap=our_broker.bootstrap_servers, rows=("json", "json-parquet"))
    result = run_spark_bench(options, SilentProgress())
    assert result["results"] == []
    assert "pip install 'kafkacore[demo]'" in result["missing"]["row json"]


def test_driver_program_that_has_ended_makes_a_round_void_and_not_the_benchmark():
    program = "import sys; sys.stdin.readline(); sys.exit('RuntimeError: no more')"
    with Worker([sys.executable, "-S", "-c", program], 20) as driver:
        driver.send_line("first")
        with pytest.raises(WorkerError, match="no more"):
            driver.answer()
        driver.send_line("second")
        with pytest.raises(WorkerError, match="no more"):
            driver.answer()


def test_topic_to_be_read_has_all_records_evenly_spread(our_broker):
    with BenchCluster(our_broker.bootstrap_servers, print) as cluster:
        topic = fill(cluster, 3, 1_000, letters(1_000, 20))
        assert record_count(cluster.bootstrap, topic, 3) == 1_000
        assert record_count(cluster.bootstrap, topic, 1) == 334
    assert len(set(letters(10, 20))) == 10
    assert {len(value) for value in letters(10, 20)} == {20}
