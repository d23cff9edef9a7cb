"""Checker of millions of sends against the log, for long runs with kills.

A record is identified by its producer, its partition and its number there, which increases by one with each
send. The ledger therefore stores one number per record, whereas ``model.history`` stores everything and
reports more detail.
"""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from model.findings import Finding, runs

#: The sends of a producer to a partition, as (producer, partition).
Line = tuple[int, int]
#: Stored instead of an offset: no outcome yet; delivery timeout expired, so the record may be in the log or
#: not; failed, which is a finding.
NONE, GIVEN_UP, FAILED = -1, -2, -3
#: Subject of a finding about the log, or about records read from it.
LOG = "log"


def value_of(producer: int, partition: int, number: int) -> bytes:
    """Return a value that is unique. Some are large, so that a kill can interrupt the write of a batch."""
    return b"%d %d %d " % (producer, partition, number) + b"x" * (5_000 if number % 97 == 0 else number % 150)


def parsed(value: bytes) -> tuple[int, int, int] | None:
    """Return producer, partition and number, or ``None`` if no producer sent this value."""
    try:
        producer, partition, number = map(int, value.split(b" ", 3)[:3])
    except ValueError:
        return None
    return (producer, partition, number) if value_of(producer, partition, number) == value else None


def fingerprint(value: bytes) -> int:
    return zlib.crc32(value)


