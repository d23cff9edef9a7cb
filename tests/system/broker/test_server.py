"""The whole broker in this process: cleanup after a failed start, and the effect of an internal error."""

from __future__ import annotations

import logging
import os
import socket
import threading
from pathlib import Path

import pytest
from eventually import BUDGET_S
from peers.config_requests import BROKER, TOPIC, Change, config_requests

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.process.run import EXIT_CLEAN, EXIT_FAILED, run_broker
from kafkacore.broker.process.server import KafkaBroker
from kafkacore.broker.server.socket_server import SocketServer
from kafkacore.errors import KafkaConfigurationError


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def is_no_more_than(threads: int, files: int) -> bool:
    """Return whether there are at most so many threads and open files.

    There may be fewer, because leftovers of another test can end at any time.
    """
    return threading.active_count() <= threads and open_files() <= files


def config(folder: Path) -> BrokerConfig:
    return BrokerConfig(data_dir=folder, port=0)


def test_stopped_broker_leaves_no_thread_and_no_file_open(tmp_path: Path) -> None:
    threads, files = threading.active_count(), open_files()
    for _ in range(3):
        with KafkaBroker(config(tmp_path)) as broker:
            assert broker.is_running
            socket.create_connection(("127.0.0.1", broker.port)).close()
            assert "kafka-broker-network" in {thread.name for thread in threading.enumerate()}
        assert not broker.is_running
        broker.stop()
    assert is_no_more_than(threads, files)


def test_failed_start_leaves_no_thread_and_no_file_open(tmp_path: Path) -> None:
    with KafkaBroker(config(tmp_path)):
        threads, files = threading.active_count(), open_files()
        with pytest.raises(KafkaConfigurationError, match="another broker"):
            KafkaBroker(config(tmp_path)).start()
        assert is_no_more_than(threads, files)


def test_damaged_state_beside_the_logs_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "producer-ids.json").write_text("{")
    files = open_files()
    assert run_broker(config(tmp_path)) == EXIT_FAILED
    assert open_files() <= files


def test_program_without_log_handlers_is_told_why_its_broker_does_not_start(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(logging.getLogger("kafkacore"), "handlers", [logging.NullHandler()])
    (tmp_path / "producer-ids.json").write_text("{")
    assert run_broker(config(tmp_path)) == EXIT_FAILED
    said = capfd.readouterr().err
    assert said.startswith("kafkacore broker: cannot start: ")
    assert str(tmp_path / "producer-ids.json") in said


def test_run_broker_stops_when_asked_and_puts_the_signal_handlers_back(tmp_path: Path) -> None:
    files = open_files()
    ports: list[int] = []

    def on_ready(broker: KafkaBroker) -> None:
        ports.append(broker.port)
        broker.request_stop()

    assert run_broker(config(tmp_path), on_ready=on_ready) == EXIT_CLEAN
    assert ports[0] > 0
    assert open_files() <= files


def test_failure_of_the_network_thread_is_the_end_of_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(SocketServer, "run", fail)
    assert run_broker(config(tmp_path)) == EXIT_FAILED
    assert '"event": "ready"' in capsys.readouterr().out


def test_what_is_changed_while_it_runs_is_obeyed_and_outlives_it(tmp_path: Path) -> None:
    changed = {"message.max.bytes": "2000", "max.connections": "2"}
    with KafkaBroker(config(tmp_path)) as broker, config_requests(broker.bootstrap_servers) as requests:
        for name, value in changed.items():
            assert requests.change([Change(BROKER, "", name, value)]) == [None]
        address = ("127.0.0.1", broker.port)
        with (
            socket.create_connection(address),
            socket.create_connection(address, timeout=BUDGET_S) as refused,
        ):
            assert refused.recv(1) == b""
    with KafkaBroker(config(tmp_path)) as broker, config_requests(broker.bootstrap_servers) as requests:
        assert requests.create({"t": {}}) == [None]
        (entries,) = requests.describe([(TOPIC, "t")])
        assert (entries["max.message.bytes"].value, entries["max.message.bytes"].source) == ("2000", 3)
        (entries,) = requests.describe([(BROKER, "")])
        assert {name: entry.value for name, entry in entries.items()} == changed
