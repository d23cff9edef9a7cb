"""docs/BROKER.md says of each property what the broker has of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]


def test_tables_are_those_of_the_broker() -> None:
    done = subprocess.run(
        [sys.executable, "tools/broker_properties.py", "--check"], cwd=PROJECT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
