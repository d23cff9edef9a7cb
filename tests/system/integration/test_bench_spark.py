"""``kafkacore bench spark`` on Apache Kafka: both sides read the same rows, and the table shows both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from eventually import BUDGET_S
from peers.apache_kafka import ApacheKafka
from peers.jars import spark_kafka_jars

from kafkacore.spark.session import SHORT_LIVED_JVM

REPORT = Path(__file__).resolve().parents[3] / "bench" / "report.py"


@pytest.mark.timeout(440)
def test_both_sides_are_measured_side_by_side(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    command = [sys.executable, "-m", "kafkacore.cli.main", "bench", "spark", "--rows", "json"]
    command += ["--bootstrap", apache_kafka.bootstrap_servers, "--records", "2000", "--rounds", "1"]
    command += ["--spark-kafka-jars", f"{spark_kafka_jars()}/*", "--output", str(target)]
    # In such a short run, the optimizing compiler would use most of the processor time.
    environment = {**os.environ, "SPARK_SUBMIT_OPTS": SHORT_LIVED_JVM}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=7 * BUDGET_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "worker MiB" in done.stdout
    result = json.loads(target.read_text())
    ours, theirs = result["results"]
    assert (ours["mode"], ours["peer"], ours["void"]) == ("spark-json", "kafkacore", None)
    assert (theirs["peer"], theirs["void"]) == ("spark-kafka", None)
    assert ours["records"] == 1_000
    assert ours["median"]["jvm_cpu_s_per_million"] > 0
    assert ours["median"]["python_cpu_s_per_million"] > 0
    assert "worker_peak_mib" not in theirs["median"]
    assert 'option("value.format", "json")' in ours["settings"]["query"]
    assert "from_json" in theirs["settings"]["query"]
    assert "spark-sql-kafka-0-10_2.13 (jar)" in result["versions"]
    assert_page_shows(result, tmp_path)


def assert_page_shows(result: dict[str, object], folder: Path) -> None:
    """Check that the table of docs/measured/spark.md can be made from these results."""
    whole = {
        "date": "2026-01-01",
        "commit": "abc",
        "command": "c",
        "machine": result["machine"],
        "spark": result,
    }
    (folder / "whole.json").write_text(json.dumps(whole))
    page = folder / "spark.md"
    page.write_text("before\n<!-- spark: made by bench/report.py -->\n<!-- end of spark -->\nafter\n")
    program = (
        "import json, sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import report;"
        "report.write(Path(sys.argv[3]), json.loads(Path(sys.argv[2]).read_text()))"
    )
    command = [sys.executable, "-c", program, str(REPORT.parent), str(folder / "whole.json"), str(folder)]
    subprocess.run(command, check=True, timeout=BUDGET_S)
    text = page.read_text()
    assert "| json: JSON to typed columns | 0.001 M | spark-kafka |" in text
    assert "mixed-version jar set" in text
    assert text.startswith("before\n")
    assert text.endswith("<!-- end of spark -->\nafter\n")
