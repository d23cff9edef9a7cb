"""The broker as a process: it reports when it is ready, stops when asked, and never outlives its parent."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from eventually import BUDGET_S, eventually
from model.raw_line import Line

from kafkacore.broker.process.process import BrokerProcess, BrokerProcessError
from kafkacore.errors import KafkaConfigurationError

COMMAND = [sys.executable, "-m", "kafkacore.broker"]


def api_versions_error(port: int, version: int) -> int:
    """Send a hand-made ApiVersions request, and return the error code of the response."""
    with Line(f"127.0.0.1:{port}") as line:
        line.say_bytes(struct.pack(">hhih", 18, version, 7, -1))
        correlation_id, error = struct.unpack_from(">ih", line.hear_bytes())
        assert correlation_id == 7
        return int(error)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_broker_serves_when_start_returns_and_ends_with_its_block(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        assert broker.bootstrap_servers == f"127.0.0.1:{broker.port}"
        assert broker.port > 0
        assert api_versions_error(broker.port, 0) == 0
        assert api_versions_error(broker.port, 99) == 35
        pid = broker.pid
        assert is_alive(pid)
        assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    assert not is_alive(pid)
    assert broker.log_path.exists()


def test_bytes_that_are_no_request_cost_their_sender_the_connection_and_a_line_of_the_log(
    tmp_path: Path,
) -> None:
    junk = [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
        struct.pack(">i", -1),
        struct.pack(">i", 2**31 - 1) + b"x" * 1000,
        struct.pack(">i", 0),
        struct.pack(">ihhih", 10, 3, 9, 1, 100),
        struct.pack(">ihhih", 10, 999, 0, 1, -1),
    ]
    with BrokerProcess(tmp_path) as broker:
        for sent in junk:
            with socket.create_connection(("127.0.0.1", broker.port), timeout=BUDGET_S) as client:
                client.sendall(sent)
                try:
                    assert client.recv(1) == b""
                except ConnectionResetError:
                    continue
        assert api_versions_error(broker.port, 0) == 0
        warnings = [line for line in broker.log_tail(100).splitlines() if " WARNING " in line]
        assert len(warnings) == len(junk)


def test_restart_keeps_folder_port_and_cluster(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        before = (broker.port, broker.cluster_id, broker.pid)
        broker.kill()
        assert not broker.is_running
        broker.start()
        assert (broker.port, broker.cluster_id) == before[:2]
        assert broker.pid != before[2]
        broker.restart()
        assert (broker.port, broker.cluster_id) == before[:2]
        assert api_versions_error(broker.port, 0) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_the_broker_with_status_0(tmp_path: Path, number: signal.Signals) -> None:
    process = subprocess.Popen(
        [*COMMAND, "--data-dir", str(tmp_path), "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert ready["event"] == "ready"
        assert ready["pid"] == process.pid
        assert ready["data_dir"] == str(tmp_path)
        # A client with a half-sent request does not delay the stop.
        with socket.create_connection((ready["host"], ready["port"])) as client:
            client.sendall(b"\0")
            process.send_signal(number)
            assert process.wait(BUDGET_S) == 0


def test_broker_stops_when_its_parent_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from kafkacore.broker.process.process import BrokerProcess\n"
        f"broker = BrokerProcess({str(tmp_path)!r}).start()\n"
        "print(broker.pid, broker.port, flush=True)\n"
        "sys.stdin.read()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with parent:
        assert parent.stdout is not None
        pid, port = map(int, parent.stdout.readline().split())
        assert api_versions_error(port, 0) == 0
        parent.kill()
        parent.wait(BUDGET_S)
    eventually(lambda: not is_alive(pid), "the broker outlives its parent")


def test_second_broker_on_the_same_folder_is_refused_with_the_reason(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as first:
        with pytest.raises(BrokerProcessError, match=r"status 1(.|\n)*another broker") as refused:
            BrokerProcess(tmp_path).start()
        assert str(first.log_path) in str(refused.value)
        assert api_versions_error(first.port, 0) == 0


def test_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BrokerProcessError, match="cannot start"):
            BrokerProcess(tmp_path, listen=f"127.0.0.1:{port}").start()


def test_wrong_configuration_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(KafkaConfigurationError, match="unknown broker property"):
        BrokerProcess(tmp_path, no_such_thing=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--listen", "0.0.0.0:0"], "allow.remote"),
        (["--config", "num.partitions"], "NAME=VALUE"),
        (["--config", "nonsense=1"], "unknown broker property"),
    ],
)
def test_wrong_arguments_are_answered_with_a_sentence_and_status_2(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    done = subprocess.run(
        [*COMMAND, "--data-dir", str(tmp_path), *arguments],
        capture_output=True,
        text=True,
        timeout=BUDGET_S,
    )
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_broker_that_was_never_started_has_no_address(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path)
    with pytest.raises(BrokerProcessError, match="not been started"):
        _ = broker.bootstrap_servers
    broker.stop()
    broker.kill()
    assert not broker.is_running


def test_broker_may_open_as_many_files_as_the_system_lets_it(tmp_path):
    with BrokerProcess(tmp_path / "data") as broker:
        limits = Path(f"/proc/{broker.pid}/limits").read_text().splitlines()
    soft, hard = next(line for line in limits if line.startswith("Max open files")).split()[3:5]
    assert soft == hard


def test_forked_child_that_leaves_the_block_leaves_the_broker_alone(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        child = os.fork()
        if child == 0:
            try:
                broker.__exit__(None, None, None)
            finally:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert broker.is_running
        with socket.create_connection((broker.host, broker.port), timeout=BUDGET_S):
            pass


def test_configured_listeners_keep_their_ports_and_others_take_free_ones(tmp_path: Path) -> None:
    listeners = "INSIDE://127.0.0.1:19092,OUTSIDE://127.0.0.1:19093"
    names = "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT"
    configured = BrokerProcess(tmp_path, listeners=listeners, listener_security_protocol_map=names)
    assert [each.port for each in configured.config.node_listeners] == [19092, 19093]
    assert [each.port for each in BrokerProcess(tmp_path).config.node_listeners] == [0]