@dataclass
class KillLedger:
    """The sends and their outcomes. Call each method under a lock, or from one thread."""

    #: Names of the producers in findings.
    names: dict[int, str] = field(default_factory=dict)
    #: Offset at which each send of a line was acknowledged, by its number, or one of the constants above.
    outcomes: dict[Line, array[int]] = field(default_factory=lambda: defaultdict(lambda: array("q")))
    #: Fingerprint of the value that a consumer received at each offset, by partition; 0 for none.
    seen: dict[int, array[int]] = field(default_factory=lambda: defaultdict(lambda: array("L")))
    acknowledged: int = 0
    given_up: int = 0
    findings: list[Finding] = field(default_factory=list)
    #: For each kill: sends in flight of each line, as (first without an outcome, first not sent).
    in_flight: list[dict[Line, tuple[int, int]]] = field(default_factory=list)

    def find(self, sentence: str, client: str = LOG) -> None:
        self.findings.append(Finding(sentence, client, len(self.in_flight)))

    def _find_of(self, line: Line, number: int, sentence: str) -> None:
        """Return a finding about a send, dated by the last kill before it."""
        sent = [kill.get(line, (0, 0))[1] for kill in self.in_flight]
        self.findings.append(Finding(sentence, self._name(line), bisect_right(sent, number)))

    def _name(self, line: Line) -> str:
        return self.names.get(line[0], f"producer {line[0]}")

    # ---- Events -------------------------------------------------------------------------------------------

    def sent(self, producer: int, partition: int) -> int:
        """Record the start of a send and return its number."""
        line = self.outcomes[producer, partition]
        line.append(NONE)
        return len(line) - 1

    def acknowledge(self, producer: int, partition: int, number: int, offset: int) -> None:
        self._tell(producer, partition, number, offset)
        self.acknowledged += 1

    def give_up(self, producer: int, partition: int, number: int) -> None:
        """Record that the delivery timeout of this send expired."""
        self._tell(producer, partition, number, GIVEN_UP)
        self.given_up += 1

    def fail(self, producer: int, partition: int, number: int, error: object) -> None:
        self._tell(producer, partition, number, FAILED)
        self.find(f"{partition}#{number} failed: {error}", self._name((producer, partition)))

    def _tell(self, producer: int, partition: int, number: int, outcome: int) -> None:
        line = self.outcomes[producer, partition]
        if line[number] != NONE:
            said = f"{partition}#{number} has the outcomes {line[number]} and {outcome}"
            self.find(said, self._name((producer, partition)))
        line[number] = outcome

    def killed(self) -> None:
        """Record a kill of the broker. Without idempotence, a producer may duplicate the sends in flight."""
        self.in_flight.append(
            {line: (_first_open(offsets), len(offsets)) for line, offsets in self.outcomes.items()}
        )

    def saw(self, partition: int, offset: int, value: bytes) -> None:
        """Record that a consumer received the record."""
        marks = self.seen[partition]
        if offset >= len(marks):
            marks.extend([0] * (offset + 1 - len(marks)))
        mark = fingerprint(value)
        if marks[offset] not in (0, mark):
            self.find(f"partition {partition}: offset {offset} was seen with two values")
        marks[offset] = mark

    # ---- Checks --------------------------------------------------------------------------------------------

    def check(
        self, log: Iterable[tuple[int, int, bytes]], ends: dict[int, int], *, idempotent: bool = True
    ) -> list[Finding]:
        """Return all findings.

        ``log`` contains (partition, offset, value) of each record, each partition in order from the first to
        the last one.
        """
        found = {line: bytearray(len(offsets)) for line, offsets in self.outcomes.items()}
        expected: dict[Line, int] = defaultdict(int)
        next_offset: dict[int, int] = defaultdict(int)
        for partition, offset, value in log:
            if offset != next_offset[partition]:
                self.find(f"partition {partition}: {offset} comes after {next_offset[partition] - 1}")
            next_offset[partition] = offset + 1
            self._check_seen(partition, offset, value)
            self._check_record(partition, offset, value, expected, found, idempotent)
        for partition, end in ends.items():
            if next_offset[partition] != end:
                self.find(f"partition {partition} was read up to {next_offset[partition]} of {end}")
        for line, is_there in found.items():
            self._check_line(line, is_there)
        return self.findings

    def _check_seen(self, partition: int, offset: int, value: bytes) -> None:
        marks = self.seen[partition]
        if offset < len(marks) and marks[offset] not in (0, fingerprint(value)):
            self.find(f"partition {partition}: offset {offset} had another value for a consumer")

    def _check_record(
        self,
        partition: int,
        offset: int,
        value: bytes,
        expected: dict[Line, int],
        found: dict[Line, bytearray],
        idempotent: bool,
    ) -> None:
        read = parsed(value)
        if read is None or read[1] != partition:
            self.find(
                f"partition {partition}: offset {offset} has {value[:30]!r}, which no producer sent there"
            )
            return
        line, number = (read[0], partition), read[2]
        is_there = found.get(line, b"")
        if number >= len(is_there):
            self.find(f"{partition}#{number} at {offset} was never sent", self._name(line))
            return
        may_be_doubled = not idempotent and self._may_be_doubled(line, number)
        if is_there[number]:
            if not may_be_doubled:
                self._find_of(line, number, f"{partition}#{number} is there again at {offset}")
            return
        is_there[number] = True
        if number < expected[line]:
            self._find_of(line, number, f"{partition}#{number} at {offset} comes after #{expected[line] - 1}")
        expected[line] = max(expected[line], number + 1)
        outcome = self.outcomes[line][number]
        if outcome >= 0 and outcome != offset and not may_be_doubled:
            self._find_of(
                line, number, f"{partition}#{number} was acknowledged at {outcome} and is at {offset}"
            )

    def _check_line(self, line: Line, is_there: bytearray) -> None:
        """Find sends that the log lacks, and sends without an outcome."""
        outcomes = self.outcomes[line]
        for first, last in runs(n for n, found in enumerate(is_there) if not found and outcomes[n] >= 0):
            offsets = f"acknowledged at {outcomes[first]} to {outcomes[last]}"
            self._find_of(line, first, f"{line[1]}#{first} to #{last} are lost, {offsets}")
        for first, last in runs(n for n, outcome in enumerate(outcomes) if outcome == NONE):
            there = sum(is_there[first : last + 1])
            said = f"{line[1]}#{first} to #{last} have no outcome; {there} of them are in the log"
            self._find_of(line, first, said)

    def _may_be_doubled(self, line: Line, number: int) -> bool:
        at_kills = (kill.get(line, (0, 0)) for kill in self.in_flight)
        return any(first <= number < behind for first, behind in at_kills)


def _first_open(offsets: array[int]) -> int:
    """Return the first number without an outcome; all earlier ones have one."""
    at = len(offsets)
    while at and offsets[at - 1] == NONE:
        at -= 1
    # Outcomes arrive in order except those in flight, which are few.
    return next((number for number in range(max(at - 20_000, 0), at) if offsets[number] == NONE), at)
