"""The worker processes of a benchmark: their output, their last message and how they exit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafkacore.bench.children import Worker, WorkerError
from kafkacore.bench.cluster import ClusterGoneError
from kafkacore.bench.java import JavaClient, JavaMissing
from kafkacore.bench.machine import describe_machine
from kafkacore.bench.task import Task


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_answers_are_lines_of_json_and_other_lines_are_passed_over():
    code = "print('hello'); print('[1]'); print('{\"a\": 1}'); print('{\"b\": 2}')"
    with Worker(python(code), 20) as worker:
        assert worker.answer() == {"a": 1}
        assert worker.answer() == {"b": 2}


def test_worker_that_fails_says_the_line_that_tells_why():
    code = (
        "import sys\n"
        "sys.excepthook = lambda *a: (sys.__excepthook__(*a), print('unclosed x', file=sys.stderr))\n"
        "raise ValueError('no such topic')"
    )
    with Worker(python(code), 20) as worker, pytest.raises(WorkerError, match=r"^ValueError: no such topic$"):
        worker.answer()


def test_worker_that_ends_silently_says_its_status():
    with Worker(python("raise SystemExit(3)"), 20) as worker, pytest.raises(WorkerError, match="status 3"):
        worker.answer()


def test_worker_that_takes_too_long_is_given_up_and_killed():
    with pytest.raises(WorkerError, match="has not finished after"), Worker(python("input()"), 0.2) as worker:
        worker.answer()
    assert worker._process.returncode == -9


def test_silent_worker_is_given_up_when_the_look_finds_its_broker_gone():
    looks = []

    def look():
        looks.append(1)
        if len(looks) == 2:
            raise ClusterGoneError("gone")

    with pytest.raises(ClusterGoneError), Worker(python("input()"), 20, look, silence_s=0.01) as worker:
        worker.answer()
    assert worker._process.returncode == -9


def test_worker_that_is_left_is_killed():
    with pytest.raises(KeyboardInterrupt), Worker(python("input()"), 20) as worker:
        raise KeyboardInterrupt
    assert worker._process.returncode == -9


def test_task_survives_the_command_line():
    task = Task("produce", "kafkacore", "t", 1, 10, 100, {"acks": 1}, other_topics=("a", "b"))
    assert Task.from_json(task.to_json()) == task


METERED = """
import json, os
from kafkacore.bench.meter import Meter
from kafkacore.process_statistics import process_cpu_seconds
meter = Meter()
held = bytearray(64 << 20)
while process_cpu_seconds(os.getpid()) is not None and meter.stop()["cpu_s"] < 0.02:
    held[0] ^= 1
print(json.dumps(meter.stop()))
"""


def test_meter_sees_processor_time_and_memory_of_what_was_done():
    # Use a separate process, because libraries that other tests loaded may release memory at any time.
    used = json.loads(subprocess.check_output(python(METERED)))
    assert used["seconds"] > 0
    assert used["cpu_s"] >= 0.02
    assert used["peak_rss_mib"] - used["start_rss_mib"] > 60


def test_machine_is_described_in_words():
    found = describe_machine()
    assert found["cores"] >= 1
    assert found["python"] in found["words"]


@pytest.mark.parametrize(
    ("classpath", "environment", "sentence"),
    [
        (None, {}, "set KAFKA_HOME"),
        (None, {"KAFKA_HOME": "/nowhere"}, "no kafka-clients jar"),
        ("/nowhere/*", {}, "matches no file"),
        (os.path.dirname(__file__), {"PATH": "/nowhere"}, "install a JDK"),
    ],
)
def test_missing_java_is_named_with_what_to_install(tmp_path: Path, classpath, environment, sentence):
    with pytest.raises(JavaMissing, match=sentence):
        JavaClient(tmp_path, classpath, environment)
