"""docs/BROKER.md says of each property what the broker has of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]
DOCUMENT = PROJECT / "docs" / "BROKER.md"


def test_tables_are_those_of_the_broker() -> None:
    done = subprocess.run(
        [sys.executable, "tools/broker_properties.py", "--check"], cwd=PROJECT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_first_paragraph_says_what_this_broker_is_not() -> None:
    first = DOCUMENT.read_text(encoding="utf-8").split("\n\n")[1]
    assert "not a cluster: nothing is replicated" in first
    assert "run Apache Kafka: point `bootstrap_servers` there" in first
