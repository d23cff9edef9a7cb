"""`kafkacore bench latency --stages`, and the stamps of real clients."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections import Counter
from pathlib import Path

import pytest
from eventually import BUDGET_MS, BUDGET_S

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.bench.stages import ACKNOWLEDGED, RECEIVED, Stamp, TraceStage, received_records, sent_records
from kafkacore.wire import _trace


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kafkacore", "bench", *arguments],
        capture_output=True,
        text=True,
        timeout=4 * BUDGET_S,
        check=False,
    )


def test_command_shows_each_stage_and_draws_them(our_broker, tmp_path: Path):
    file, chart = tmp_path / "result.json", tmp_path / "chart.png"
    done = bench(
        *("latency", "--stages", "-b", our_broker.bootstrap_servers, "--rate", "1000", "--records", "200"),
        *("--rounds", "1", "--output", str(file), "--chart", str(chart)),
    )
    assert done.returncode == 0, done.stderr
    (entry,) = json.loads(file.read_text())["results"]
    assert entry["rate"] == 1000
    assert entry["settings"]["producer"]["linger_ms"] == 0
    stages = entry["median"]["stages_us"]
    assert {path: [*of] for path, of in stages.items()} == {
        "acknowledged": [*ACKNOWLEDGED, "total"],
        "received": [*RECEIVED, "total"],
    }
    for path, latency in (("acknowledged", "acknowledged_ms"), ("received", "latency_ms")):
        assert all(0 <= each["p50"] <= each["p99"] for each in stages[path].values())
        # The measurement itself ends at the callback, after the future was completed.
        assert stages[path]["total"]["p50"] <= entry["median"][latency]["p50"] * 1000 + 1
    for stage in (*ACKNOWLEDGED, *RECEIVED):
        assert stage in done.stdout
    assert chart.read_bytes().startswith(b"\x89PNG")


def test_without_stages_only_the_whole_latency_is_shown(our_broker):
    done = bench(
        *("latency", "-b", our_broker.bootstrap_servers, "--rate", "1000", "--records", "100"),
        *("--rounds", "1", "--json"),
    )
    assert done.returncode == 0, done.stderr
    (entry,) = json.loads(done.stdout)["results"]
    assert "stages_us" not in entry["median"]


@pytest.mark.parametrize("mode", ["roundtrip", "spark"])
def test_stages_of_another_mode_are_refused(mode):
    done = bench(mode, "--stages")
    assert done.returncode != 0
    assert "bench latency" in done.stderr


def test_stamps_of_each_record_are_in_order(our_broker):
    settings = our_broker.client_settings()
    topic = f"stages-{uuid.uuid4().hex}"
    partition = TopicPartition(topic, 0)
    with (
        KafkaProducer(**settings, linger_ms=0) as producer,
        KafkaConsumer(**settings, auto_offset_reset="earliest") as consumer,
    ):
        consumer.assign([partition])
        _trace.start(100_000)
        try:
            for number in range(20):
                # Some batches have one record, and some have several.
                for future in [producer.send(topic, b"x") for _ in range(number % 3 + 1)]:
                    future.get(BUDGET_S)
        finally:
            found = _trace.stop()
        sent = sent_records(list(map(Stamp._make, found[0])))
        assert len(sent) == sum(number % 3 + 1 for number in range(20))
        for times in sent:
            assert list(times) == sorted(times)

        _trace.start(100_000)
        try:
            count = 0
            while count < len(sent):
                count += len(consumer.poll(BUDGET_MS).get(partition, ()))
            producer.send(topic, b"x").get(BUDGET_S)
            assert consumer.poll(BUDGET_MS)
        finally:
            stamps = list(map(Stamp._make, _trace.stop()[0]))
        (times,) = received_records(stamps, [stamps[-1].at_ns])
        assert list(times) == sorted(times)
        assert Counter(stamp.stage for stamp in stamps)[TraceStage.SEND_CALLED] == 1
