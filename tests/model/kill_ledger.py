"""What producers were told, by the million, against the log: the judge of long runs under kills.

Sends, outcomes and what consumers saw in; sentences about broken promises out. A record is known by its
producer, its partition and its number there, which rises by one with each send: so a number for each is all
that is kept (``model.history`` keeps all of it, and says more). Does not know: clients, brokers.
"""

from __future__ import annotations

import zlib
from array import array
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

#: A line is a producer and a partition.
Line = tuple[int, int]
NONE = -1
MOST_FINDINGS = 20


def value_of(producer: int, partition: int, number: int) -> bytes:
    """Tells all records apart; some are large, so that a kill meets a half-written batch."""
    return b"%d %d %d " % (producer, partition, number) + b"x" * (5_000 if number % 97 == 0 else number % 150)


def parsed(value: bytes) -> tuple[int, int, int] | None:
    """Producer, partition and number; ``None`` if nobody has sent it like that."""
    try:
        producer, partition, number = map(int, value.split(b" ", 3)[:3])
    except ValueError:
        return None
    return (producer, partition, number) if value_of(producer, partition, number) == value else None


def fingerprint(value: bytes) -> int:
    return zlib.crc32(value)


@dataclass
class KillLedger:
    """Each method is called under a lock of the caller's, or by one thread."""

    #: Offset that each send of a line was told, by number.
    told: dict[Line, array[int]] = field(default_factory=lambda: defaultdict(lambda: array("q")))
    #: Fingerprint of the value that a consumer saw at each offset, by partition; 0 where none has.
    seen: dict[int, array[int]] = field(default_factory=lambda: defaultdict(lambda: array("L")))
    acknowledged: int = 0
    findings: list[str] = field(default_factory=list)
    #: At each kill: numbers in flight, by line, as (first not acknowledged, first not sent).
    in_flight: list[dict[Line, tuple[int, int]]] = field(default_factory=list)

    def find(self, sentence: str) -> None:
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(sentence)

    # ---- Events -------------------------------------------------------------------------------------------

    def sent(self, producer: int, partition: int) -> int:
        """A send begins: its number."""
        line = self.told[producer, partition]
        line.append(NONE)
        return len(line) - 1

    def acknowledge(self, producer: int, partition: int, number: int, offset: int) -> None:
        line = self.told[producer, partition]
        if line[number] != NONE:
            self.find(f"{producer}/{partition}#{number} was acknowledged at {line[number]} and at {offset}")
        line[number] = offset
        self.acknowledged += 1

    def fail(self, producer: int, partition: int, number: int, error: object) -> None:
        self.find(f"{producer}/{partition}#{number} failed: {error}")

    def killed(self) -> None:
        """The broker is killed now: what is in flight may be doubled by who is not idempotent."""
        self.in_flight.append(
            {line: (_first_open(offsets), len(offsets)) for line, offsets in self.told.items()}
        )

    def saw(self, partition: int, offset: int, value: bytes) -> None:
        """A consumer was given the record."""
        marks = self.seen[partition]
        if offset >= len(marks):
            marks.extend([0] * (offset + 1 - len(marks)))
        mark = fingerprint(value)
        if marks[offset] not in (0, mark):
            self.find(f"partition {partition}: offset {offset} was seen with two values")
        marks[offset] = mark

    # ---- Judgement ----------------------------------------------------------------------------------------

    def check(
        self, log: Iterable[tuple[int, int, bytes]], ends: dict[int, int], *, idempotent: bool = True
    ) -> list[str]:
        """All findings, or the first of very many. ``log``: (partition, offset, value), each partition in
        order, from its first record to its last one.
        """
        expected: dict[Line, int] = defaultdict(int)
        next_offset: dict[int, int] = defaultdict(int)
        for partition, offset, value in log:
            if offset != next_offset[partition]:
                self.find(f"partition {partition}: {offset} comes after {next_offset[partition] - 1}")
            next_offset[partition] = offset + 1
            self._check_seen(partition, offset, value)
            self._check_record(partition, offset, value, expected, idempotent)
        for partition, end in ends.items():
            if next_offset[partition] != end:
                self.find(f"partition {partition} was read up to {next_offset[partition]} of {end}")
        for line, offsets in self.told.items():
            for number in range(expected[line], len(offsets)):
                self.find(f"{_name(line, number)} is lost; told offset {offsets[number]}")
        return self.findings

    def _check_seen(self, partition: int, offset: int, value: bytes) -> None:
        marks = self.seen[partition]
        if offset < len(marks) and marks[offset] not in (0, fingerprint(value)):
            self.find(f"partition {partition}: offset {offset} had another value for a consumer")

    def _check_record(
        self, partition: int, offset: int, value: bytes, expected: dict[Line, int], idempotent: bool
    ) -> None:
        found = parsed(value)
        if found is None or found[1] != partition:
            self.find(f"partition {partition}: offset {offset} has {value[:30]!r}, which nobody sent there")
            return
        line, number = (found[0], partition), found[2]
        if number < expected[line]:
            if idempotent or not self._may_be_doubled(line, number):
                self.find(f"{_name(line, number)} is there again at {offset}")
            return
        if number > expected[line]:
            self.find(f"{_name(line, number)} at {offset} comes before #{expected[line]}")
        expected[line] = number + 1
        told = self.told[line]
        if number >= len(told):
            self.find(f"{_name(line, number)} at {offset} was never sent")
        elif told[number] == NONE:
            self.find(f"{_name(line, number)} has no outcome")
        elif told[number] != offset and (idempotent or not self._may_be_doubled(line, number)):
            self.find(f"{_name(line, number)} was told offset {told[number]} and is at {offset}")

    def _may_be_doubled(self, line: Line, number: int) -> bool:
        at_kills = (kill.get(line, (0, 0)) for kill in self.in_flight)
        return any(first <= number < behind for first, behind in at_kills)


def _first_open(offsets: array[int]) -> int:
    """The first number without an outcome; those before it all have theirs."""
    at = len(offsets)
    while at and offsets[at - 1] == NONE:
        at -= 1
    # Outcomes come in order but for those in flight, which are few.
    return next((number for number in range(max(at - 20_000, 0), at) if offsets[number] == NONE), at)


def _name(line: Line, number: int) -> str:
    return f"{line[0]}/{line[1]}#{number}"
