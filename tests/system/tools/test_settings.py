"""The files generated from the settings tables are up to date."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]


def test_generated_files_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "tools/settings.py", "--check"], cwd=PROJECT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
