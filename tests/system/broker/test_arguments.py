"""The command line of the broker process: precedence of settings, and messages for invalid arguments."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from eventually import BUDGET_S

from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.broker.__main__ import main
from kafkacore.broker.config.properties_file import parse_properties

COMMAND = [sys.executable, "-m", "kafkacore.broker", "--listen", "127.0.0.1:0"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(f"log.dirs={tmp_path}/data\nnum.partitions=3\nlog.retention.hours=1\nnum.io.threads=8\n")
    return path


def started(*arguments: str, **options: Any) -> tuple[subprocess.Popen[str], dict[str, str]]:
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())


def ended(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> str:
    """Stop the process with a signal, and return its standard error output."""
    process.send_signal(number)
    said = process.communicate(timeout=BUDGET_S)[1]
    assert process.returncode == 0, said
    return said


def test_flag_comes_before_override_that_before_the_file_that_before_the_default(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--config-file", str(file), "--override", "num.partitions=5", "--override", "flush=os"]
    assert main([*given, "--flush", "ack", "--print-config"]) == 0
    shown = capsys.readouterr().out
    properties = parse_properties(shown)
    assert (properties["num.partitions"], properties["flush"]) == ("5", "ack")
    assert properties["log.retention.ms"] == "3600000"
    assert "# num.io.threads=8 has no effect: one thread serves all requests" in shown
    origin = {line: block.splitlines()[0] for block in shown.split("\n\n") for line in block.splitlines()}
    assert origin["num.partitions=5"].endswith("--override")
    assert origin["flush=ack"] == "# --flush"
    assert origin["log.retention.ms=3600000"] == f"# {file}"
    assert origin["node.id=1"] == "# default"


def test_printed_configuration_is_a_config_file(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--config-file", str(file), "--print-config"]) == 0
    first = capsys.readouterr().out
    file.write_text(first)
    assert main(["--config-file", str(file), "--print-config", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert {name: entry["value"] for name, entry in again.items()} == parse_properties(first)
    assert {entry["source"] for entry in again.values()} == {str(file)}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no data folder: give --data-dir"),
        (["--ephemeral", "--data-dir", "x"], "remove --data-dir"),
        (["--data-dir", "x", "--override", "num.partitions"], "must be NAME=VALUE"),
        (["--data-dir", "x", "--override", "num.partitoins=1"], "did you mean num.partitions?"),
        (["--config-file", "/nowhere/server.properties"], "cannot be read: No such file"),
        (["--data-dir", "x", "--status-port", "70000"], "a port from 0 to 65535, or 'off'"),
    ],
)
def test_mistake_is_one_sentence_and_status_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_ephemeral_broker_leaves_nothing(number: signal.Signals) -> None:
    process, ready = started("--ephemeral")
    folder = Path(ready["data_dir"])
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir() if path.is_file()} == {0o600}
    said = ended(process, number)
    assert f"stopping: {number.name}" in said
    assert "flush=os" in said
    assert not folder.exists()


def test_ephemeral_broker_that_cannot_start_leaves_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [*COMMAND, "--ephemeral", "--ready-file", "/nowhere/ready"],
        capture_output=True, text=True, timeout=BUDGET_S, env=environment,
    )  # fmt: skip
    assert done.returncode == 1
    assert "cannot write the ready file /nowhere/ready: No such file" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_ready_file_is_there_while_clients_can_connect(tmp_path: Path) -> None:
    path = tmp_path / "ready"
    process, ready = started("--data-dir", str(tmp_path / "data"), "--ready-file", str(path))
    assert json.loads(path.read_text()) == ready
    ended(process)
    assert not path.exists()


def test_second_signal_does_not_break_the_close(tmp_path: Path) -> None:
    process, _ = started("--data-dir", str(tmp_path), "--json")
    with process:
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        events = [json.loads(process.stderr.readline())["event"] for _ in range(3)]
        assert events == ["loaded", "started", "stopping"]
        process.send_signal(signal.SIGINT)
        # communicate() would miss a line that readline() has read ahead.
        assert json.loads(process.stderr.read())["event"] == "closed"
        assert process.wait(BUDGET_S) == 0
    again, _ = started("--data-dir", str(tmp_path))
    assert "not closed cleanly" not in ended(again)


def test_topics_that_come_and_go_are_told(tmp_path: Path) -> None:
    process, ready = started("--data-dir", str(tmp_path), "--json")
    with KafkaAdminClient(bootstrap_servers=ready["bootstrap_servers"]) as admin:
        admin.create_topics([NewTopic("orders", num_partitions=3)])
        admin.delete_topics(["orders"])
    events = [json.loads(line) for line in ended(process).splitlines()]
    topic_events = [(each["event"], each["topic"]) for each in events if each["event"].startswith("topic_")]
    assert topic_events == [("topic_created", "orders"), ("topic_deleted", "orders")]


def test_hang_up_is_ignored_where_it_was_ignored_before(tmp_path: Path) -> None:
    process, _ = started(
        "--data-dir", str(tmp_path), preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    )
    process.send_signal(signal.SIGHUP)
    assert "stopping: SIGTERM" in ended(process)


def test_broker_that_was_killed_says_at_its_start_that_it_recovers(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    process, _ = started("--data-dir", str(tmp_path))
    process.kill()
    process.communicate(timeout=BUDGET_S)
    said = ended(started("--data-dir", str(tmp_path))[0])
    assert "loaded 1 topics with 1 partitions" in said
    assert "not closed cleanly" in said


# ---- Secure listeners ------------------------------------------------------------------------------------


def test_flag_of_a_protocol_makes_a_certificate_unless_there_is_a_key_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--data-dir", str(tmp_path), "--security-protocol", "ssl", "--print-config"]) == 0
    shown = parse_properties(capsys.readouterr().out)
    assert (shown["listeners"], shown["self.made.certificate"]) == ("SSL://127.0.0.1:9092", "true")
    own = ["--override", "ssl.keystore.location=/k.pem", "--print-config"]
    assert main(["--data-dir", str(tmp_path), "--security-protocol", "SSL", *own]) == 0
    assert parse_properties(capsys.readouterr().out)["self.made.certificate"] == "false"


def test_password_of_a_user_comes_from_the_environment_or_a_file_and_is_not_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["--data-dir", str(tmp_path), "--security-protocol", "SASL_SSL", "--print-config"]
    users = tmp_path / "users"
    users.write_text("bob=canary\n")
    monkeypatch.setenv("KAFKACORE_PASSWORD", "canary")
    assert main([*given, "--user", "alice", "--users-file", str(users)]) == 0
    said = capsys.readouterr().out
    assert "canary" not in said
    assert parse_properties(said)["sasl.user.alice"] == "[hidden]"
    assert parse_properties(said)["sasl.user.bob"] == "[hidden]"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--security-protocol", "SASL_SSL", "--user", "alice"], "set KAFKACORE_PASSWORD in the environment"),
        (["--users-file", "/nowhere/users"], "the users file /nowhere/users cannot be read"),
        (["--users-file", "/nowhere"], "cannot be read"),
    ],
)
def test_user_without_a_password_is_refused_with_where_to_put_it(
    tmp_path: Path,
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KAFKACORE_PASSWORD", raising=False)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    with pytest.raises(SystemExit):
        main(["--data-dir", str(tmp_path), *arguments, "--print-config"])
    assert words in capsys.readouterr().err
