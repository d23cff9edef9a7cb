"""The asynchronous examples, each as a separate program with our broker."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO
from urllib.error import URLError

import pytest
from eventually import BUDGET_S, eventually
from peers.apache_kafka import free_ports
from websockets.sync.client import connect

from kafkacore import KafkaConsumer, KafkaProducer
from kafkacore.testing import EmbeddedBroker

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SUPPORT = Path(__file__).resolve().parents[1] / "support"
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts an example, which is killed at the end if it still runs."""
    started = []

    def start(name: str, *args: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-W", "error", str(EXAMPLES / name), *args]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def output_of(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None
    return process.stdout


def test_worker_finishes_what_it_has_read(our_broker: EmbeddedBroker, start: Start) -> None:
    servers = our_broker.bootstrap_servers
    with KafkaProducer(bootstrap_servers=servers) as producer:
        producer.send_batch("words", [b"one", b"two"]).get(timeout=BUDGET_S)
    worker = start("async_worker.py", servers, "words", "shouts", "shouters")
    assert [output_of(worker).readline() for _ in range(2)] == ["done: one\n", "done: two\n"]
    worker.send_signal(signal.SIGTERM)
    assert (output_of(worker).read(), worker.wait(BUDGET_S)) == ("stopped\n", 0)
    with KafkaConsumer("shouts", bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        found: list[bytes] = []
        while len(found) < 2:
            found += [one.value for each in consumer.poll(timeout_ms=1_000).values() for one in each]
    assert found == [b"ONE", b"TWO"]


def test_websockets_receive_every_record(our_broker: EmbeddedBroker, start: Start) -> None:
    servers, (port,) = our_broker.bootstrap_servers, free_ports(1)
    with KafkaProducer(bootstrap_servers=servers) as producer:
        producer.send("prices", b"before").get(timeout=BUDGET_S)
        fanout = start("websocket_fanout.py", servers, "prices", str(port))
        assert output_of(fanout).readline() == "ready\n"
        with connect(f"ws://localhost:{port}") as first, connect(f"ws://localhost:{port}") as second:
            received: list[str] = []

            def has_received() -> bool:
                # The consumer starts at the end of the topic, which it looks up after its start.
                producer.send("prices", b"9.99").get(timeout=BUDGET_S)
                try:
                    received.append(str(first.recv(timeout=0.1)))
                except TimeoutError:
                    return False
                return True

            eventually(has_received)
            assert {*received, second.recv(timeout=BUDGET_S)} == {"9.99"}
    fanout.send_signal(signal.SIGINT)
    assert fanout.wait(BUDGET_S) == 130


def test_application_produces_and_consumes(our_broker: EmbeddedBroker, start: Start) -> None:
    (port,) = free_ports(1)
    server = start("fastapi_app.py", our_broker.bootstrap_servers, "orders-of-app", str(port))

    def ask(path: str, body: bytes | None = None) -> dict[str, int]:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://localhost:{port}{path}", body, headers)
        with urllib.request.urlopen(request, timeout=BUDGET_S) as response:
            answer: dict[str, int] = json.load(response)
        return answer

    def is_up() -> bool:
        try:
            return ask("/count")["count"] >= 0
        except URLError:
            return False

    eventually(is_up)
    offsets = [ask("/orders", b'{"item": "tea"}')["offset"] for _ in range(3)]
    assert offsets == [0, 1, 2]

    def counts() -> bool:
        ask("/orders", b'{"item": "milk"}')
        return ask("/count")["count"] > 0

    eventually(counts)
    server.send_signal(signal.SIGTERM)
    server.wait(BUDGET_S)


def test_faststream_runs_on_kafkacore(our_broker: EmbeddedBroker, start: Start) -> None:
    servers = our_broker.bootstrap_servers
    with KafkaProducer(bootstrap_servers=servers) as producer:
        producer.send_batch("numbers", [b"2", b"3"]).get(timeout=BUDGET_S)
    app = start("faststream_app.py", servers, "numbers", "squares")
    with KafkaConsumer("squares", bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        found: list[bytes] = []
        while len(found) < 2:
            assert app.poll() is None
            found += [one.value for each in consumer.poll(timeout_ms=1_000).values() for one in each]
    assert found == [b"4", b"9"]
    app.send_signal(signal.SIGTERM)
    app.wait(BUDGET_S)


def test_each_kind_of_subscriber_of_faststream_receives_its_messages(our_broker: EmbeddedBroker) -> None:
    command = [sys.executable, "-m", "model.faststream_program", our_broker.bootstrap_servers, "streamed"]
    done = subprocess.run(
        command, cwd=SUPPORT, stdout=subprocess.PIPE, text=True, timeout=BUDGET_S, check=True
    )
    sent = [f"message {number}" for number in range(5)]
    # The lines before are FastStream's log.
    kinds = ("single", "batches", "partition", "workers")
    assert json.loads(done.stdout.splitlines()[-1]) == dict.fromkeys(kinds, sent)


def test_records_are_as_open_as_those_of_aiokafka(our_broker: EmbeddedBroker) -> None:
    command = [sys.executable, "-m", "model.aiokafka_records", our_broker.bootstrap_servers, "open-records"]
    subprocess.run(command, cwd=SUPPORT, timeout=BUDGET_S, check=True)


def test_names_of_aiokafka_are_not_mixed() -> None:
    code = "import aiokafka, kafkacore.aio.as_aiokafka"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith("import kafkacore.aio.as_aiokafka before it\n")
