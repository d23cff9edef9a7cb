"""Kafka's command-line tools, several in one JVM.

``jars.run_java`` runs a single tool, with standard input.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

from eventually import BUDGET_S
from peers.jars import JavaToolError, java_command


class Printed(NamedTuple):
    """The exit status of a tool and its output."""

    status: int
    out: str
    err: str


class JavaTools:
    """The running Java program (``java/Tools.java``)."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            java_command("Tools"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )

    def close(self) -> None:
        """Stop the program by closing its input."""
        self._process.communicate(timeout=BUDGET_S)

    def run(self, tool: str, *arguments: str) -> Printed:
        """Run one tool to its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([tool, *arguments]).encode() + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise JavaToolError(f"{tool} ended the JVM that ran it")
        return Printed(**json.loads(answer))


@contextlib.contextmanager
def started_java_tools() -> Iterator[JavaTools]:
    """Yield Kafka's tools in a JVM that is stopped at the end of the block."""
    with contextlib.closing(JavaTools()) as tools:
        yield tools
