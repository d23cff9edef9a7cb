"""mypy checks the settings in the constructor call of a client."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3]
CALLS = """
from kafkacore import KafkaConsumer, KafkaProducer
from kafkacore.admin import KafkaAdminClient

KafkaProducer(bootstrap_servers=["a:1"], linger_ms=5, acks="all", key_serializer=str.encode)
KafkaConsumer("topic", group_id="g", auto_offset_reset="earliest", max_poll_records=10)
KafkaAdminClient(bootstrap_servers="a:1", request_timeout_ms=1000)
KafkaProducer(compression_type="zstd", value_serializer=None)
KafkaProducer(linger=5)
KafkaProducer(linger_ms="5")
KafkaProducer(compression_type="brotli")
KafkaConsumer("topic", group="g")
KafkaConsumer("topic", enable_auto_commit="yes")
KafkaAdminClient(acks=1)
"""
#: Line of each call that mypy must reject, and the argument that its message names.
WRONG = {
    9: "linger",
    10: "linger_ms",
    11: "compression_type",
    12: "group",
    13: "enable_auto_commit",
    14: "acks",
}


def test_unknown_and_mistyped_settings_fail(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    file = tmp_path / "calls.py"
    file.write_text(CALLS)
    command = ["-m", "mypy", "--config-file=", "--follow-imports=silent", "--no-error-summary", str(file)]
    done = subprocess.run(
        [sys.executable, *command], cwd=PROJECT / "src", capture_output=True, text=True, check=False
    )
    errors = [line.split(":", 3) for line in done.stdout.splitlines() if ": error:" in line]
    assert {int(line): WRONG[int(line)] for _, line, _, text in errors if WRONG[int(line)] in text} == WRONG
    assert len(errors) == len(WRONG), done.stdout
