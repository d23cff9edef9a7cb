"""Run Apache Kafka's own integration tests on the embedded cluster.

    python -m kafka_suite                          # all classes, for hours
    python -m kafka_suite --only ConsumerBounceTest --only 'PlaintextConsumer*#testSeek'
    python -m kafka_suite --control --only ...     # the same tests with Apache Kafka's own brokers

A test that passes counts as passed. One that fails is

- *java objects* if it used a Java object of a broker, which exists only inside Apache Kafka,
- *left out* if suite.toml says why the embedded broker cannot pass it, or if the last control failed too,
- *failed* in every other case.

The results are merged into bench/results/kafka-suite.json, and the log of each class is in build/kafka-suite.
The exit status is 1 if a test has failed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from kafka_suite.outcomes import FAILED, LEFT_OUT, RESULTS, Outcome, Rules, judged, test_name
from kafka_suite.programs import KAFKA_VERSION, PROJECT, suite_command, suite_environment, test_classes
from peers.jars import JavaToolError

from kafkacore.bench.machine import describe_machine

RESULT_FILE = PROJECT / "bench" / "results" / "kafka-suite.json"
LOGS = PROJECT / "build" / "kafka-suite"
#: Seconds that a class may spend between two tests, for its preparation.
BETWEEN_S = 120
POLL_S = 0.1


class SuiteRun:
    """Runs classes of Kafka's tests one after another."""

    def __init__(self, rules: Rules, *, is_control: bool, limit_s: int, logs: Path, python: str) -> None:
        self._rules = rules
        self._is_control = is_control
        self._limit_s = limit_s
        self._logs = logs
        self._python = python

    def run(self, test: str) -> Iterator[tuple[dict[str, Any], Outcome]]:
        """Run a class, or a method of it, and yield each result of a test with its outcome."""
        test_class = test.partition("#")[0]
        for line in self._lines(test):
            if (outcome := self._rules.outcome(test_class, line)) is not None:
                yield line, outcome

    def _lines(self, test: str) -> Iterator[dict[str, Any]]:
        self._logs.mkdir(parents=True, exist_ok=True)
        stem = test.rpartition(".")[2].replace("#", ".") + (".control" if self._is_control else "")
        results = self._logs / f"{stem}.jsonl"
        results.write_text("")
        command = suite_command(
            test,
            results,
            self._logs / f"{stem}.nodes.log",
            self._limit_s,
            python=self._python,
            is_control=self._is_control,
        )
        with (
            open(self._logs / f"{stem}.log", "wb") as log,
            open(results, encoding="utf-8") as found,
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **suite_environment()},
                start_new_session=True,
            ) as java,
        ):
            try:
                yield from self._read(java, found)
            finally:
                java.kill()

    def _read(self, java: subprocess.Popen[bytes], found: Any) -> Iterator[dict[str, Any]]:
        running: dict[str, Any] | None = None
        partial, last_at = "", time.monotonic()
        while True:
            is_over = java.poll() is not None
            partial += found.readline()
            if partial.endswith("\n"):
                line, partial, last_at = json.loads(partial), "", time.monotonic()
                running = line if line["status"] == "started" else None
                yield line
            elif is_over:
                if running is not None or java.returncode != 0:
                    yield _stopped(running, f"the JVM exited with status {java.returncode}")
                return
            elif time.monotonic() - last_at > self._limit_s + BETWEEN_S:
                yield _stopped(running, f"did not end within {self._limit_s + BETWEEN_S} s")
                return
            else:
                time.sleep(POLL_S)


def _stopped(running: dict[str, Any] | None, error: str) -> dict[str, Any]:
    test = running or {"method": "", "number": "", "name": ""}
    return {**test, "status": "failed", "error": error}


