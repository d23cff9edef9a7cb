"""Runs tests of Kafka in a JVM and reads their results while they run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from kafka_suite.outcomes import Outcome, Rules
from kafka_suite.programs import suite_command, suite_environment

#: Seconds that a JVM may take for the preparation of a class, or for a test that ignores its limit.
BETWEEN_S = 120
POLL_S = 0.1


class SuiteRun:
    """Runs tests of Kafka.

    Parameters
    ----------
    rules:
        The reasons to leave out tests.
    is_control:
        Whether the tests run with Kafka's own brokers.
    limit_s:
        Seconds that a test may take unless it sets its own limit.
    logs:
        Folder for the logs.
    python:
        The Python program that runs the embedded clusters.
    """

    def __init__(self, rules: Rules, *, is_control: bool, limit_s: int, logs: Path, python: str) -> None:
        self._rules = rules
        self._is_control = is_control
        self._limit_s = limit_s
        self._logs = logs
        self._python = python

    def run(self, name: str, tests: list[str]) -> Iterator[tuple[dict[str, Any], Outcome]]:
        """Run tests in one JVM, and yield each result of a test with its outcome.

        A test that hangs or ends the JVM fails. The tests that have not started yet run in another JVM.

        Parameters
        ----------
        name:
            Name of the log files.
        tests:
            Classes, or ``class#method``.
        """
        stem = name + (".control" if self._is_control else "")
        self._logs.mkdir(parents=True, exist_ok=True)
        (self._logs / f"{stem}.log").write_bytes(b"")
        done: set[str] = set()
        has_ended = False
        while not has_ended:
            has_ended, before = True, set(done)
            for line in self._lines(stem, tests, before):
                test = f"{line['class']}#{line['method']}"
                if line["status"] == "left out" and test in before:
                    continue
                done.add(test)
                # Without a new test, another JVM would end in the same way.
                has_ended = not line.get("is_lost") or done == before or not line["method"]
                if (outcome := self._rules.outcome(line)) is not None:
                    yield line, outcome

    def _lines(self, stem: str, tests: list[str], done: set[str]) -> Iterator[dict[str, Any]]:
        results, log = self._logs / f"{stem}.jsonl", self._logs / f"{stem}.log"
        results.write_text("")
        left_out = [self._rules.left_out_pattern, *map(re.escape, sorted(done))]
        command = suite_command(
            tests,
            results,
            self._logs / f"{stem}.nodes.log",
            self._limit_s,
            python=self._python,
            left_out="|".join(filter(None, left_out)),
            left_out_invocations=self._rules.left_out_invocations,
            is_control=self._is_control,
        )
        with (
            open(log, "ab") as output,
            open(log, encoding="utf-8", errors="replace") as logged,
            open(results, encoding="utf-8") as found,
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **suite_environment()},
                start_new_session=True,
            ) as java,
        ):
            logged.seek(0, os.SEEK_END)
            try:
                for line in self._read(java, found):
                    yield line | {"log": logged.read()}
            finally:
                java.kill()

    def _read(self, java: subprocess.Popen[bytes], found: TextIO) -> Iterator[dict[str, Any]]:
        last: dict[str, Any] = {"class": "", "method": "", "number": "", "name": ""}
        partial, last_at = "", time.monotonic()
        error = ""
        while not error:
            is_over = java.poll() is not None
            partial += found.readline()
            if partial.endswith("\n"):
                last, partial, last_at = json.loads(partial), "", time.monotonic()
                yield last
            elif is_over and java.returncode == 0:
                return
            elif is_over:
                error = f"the JVM exited with status {java.returncode}, see its log"
            elif time.monotonic() - last_at > self._limit_s + BETWEEN_S:
                error = f"no result within {self._limit_s + BETWEEN_S} s"
            else:
                time.sleep(POLL_S)
        yield {**last, "status": "failed", "error": error, "is_lost": True}
