"""The examples run unchanged, each as a separate program with our broker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from eventually import BUDGET_S, eventually

from kafkacore.testing.embedded_broker import EmbeddedBroker

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
#: Examples that need Spark or Apache Kafka (tests/system/spark and tests/system/integration run them), and
#: the asynchronous ones (tests/system/test_asyncio_examples.py).
ELSEWHERE = {
    "async_worker.py",
    "fastapi_app.py",
    "faststream_app.py",
    "websocket_fanout.py",
    "spark_stream.py",
    "spark_backfill.py",
    "spark_etl.py",
    "spark_lakehouse.py",
    "transactions.py",
}


def run_example(name: str, *args: str) -> list[str]:
    """Run the example, and return its output lines. It must succeed in time and without a warning."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *args]
    done = subprocess.run(command, capture_output=True, timeout=BUDGET_S, check=False)
    assert (done.returncode, done.stderr.decode()) == (0, "")
    return done.stdout.decode().splitlines()


@pytest.fixture(scope="module")
def greeted(our_broker: EmbeddedBroker) -> list[str]:
    """Return the arguments for a topic that the producer example has written."""
    arguments = [our_broker.bootstrap_servers, "greetings"]
    assert run_example("produce.py", *arguments) == [f"greetings partition 0 offset {n}" for n in range(10)]
    return arguments


def test_consume_prints_what_produce_sent(greeted: list[str]) -> None:
    expected = [f"0 {n} b'{n}' b'hello {n}'" for n in range(10)]

    def prints_all() -> bool:
        # On a busy machine the example may give up before a record arrives, because it waits for a second.
        shown = run_example("consume.py", *greeted)
        assert shown == expected[: len(shown)]
        return shown == expected

    eventually(prints_all)


def test_arrow_reads_what_produce_sent(greeted: list[str]) -> None:
    lines = run_example("arrow.py", *greeted)
    assert lines[-1].startswith("10 records, ")
    assert "value: binary" in lines


def test_group_shares_what_produce_sent(greeted: list[str]) -> None:
    assert run_example("group.py", *greeted, "readers") == [f"0 {n} hello {n}" for n in range(10)]


def test_slow_handler_handles_what_produce_sent(greeted: list[str]) -> None:
    assert run_example("slow_handler.py", *greeted, "slow", "0") == [f"handled: hello {n}" for n in range(10)]


def test_own_mechanism_reads_the_password_that_is_there(tmp_path: Path) -> None:
    password = tmp_path / "password.txt"
    password.write_text("pencil\n")
    properties = {"sasl.enabled.mechanisms": "PLAIN", "sasl.user.alice": "pencil"}
    with EmbeddedBroker(security_protocol="SASL_PLAINTEXT", **properties) as broker:
        lines = run_example("own_mechanism.py", broker.bootstrap_servers, "vaulted", "alice", str(password))
    assert lines == ["vaulted partition 0 offset 0"]


@pytest.mark.parametrize("name", sorted(file.name for file in EXAMPLES.glob("*.py")))
def test_example_without_arguments_says_how_it_is_called(name: str) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / name], capture_output=True, timeout=BUDGET_S, check=False
    )
    said = done.stderr.decode()
    assert done.returncode == 1
    assert f"python examples/{name} " in said
    assert "Traceback" not in said


def test_every_example_is_run_by_a_test() -> None:
    tested = {"produce.py", "consume.py", "arrow.py", "own_mechanism.py", "group.py", "slow_handler.py"}
    tested |= ELSEWHERE
    assert {file.name for file in EXAMPLES.glob("*.py")} == tested
