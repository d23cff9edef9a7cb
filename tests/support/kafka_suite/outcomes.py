"""The result of a test of Kafka, and the rules that decide whether a failure counts."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

RULES = Path(__file__).resolve().parent / "suite.toml"

PASSED = "passed"
FAILED = "failed"
JAVA_OBJECTS = "java objects"
LEFT_OUT = "left out"
#: In the order of the tables.
RESULTS = (PASSED, FAILED, JAVA_OBJECTS, LEFT_OUT)
#: Characters of an error that a result keeps.
ERROR_LENGTH = 200
#: A test looks into the fields of a broker's object.
_INSIDE = re.compile(r"^java\.lang\.NoSuchFieldException")
#: A test reads a metric of a broker that the stand-in for its metrics does not have.
_METRIC = re.compile(r'because the return value of "org\.apache\.kafka\.common\.metrics\.Metrics\.metric\(')
_LEFT_OUT_INVOCATION = "left out by name"
_ONLY_ONCE = "it runs once, as KRAFT"


class Outcome(NamedTuple):
    """The result of one test, with the reason unless it passed."""

    result: str
    reason: str = ""


@dataclass(frozen=True)
class Rules:
    """The content of ``suite.toml``."""

    document: Mapping[str, Any]

    @classmethod
    def load(cls, path: Path = RULES) -> Rules:
        return cls(tomllib.loads(path.read_text(encoding="utf-8")))

    def why_left_out(self, test: str) -> str | None:
        """Return the reason why a class or ``class#method`` is not run, or ``None`` if it is run."""
        name = test.partition("#")[0]
        return next(
            (
                rule["reason"]
                for rule in self.document["left_out"]
                if any(fnmatchcase(test, each) or fnmatchcase(name, each) for each in rule["tests"])
            ),
            None,
        )

    @property
    def left_out_pattern(self) -> str:
        """A regular expression for ``class#method`` of the single tests that are not run."""
        patterns = [each for rule in self.document["left_out"] for each in rule["tests"] if "#" in each]
        return "|".join(map(translate, patterns))

    @property
    def left_out_invocations(self) -> str:
        """A regular expression for the display names of invocations that are not run."""
        return "|".join(rule["name"] for rule in self.document["left_out_invocations"])

    def _why_left_out_invocation(self, name: str) -> str:
        rules = self.document["left_out_invocations"]
        return str(next(rule["reason"] for rule in rules if re.search(rule["name"], name)))

    @property
    def quick(self) -> list[str]:
        """The tests that run in ``make test``."""
        return list(self.document["quick"]["tests"])

    @cached_property
    def _explained(self) -> list[tuple[re.Pattern[str], str]]:
        return [(re.compile(rule["evidence"]), rule["reason"]) for rule in self.document["explained"]]

    def outcome(self, line: Mapping[str, Any]) -> Outcome | None:
        """Return the outcome of a test, or ``None`` if the line is not a result.

        Parameters
        ----------
        line:
            A line of ``SuiteRunner``, with what the JVM has logged during the test as ``log``.
        """
        status, error = line["status"], str(line.get("error", ""))
        if status == "started" or _ONLY_ONCE in error:
            return None
        if status == "passed":
            return Outcome(PASSED)
        if status == "left out":
            reason = self.why_left_out(f"{line['class']}#{line['method']}")
            return Outcome(LEFT_OUT, reason or "")
        if status == "skipped" and error == _LEFT_OUT_INVOCATION:
            return Outcome(LEFT_OUT, self._why_left_out_invocation(line["name"]))
        if status == "skipped":
            return Outcome(LEFT_OUT, "disabled by Apache Kafka")
        if objects := _java_objects(line, error):
            return Outcome(JAVA_OBJECTS, objects)
        if rejected := line.get("rejected"):
            return Outcome(LEFT_OUT, f"needs broker setting {', '.join(sorted(rejected))}")
        evidence = "\n".join(str(line.get(name, "")) for name in ("error", "trace", "log"))
        for pattern, reason in self._explained:
            if pattern.search(evidence):
                return Outcome(LEFT_OUT, reason)
        if needed := set(self.document["settings"]["needed"]) & set(line.get("ignored", ())):
            return Outcome(LEFT_OUT, f"needs broker setting {', '.join(sorted(needed))}")
        return Outcome(FAILED, " ".join(error.split())[:ERROR_LENGTH])


def _java_objects(line: Mapping[str, Any], error: str) -> str:
    """Return the Java objects of a broker for lack of which a test failed; empty if there are none."""
    if _INSIDE.search(error):
        return "a field of an object"
    if _METRIC.search(error):
        return "KafkaBroker.metrics"
    return ", ".join(line.get("java_objects") or ())


def shown_name(line: Mapping[str, Any]) -> str:
    """Return the name of a test within its class: the method, and the number of the invocation if any."""
    number = f"[{line['number']}]" if line["number"] else ""
    return f"{line['method'] or '(class)'}{number}"


def judged(outcome: Outcome, control: str | None) -> Outcome:
    """Return the outcome in view of the control: a test that fails with Kafka's brokers does not count."""
    if outcome.result == FAILED and control not in (None, PASSED):
        return Outcome(LEFT_OUT, "fails with Apache Kafka's brokers too")
    return outcome
