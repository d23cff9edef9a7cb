"""Every benchmark runs by its own command on tiny inputs, and none is missing."""

from __future__ import annotations

import ast
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from eventually import BUDGET_S

PROJECT = Path(__file__).resolve().parents[2]
BENCH = PROJECT / "bench"
MEASURED = PROJECT / "docs" / "measured"
PEERS = ["confluent", "kafka-python", "aiokafka"]
pytestmark = pytest.mark.timeout(260)


def run(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=PROJECT,
        # A pytest inside the command is not a pytest-xdist worker, so it may measure.
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")},
        capture_output=True,
        text=True,
        timeout=4 * BUDGET_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def written_benchmarks() -> set[str]:
    """Return ``file.py::test`` of every benchmark under bench/micro."""
    return {
        f"{path.name}::{node.name}"
        for path in (BENCH / "micro").glob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def command_of_make_bench() -> list[str]:
    """Return the arguments of ``python`` in the last line of the Makefile's ``bench`` rule."""
    lines = (PROJECT / "Makefile").read_text().splitlines()
    rule = next(at for at, line in enumerate(lines) if line.startswith("bench:"))
    end = next(at for at in range(rule, len(lines)) if not lines[at].strip())
    return shlex.split(lines[end - 1].strip().removeprefix("$(BIN)/python ").removesuffix(" $(BENCH_ARGS)"))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def pages(results: Path) -> Path:
    """Return a copy of docs/measured, whose tables the run replaces."""
    return Path(shutil.copytree(MEASURED, results / "measured"))


@pytest.fixture(scope="module")
def result(results: Path, pages: Path) -> dict[str, object]:
    """Run the command of ``make bench`` on tiny inputs with the embedded broker, and return its result."""
    run(*command_of_make_bench(), "--small", "--embedded", f"--results={results}", f"--pages={pages}")
    (written,) = results.glob("*.json")
    return json.loads(written.read_text())


def test_every_micro_benchmark_runs_by_the_command_of_make_bench(result):
    ran = result["micro"]
    assert {each["name"].split("[")[0] for each in ran} == written_benchmarks()
    assert all(each["extra_info"] for each in ran), "each must report its figure in a useful unit"


def test_matrix_measures_every_case_and_peer(result):
    entries = result["macro"]["results"]
    assert not [entry for entry in entries if entry["void"]]
    cases = {(entry["mode"], entry["codec"], entry["partitions"]) for entry in entries}
    assert {("produce", codec, count) for codec in ("none", "lz4", "zstd") for count in (1, 6)} <= cases
    assert {"consume", "arrow-produce", "arrow-consume", "roundtrip", "broker-produce"} <= {
        mode for mode, *_ in cases
    }
    assert set(PEERS) <= {entry["peer"] for entry in entries}
    assert result["machine"]["words"]
    assert "confluent-kafka" in result["macro"]["versions"]


def test_tables_of_the_pages_are_made_from_the_result(result, pages):
    clients, parts = ((pages / name).read_text() for name in ("clients.md", "parts.md"))
    assert result["commit"] in clients
    assert "| produce, lz4, 6 partitions, 200 | confluent |" in clients
    assert "| crc32c of 1024 bytes |" in parts
    assert clients.count("<!-- clients: made by bench/report.py -->") == 1
    assert clients.endswith((MEASURED / "clients.md").read_text().partition("<!-- end of clients -->")[2])


@pytest.mark.parametrize(
    "script", ["flatness.py", "memory.py", "memory.py --arrow"], ids=lambda script: script.replace(" ", "")
)
def test_script_of_its_own_runs(script):
    name, *arguments = script.split()
    assert run(str(BENCH / "macro" / name), "--embedded", "--small", *arguments)


def test_broker_is_measured_beside_apache_kafka_in_every_row(tmp_path):
    pages = Path(shutil.copytree(MEASURED, tmp_path / "measured"))
    shown = run(str(BENCH / "macro" / "broker.py"), "--small", f"--results={tmp_path}", f"--pages={pages}")
    (written,) = tmp_path.glob("*-broker.json")
    result = json.loads(written.read_text())["broker"]
    assert [row["what"] for row in result["rows"]] == ["produce", "consume", "latency"]
    for row in result["rows"]:
        assert set(row["runs"]) == set(row["median"]) == {"embedded broker", "Apache Kafka 4.3.1"}
        assert all(one["records_per_s"] > 0 for many in row["runs"].values() for one in many)
    of_both = ("ready_s", "resident_mib after a million records")
    assert {f"{what}, {side}" for what in of_both for side in result["sides"]} < set(result["resources"])
    assert "idle connections" in " ".join(result["resources"])
    assert "SIGKILL" in " ".join(result["resources"])
    for line in ("| produce | 100 B, 16 KiB, 1 partition |", "| consume | 100 B", "| 100 B, 1 partition | "):
        assert line in shown
    text = (pages / "broker.md").read_text()
    assert text.partition("<!-- broker: made by bench/report.py -->")[2].strip().startswith(shown.strip())
    assert text.count("<!-- end of broker -->") == 1


def test_brokers_are_compared_in_transactions(tmp_path):
    pages = Path(shutil.copytree(MEASURED, tmp_path / "measured"))
    script = str(BENCH / "macro" / "transactions.py")
    shown = run(script, "--small", f"--results={tmp_path}", f"--pages={pages}")
    (written,) = tmp_path.glob("*-transactions.json")
    for row in json.loads(written.read_text())["transactions"]["rows"]:
        assert list(row["median"]) == ["flush=os", "flush=ack", "Apache Kafka 4.3.1"]
        assert all(figures["records_per_s"] > 0 for figures in row["median"].values())
        assert f"| {row['size']} B | flush=ack | " in shown
    assert shown.strip() in (pages / "broker.md").read_text()


def test_brokers_are_compared_in_consumer_groups(tmp_path):
    pages = Path(shutil.copytree(MEASURED, tmp_path / "measured"))
    script = str(BENCH / "macro" / "consumer_groups.py")
    shown = run(script, "--small", f"--results={tmp_path}", f"--pages={pages}")
    (written,) = tmp_path.glob("*-consumer-groups.json")
    result = json.loads(written.read_text())["consumer_groups"]
    for row in [*result["heartbeats"], result["one_more"]]:
        assert list(row["median"]) == ["embedded broker", "Apache Kafka 4.3.1"]
    for row in result["heartbeats"]:
        assert all(figures["heartbeats_per_s"] > 0 for figures in row["median"].values())
        assert f"| {row['what']} | embedded broker | " in shown
    assert all(figures["kept"] > 0 for figures in result["one_more"]["median"].values())
    assert shown.strip() in (pages / "broker.md").read_text()


def test_start_of_clients_is_compared(tmp_path):
    pages = Path(shutil.copytree(MEASURED, tmp_path / "measured"))
    script = str(BENCH / "macro" / "startup.py")
    shown = run(script, "--small", f"--results={tmp_path}", f"--pages={pages}")
    (written,) = tmp_path.glob("*-startup.json")
    medians = json.loads(written.read_text())["startup"]["median"]
    assert list(medians) == ["kafkacore", "confluent", "kafka-python"]
    for name, figures in medians.items():
        assert 0 < figures["created_cpu_ms"] < figures["acknowledged_cpu_ms"]
        assert f"| {name} | " in shown
    assert shown.strip() in (pages / "clients.md").read_text()


def test_clients_are_compared_at_low_rates(tmp_path):
    pages = Path(shutil.copytree(MEASURED, tmp_path / "measured"))
    script, chart = str(BENCH / "macro" / "low_rates.py"), tmp_path / "chart.png"
    shown = run(script, "--small", f"--results={tmp_path}", f"--pages={pages}", f"--chart={chart}")
    (written,) = tmp_path.glob("*-low-rates.json")
    rows = json.loads(written.read_text())["low_rates"]["rows"]
    clients = {}
    for row in rows:
        assert not row["void"]
        clients.setdefault((row["broker"], row["transport"]), []).append(row["peer"])
        median = row["median"]
        assert 0 < median["acknowledged_ms"]["p50"] <= median["acknowledged_ms"]["p99"]
        assert median["producer_cpu_s_per_million"] > 0
        if row["broker"] != "flush=ack":
            assert 0 < median["latency_ms"]["p50"] <= median["latency_ms"]["p99"]
            assert median["consumer_cpu_s_per_million"] > 0
        assert f"| {row['broker']}, {row['transport']} | {row['peer']} | " in shown
    assert clients == {
        ("embedded broker", "TLS"): ["kafkacore", "confluent"],
        ("flush=ack", "TLS"): ["kafkacore"],
        ("embedded broker and a computing thread", "TLS"): ["kafkacore", "confluent"],
        ("Apache Kafka 4.3.1", "TLS"): ["kafkacore", "confluent"],
    }
    assert chart.read_bytes().startswith(b"\x89PNG")
    assert shown.strip() in (pages / "low-rates.md").read_text()


def test_asyncio_clients_are_compared(tmp_path):
    pages = Path(shutil.copytree(MEASURED, tmp_path / "measured"))
    script = str(BENCH / "macro" / "asyncio_clients.py")
    shown = run(script, "--small", "--sides=embedded", f"--results={tmp_path}", f"--pages={pages}")
    (written,) = tmp_path.glob("*-asyncio.json")
    rows = json.loads(written.read_text())["asyncio_clients"]["rows"]
    assert [row["work"] for row in rows] == [
        *("gather", "tasks", "batch", "each", "paced", "debug", "fastapi", "iterate")
    ]
    for row in rows:
        others = [] if row["work"] == "debug" else ["aiokafka", "confluent"]
        assert list(row["median"]) == ["kafkacore", *others]
        for client, figures in row["median"].items():
            assert figures["cpu_s_per_million"] > 0
            assert ("slow_callbacks" in figures) == (row["work"] == "debug")
            if row["work"] in ("paced", "fastapi"):
                assert 0 < figures["p50_ms"] <= figures["p99_ms"]
            assert f"| {row['work']} | embedded broker | {client} | " in shown
    assert shown.strip() in (pages / "asyncio.md").read_text()


def test_command_line_is_measured(tmp_path):
    pages = Path(shutil.copytree(MEASURED, tmp_path / "measured"))
    shown = run(str(BENCH / "macro" / "cli.py"), "--small", f"--results={tmp_path}", f"--pages={pages}")
    (written,) = tmp_path.glob("*-cli.json")
    for row in json.loads(written.read_text())["cli"]["rows"]:
        assert row["median"]["kafkacore"]["cpu_s"] > 0
        assert f"| {row['what']} | " in shown
    assert shown.strip() in (pages / "clients.md").read_text()


def test_assignors_are_compared_with_those_of_apache_kafka(tmp_path):
    output = tmp_path / "assignors.json"
    shown = run(str(BENCH / "macro" / "assignors.py"), "--small", f"--output={output}")
    rows = json.loads(output.read_text())["assignors"]
    assert {row["what"].split(",")[0] for row in rows} == {"uniform", "range"}
    for row in rows:
        assert list(row["median"]) == ["kafkacore", "Apache Kafka 4.3.1"]
        assert row["what"] in shown


def test_no_script_is_left_out():
    known = {"setting.py", "run.py", "flatness.py", "memory.py", "spark.py", "broker.py", "transactions.py"}
    known |= {"consumer_groups.py", "assignors.py", "startup.py", "low_rates.py", "cli.py"}
    known |= {"asyncio_clients.py", "asyncio_worker.py", "http_load.py"}
    assert {path.name for path in (BENCH / "macro").glob("*.py")} == known


def test_command_shows_a_table_and_writes_json_and_a_chart(our_broker, tmp_path):
    shown = run(
        *("-m", "kafkacore.cli.main", "bench", "arrow", "--bootstrap", our_broker.bootstrap_servers),
        *("--peers", "confluent", "--records", "2000", "--rounds", "1"),
        *("--output", str(tmp_path / "result.json"), "--chart", str(tmp_path / "chart.png")),
    )
    assert "kafkacore-arrow" in shown
    assert "CPU s/M" in shown
    result = json.loads((tmp_path / "result.json").read_text())
    assert {"command", "machine", "versions", "missing", "options", "results"} <= set(result)
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


def test_committed_results_are_small_and_whole():
    for path in (BENCH / "results").glob("*.json"):
        text = path.read_text()
        assert len(text) < 400_000, path
        assert {"date", "commit", "command", "machine"} <= set(json.loads(text))
        assert '"/' not in text, f"{path} contains a path of the machine it was measured on"
