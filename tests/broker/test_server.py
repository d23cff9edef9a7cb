"""The broker as a whole in this process: what a start that fails leaves behind, what a failure ends."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from kafkacore.broker.config import BrokerConfig
from kafkacore.broker.server import EXIT_CLEAN, EXIT_FAILED, KafkaBroker, run_broker
from kafkacore.broker.socket_server import SocketServer
from kafkacore.errors import KafkaConfigurationError


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


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
    assert (threading.active_count(), open_files()) == (threads, files)


def test_failed_start_leaves_no_thread_and_no_file_open(tmp_path: Path) -> None:
    with KafkaBroker(config(tmp_path)):
        threads, files = threading.active_count(), open_files()
        with pytest.raises(KafkaConfigurationError, match="another broker"):
            KafkaBroker(config(tmp_path)).start()
        assert (threading.active_count(), open_files()) == (threads, files)


def test_damaged_state_beside_the_logs_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "producer-ids.json").write_text("{")
    files = open_files()
    assert run_broker(config(tmp_path)) == EXIT_FAILED
    assert open_files() == files


def test_run_broker_stops_when_asked_and_puts_the_signal_handlers_back(tmp_path: Path) -> None:
    files = open_files()
    ports: list[int] = []

    def on_ready(broker: KafkaBroker) -> None:
        ports.append(broker.port)
        broker.request_stop()

    assert run_broker(config(tmp_path), on_ready=on_ready) == EXIT_CLEAN
    assert ports[0] > 0
    assert open_files() == files


def test_failure_of_the_network_thread_is_the_end_of_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(SocketServer, "poll", fail)
    assert run_broker(config(tmp_path)) == EXIT_FAILED
    assert '"event": "ready"' in capsys.readouterr().out
