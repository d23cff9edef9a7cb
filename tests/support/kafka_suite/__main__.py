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
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from kafka_suite.outcomes import FAILED, LEFT_OUT, PASSED, RESULTS, Outcome, Rules, judged, shown_name
from kafka_suite.programs import KAFKA_VERSION, test_classes
from kafka_suite.suite_run import SuiteRun
from peers.jars import PROJECT, JavaToolError

from kafkacore.bench.machine import describe_machine

RESULT_FILE = PROJECT / "bench" / "results" / "kafka-suite.json"
LOGS = PROJECT / "build" / "kafka-suite"


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
        if method and len(classes) > 1:
            raise SystemExit(f"{name}#{method} is ambiguous, write the package: {', '.join(classes)}")
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


def show(line: dict[str, Any], outcome: Outcome) -> None:
    seconds = f"{line['seconds']:7.1f} s" if "seconds" in line else " " * 9
    name = f"{line['class'].rpartition('.')[2]}#{shown_name(line)}"
    say(f"{outcome.result:12} {seconds}  {name}  {outcome.reason}".rstrip())


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
    parser.add_argument(
        "--quick",
        action="store_true",
        help="run the few tests of `make test`, which must pass; store nothing",
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
    suite = SuiteRun(
        rules, is_control=arguments.control, limit_s=arguments.limit, logs=LOGS, python=sys.executable
    )
    if arguments.quick:
        outcomes = []
        for line, outcome in suite.run("quick", rules.quick):
            show(line, outcome)
            outcomes.append(outcome.result)
        return 0 if set(outcomes) == {PASSED} else 1
    tests = selected(arguments.only)
    if arguments.list:
        for test, artifact in tests.items():
            say(f"{artifact:32} {test}  {rules.why_left_out(test) or ''}".rstrip())
        return 0
    results = read_results(arguments.output)
    totals: Counter[str] = Counter()
    for number, (test, artifact) in enumerate(tests.items(), 1):
        say(f"-- {number} of {len(tests)}: {test}")
        totals += run_class(suite, rules, test, artifact, results, is_control=arguments.control)
        store(arguments.output, results)
    say("   ".join(f"{result}: {totals[result]}" for result in RESULTS))
    return 1 if totals[FAILED] else 0


def run_class(
    suite: SuiteRun, rules: Rules, test: str, artifact: str, results: dict[str, Any], *, is_control: bool
) -> Counter[str]:
    """Run a class, or a method of it, add the outcomes to the results, and return the number of each."""
    test_class, _, method = test.partition("#")
    entry = results["kafka_suite"]["classes"].setdefault(
        test_class, {"artifact": artifact, "tests": {}, "control": {}}
    )
    found = entry["control" if is_control else "tests"]
    if not method:
        found.clear()
    if reason := rules.why_left_out(test):
        found["(class)"] = [LEFT_OUT, reason]
        say(f"{LEFT_OUT:12} {reason}")
        return Counter([LEFT_OUT])
    totals: Counter[str] = Counter()
    for line, plain in suite.run(test.replace("#", "."), [test]):
        name = shown_name(line)
        outcome = plain if is_control else judged(plain, _control(entry, name))
        show(line, outcome)
        found[name] = [*outcome] if outcome.reason else [outcome.result]
        totals[outcome.result] += 1
    return totals


def _control(entry: dict[str, Any], name: str) -> str | None:
    stored = entry["control"].get(name)
    return stored[0] if stored else None


if __name__ == "__main__":
    sys.exit(main())
