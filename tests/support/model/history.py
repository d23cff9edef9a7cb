"""Checker of the results that producers got against the content of the log.

It receives an event per outcome of a send, numbered by its producer, and the log as it was read back, with
each record once or more often. It returns a sentence with the position for each violation of these
guarantees:

- An acknowledged record is in the log at the reported offset.
- The log contains no duplicates, except those that the test allows.
- The records of a producer are in each partition in the order of their sequence numbers.
- A send that failed as not persisted is not in the log.
- An offset has one value, and every value in the log was sent.
- Each send has one outcome.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field


class Kind(enum.Enum):
    LOST = "lost"
    DUPLICATE = "duplicate"
    REORDERED = "reordered"
    TWO_VALUES = "two values at one offset"
    OTHER_OFFSET = "acknowledged at another offset"
    NOT_PERSISTED_FOUND = "reported as not persisted, but found"
    PHANTOM = "found where no producer sent it"
    UNRESOLVED = "without an outcome"
    TWO_OUTCOMES = "more than one outcome"


@dataclass(frozen=True, order=True)
class SendId:
    """A send, identified by the producer's name and its number, which grows per partition."""

    producer: str
    sequence: int

    def __str__(self) -> str:
        return f"{self.producer}#{self.sequence}"


@dataclass(frozen=True)
class LogRecord:
    """A record as it was read back."""

    partition: int
    offset: int
    value: bytes


@dataclass(frozen=True)
class Finding:
    """A violated guarantee."""

    kind: Kind
    send: SendId | None
    partition: int
    offset: int | None
    sentence: str

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class _Sent:
    send: SendId
    partition: int


@dataclass
class _Outcomes:
    #: ``None`` if the producer gets no offset (acks=0).
    offsets: list[int | None] = field(default_factory=list)
    failures: list[bool] = field(default_factory=list)


class History:
    """The sends of producers and their outcomes. Each value is sent once, so it identifies its record."""

    def __init__(self) -> None:
        self._by_value: dict[bytes, _Sent] = {}
        self._outcomes: dict[SendId, _Outcomes] = {}
        self._partition: dict[SendId, int] = {}

    # ---- Events --------------------------------------------------------------------------------------------

    def sent(self, producer: str, partition: int, sequence: int, value: bytes) -> SendId:
        """Record the start of a send, before any of its outcomes."""
        send = SendId(producer, sequence)
        assert value not in self._by_value, (
            f"{value[:40]!r} is sent twice, so the log cannot tell the two sends apart"
        )
        assert send not in self._outcomes, f"{send} is sent twice"
        self._by_value[value] = _Sent(send, partition)
        self._outcomes[send] = _Outcomes()
        self._partition[send] = partition
        return send

    def acknowledged(self, send: SendId, offset: int | None) -> None:
        """Record that the send was acknowledged, at ``offset`` if the acknowledgement has one."""
        self._outcomes[send].offsets.append(offset)

    def failed(self, send: SendId, *, possibly_persisted: bool) -> None:
        """Record that the send failed, and whether the record may be in the log nevertheless."""
        self._outcomes[send].failures.append(possibly_persisted)

    def ends(self) -> dict[int, int]:
        """Return the minimum end of each partition: the offset after the last acknowledged one."""
        ends: dict[int, int] = {}
        for send, outcomes in self._outcomes.items():
            for offset in outcomes.offsets:
                if offset is not None:
                    partition = self._partition[send]
                    ends[partition] = max(ends.get(partition, 0), offset + 1)
        return ends

    # ---- Checks --------------------------------------------------------------------------------------------

    def check(
        self, log: Iterable[LogRecord], *, may_be_doubled: Callable[[SendId], bool] = lambda send: False
    ) -> list[Finding]:
        """Return all findings by partition and offset; an empty list if every guarantee was kept.

        Parameters
        ----------
        log:
            The records of all partitions, in any order. A record may have been read more than once.
        may_be_doubled:
            Sends that a producer without idempotence had reason to retry.
        """
        findings: list[Finding] = []
        values = _values_by_place(log, findings)
        found: dict[SendId, list[int]] = defaultdict(list)
        for (partition, offset), value in values.items():
            sent = self._by_value.get(value)
            if sent is None or sent.partition != partition:
                findings.append(_phantom(partition, offset, value, sent))
            else:
                found[sent.send].append(offset)
        for send, outcomes in self._outcomes.items():
            place = self._partition[send]
            findings += _check_outcomes(send, place, outcomes)
            findings += _check_found(send, place, outcomes, found.get(send, []), may_be_doubled(send))
        findings += self._check_order(found)
        return sorted(findings, key=_place)

    def _check_order(self, found: dict[SendId, list[int]]) -> Iterator[Finding]:
        """Compare the first offset of each record; another check covers duplicates, which come later."""
        lines: dict[tuple[str, int], list[tuple[int, SendId]]] = defaultdict(list)
        for send, offsets in found.items():
            lines[send.producer, self._partition[send]].append((offsets[0], send))
        for (_, partition), line in lines.items():
            line.sort()
            ahead_offset, ahead = line[0]
            for offset, send in line[1:]:
                if send.sequence > ahead.sequence:
                    ahead_offset, ahead = offset, send
                    continue
                yield Finding(
                    Kind.REORDERED,
                    send,
                    partition,
                    offset,
                    f"partition {partition}: {send} was sent before {ahead}, and is at offset {offset}, "
                    f"behind it at {ahead_offset}",
                )


