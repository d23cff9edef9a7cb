"""The pre-commit hooks run the same commands as ``make lint``."""

from __future__ import annotations

import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]


def test_hooks_run_the_commands_of_make_lint() -> None:
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    commands = re.findall(r"\$\(BIN\)/((?!\").+)", recipe[1])
    assert len(commands) > 5
    hooks = re.findall(r"^ +entry: (.+)$", (PROJECT / ".pre-commit-config.yaml").read_text(), re.MULTILINE)
    for command in commands:
        # pre-commit passes the files itself, so the last argument is left out.
        bare = re.sub(r" (\.|src)$", "", command)
        assert any(f".venv/bin/{bare}" in hook for hook in hooks), command