def selected(patterns: list[str]) -> dict[str, str]:
    """Return the tests to run, each with its artifact.

    A pattern without a dot is the simple name of a class.
    """
    if not patterns:
        return test_classes()
    found: dict[str, str] = {}
    for pattern in patterns:
        name, hash_sign, method = pattern.partition("#")
        classes = [
            each
            for each in test_classes()
            if fnmatchcase(each if "." in name else each.rpartition(".")[2], name)
        ]
        if not classes:
            raise SystemExit(f"no test class of Apache Kafka {KAFKA_VERSION} matches {name}")
        for each in classes:
            found[each + hash_sign + method] = test_classes()[each]
    return found


def read_results(path: Path) -> dict[str, Any]:
    """Return the results of earlier runs."""
    if path.exists():
        stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return stored
    return {"schema": 1, "kafka_suite": {"kafka": KAFKA_VERSION, "classes": {}}}


def store(path: Path, results: dict[str, Any]) -> None:
    """Write the results and where they were measured."""
    shown = subprocess.run(
        ["git", "describe", "--always", "--dirty=-changed", "--exclude=*", "--abbrev=8"],
        cwd=PROJECT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    results |= {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": shown.stdout.strip() or "unknown",
        "command": "make kafka-suite",
        "machine": describe_machine(),
    }
    results["kafka_suite"]["classes"] = dict(sorted(results["kafka_suite"]["classes"].items()))
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    temporary.replace(path)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def show(test_class: str, line: dict[str, Any], outcome: Outcome) -> None:
    seconds = f"{line['seconds']:7.1f} s" if "seconds" in line else " " * 9
    name = f"{test_class.rpartition('.')[2]}#{test_name(line)}"
    say(f"{outcome.result:12} {seconds}  {name}{'  ' * bool(outcome.reason)}{outcome.reason}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="CLASS[#METHOD]",
        help="run only these tests; may be repeated, and * stands for any text (default: all)",
    )
    parser.add_argument("--control", action="store_true", help="use Apache Kafka's own brokers instead")
    parser.add_argument(
        "--limit", type=int, default=120, metavar="S", help="seconds that a test may take (default: 120)"
    )
    parser.add_argument("--list", action="store_true", help="print the test classes and exit")
    parser.add_argument("--output", type=Path, default=RESULT_FILE, help=f"result file ({RESULT_FILE.name})")
    arguments = parser.parse_args()
    try:
        return run(arguments)
    except JavaToolError as error:
        sys.exit(str(error))


def run(arguments: argparse.Namespace) -> int:
    rules = Rules.load()
    tests = selected(arguments.only)
    if arguments.list:
        for test, artifact in tests.items():
            say(f"{artifact:32} {test}  {rules.why_left_out(test) or ''}".rstrip())
        return 0
    suite = SuiteRun(
        rules,
        is_control=arguments.control,
        limit_s=arguments.limit,
        logs=LOGS,
        python=sys.executable,
    )
    results = read_results(arguments.output)
    classes = results["kafka_suite"]["classes"]
    totals: Counter[str] = Counter()
    for number, (test, artifact) in enumerate(tests.items(), 1):
        test_class, _, method = test.partition("#")
        say(f"-- {number} of {len(tests)}: {test}")
        entry = classes.setdefault(test_class, {"artifact": artifact, "tests": {}, "control": {}})
        found = entry["control" if arguments.control else "tests"]
        if not method:
            found.clear()
        if reason := rules.why_left_out(test):
            found["(class)"] = [LEFT_OUT, reason]
            totals[LEFT_OUT] += 1
            say(f"{LEFT_OUT:12} {reason}")
            store(arguments.output, results)
            continue
        for line, plain in suite.run(test):
            name = test_name(line)
            outcome = plain if arguments.control else judged(plain, _control(entry, name))
            show(test_class, line, outcome)
            found[name] = [*outcome] if outcome.reason else [outcome.result]
            totals[outcome.result] += 1
        store(arguments.output, results)
    say("   ".join(f"{result}: {totals[result]}" for result in RESULTS))
    return 1 if totals[FAILED] else 0


def _control(entry: dict[str, Any], name: str) -> str | None:
    stored = entry["control"].get(name)
    return stored[0] if stored else None


if __name__ == "__main__":
    sys.exit(main())