def _values_by_place(log: Iterable[LogRecord], findings: list[Finding]) -> dict[tuple[int, int], bytes]:
    """Return (partition, offset) → value, in the order of the log."""
    values: dict[tuple[int, int], bytes] = {}
    for record in log:
        place = (record.partition, record.offset)
        before = values.setdefault(place, record.value)
        if before != record.value:
            sentence = (
                f"partition {record.partition}: offset {record.offset} was read as {before[:40]!r} "
                f"and as {record.value[:40]!r}"
            )
            findings.append(Finding(Kind.TWO_VALUES, None, *place, sentence))
    return dict(sorted(values.items()))


def _phantom(partition: int, offset: int, value: bytes, sent: _Sent | None) -> Finding:
    whose = "no producer sent it" if sent is None else f"{sent.send} sent it to partition {sent.partition}"
    sentence = f"partition {partition}: offset {offset} has {value[:40]!r}, but {whose}"
    return Finding(Kind.PHANTOM, None if sent is None else sent.send, partition, offset, sentence)


def _check_outcomes(send: SendId, partition: int, outcomes: _Outcomes) -> Iterator[Finding]:
    count = len(outcomes.offsets) + len(outcomes.failures)
    if count == 0:
        sentence = f"partition {partition}: {send} was neither acknowledged nor failed"
        yield Finding(Kind.UNRESOLVED, send, partition, None, sentence)
    elif count > 1:
        sentence = (
            f"partition {partition}: {send} has {count} outcomes: acknowledged at {outcomes.offsets}, "
            f"failed {len(outcomes.failures)} times"
        )
        yield Finding(Kind.TWO_OUTCOMES, send, partition, None, sentence)


def _check_found(
    send: SendId, partition: int, outcomes: _Outcomes, offsets: list[int], may_be_doubled: bool
) -> Iterator[Finding]:
    where = f"partition {partition}: {send}"
    for acknowledged in outcomes.offsets:
        if not offsets:
            at = "" if acknowledged is None else f" at offset {acknowledged}"
            yield Finding(
                Kind.LOST,
                send,
                partition,
                acknowledged,
                f"{where} was acknowledged{at} and is not in the log",
            )
        elif acknowledged is not None and acknowledged not in offsets:
            sentence = f"{where} was acknowledged at offset {acknowledged} and is at {offsets}"
            yield Finding(Kind.OTHER_OFFSET, send, partition, acknowledged, sentence)
    if offsets and False in outcomes.failures:
        sentence = f"{where} was called not persisted and is at offset {offsets[0]}"
        yield Finding(Kind.NOT_PERSISTED_FOUND, send, partition, offsets[0], sentence)
    if len(offsets) > 1 and not may_be_doubled:
        sentence = f"{where} is in the log {len(offsets)} times, at {offsets}"
        yield Finding(Kind.DUPLICATE, send, partition, offsets[1], sentence)


def _place(finding: Finding) -> tuple[int, int, str]:
    return finding.partition, -1 if finding.offset is None else finding.offset, finding.sentence
