"""Checker of the events that members of a group report.

The events (:class:`Event`) of all members are ordered by one clock. The checker returns a sentence for each
violation of these rules:

- A partition has one owner at a time. A member is assigned a partition only after its owner has revoked it,
  unless that owner is dead or is notified later that it has lost the partition. Within a generation it has
  one owner.
- No record is skipped: an owner starts at a committed offset and continues without a gap.
- Records are repeated only from the last confirmed commit on. Every committed record has been processed.
- Only an owner commits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

#: Kinds of events that a member reports. The process that kills a member reports "dead", after its last
#: event.
KINDS = frozenset(
    {
        "assigned",
        "revoked",
        "lost",
        "records",
        "committing",
        "committed",
        "commit_failed",
        "dead",
        "closed",
        "started",
        "busy",
    }
)


@dataclass(frozen=True, order=True)
class Event:
    """One event. ``time_ns`` is from a clock shared by all processes. Other fields depend on ``kind``.

    assigned, revoked, lost: ``partitions``, and all partitions ``owned`` afterwards, in ``generation``
    (``None`` if the client does not report it). records: ``partition``, ``first``, ``last``. committing,
    committed, commit_failed: ``offsets`` by partition.
    """

    time_ns: int
    member: str = field(compare=False)
    kind: str = field(compare=False)
    what: dict[str, Any] = field(compare=False, default_factory=dict)


@dataclass
class _Partition:
    owner: str | None = None
    owned_since_ns: int = 0
    #: The first offset that no member has processed.
    high: int = 0
    confirmed: int = 0
    #: When the commit of ``confirmed`` was begun.
    confirmed_begun_ns: int = 0
    attempted: set[int] = field(default_factory=set)
    #: Members whose partition has another owner although they have not reported its loss yet, and the
    #: violation it would be.
    superseded: dict[str, str] = field(default_factory=dict)


class GroupHistory:
    """Collects events and finds violations of the rules."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.counts = dict.fromkeys(KINDS, 0)
        self.repeated = 0
        self._partitions: dict[int, _Partition] = {}
        #: (member, partition) → the next offset to process, or ``None`` before the first one.
        self._next: dict[tuple[str, int], int | None] = {}
        self._of_generation: dict[tuple[int, int], str] = {}
        self._attempt_ns: dict[str, int] = {}

    def check(self, events: Iterable[Event], ends: dict[int, int]) -> list[str]:
        """Return every violation.

        ``ends`` is the number of records of each partition. All of them must have been processed and
        committed by the last event.
        """
        for event in sorted(events):
            self.counts[event.kind] += 1
            getattr(self, f"_{event.kind}")(event)
        for number, partition in self._partitions.items():
            self.wrong += partition.superseded.values()
            if number not in ends:
                self.wrong.append(f"partition {number} does not exist")
        for number, end in ends.items():
            partition = self._partitions.get(number, _Partition())
            if partition.high != end:
                self.wrong.append(
                    f"partition {number} was processed up to {partition.high}, it has {end} records"
                )
            if partition.confirmed != end:
                self.wrong.append(f"partition {number} was committed at {partition.confirmed} of {end}")
        return self.wrong

    def _of(self, number: int) -> _Partition:
        return self._partitions.setdefault(number, _Partition())

    def _says(self, event: Event, sentence: str) -> None:
        self.wrong.append(f"{event.time_ns / 1e9:.3f} {event.member} {sentence}")

    # ---- Ownership ---------------------------------------------------------------------------------------
    def _assigned(self, event: Event) -> None:
        for number in event.what["partitions"]:
            partition = self._of(number)
            other = partition.owner
            if other is not None and other != event.member:
                since = f"{partition.owned_since_ns / 1e9:.3f}"
                partition.superseded[other] = (
                    f"{event.time_ns / 1e9:.3f} {event.member} was assigned {number}, "
                    f"which {other} has since {since}"
                )
            partition.owner, partition.owned_since_ns = event.member, event.time_ns
            partition.superseded.pop(event.member, None)
            self._next[event.member, number] = None
        generation = event.what.get("generation")
        if generation is None:
            return
        for number in event.what["owned"]:
            other = self._of_generation.setdefault((generation, number), event.member)
            if other != event.member:
                self._says(event, f"and {other} both own {number} in generation {generation}")

    def _revoked(self, event: Event) -> None:
        for number in event.what["partitions"]:
            self._release(event.member, number, excused=False)

    def _lost(self, event: Event) -> None:
        for number in event.what["partitions"]:
            self._release(event.member, number, excused=True)

    def _dead(self, event: Event, excused: bool = True) -> None:
        for member, number in list(self._next):
            if member == event.member:
                self._release(member, number, excused)
        # A static member that restarts continues in the same generation, as a process with another name.
        for claim in [claim for claim, member in self._of_generation.items() if member == event.member]:
            del self._of_generation[claim]

    def _closed(self, event: Event) -> None:
        self._dead(event, excused=False)

    def _release(self, member: str, number: int, excused: bool) -> None:
        partition = self._of(number)
        if partition.owner == member:
            partition.owner = None
        if excused:
            partition.superseded.pop(member, None)
        self._next.pop((member, number), None)

    # ---- Records and commits -----------------------------------------------------------------------------
    def _records(self, event: Event) -> None:
        number, first, last = (event.what[name] for name in ("partition", "first", "last"))
        partition = self._of(number)
        if (event.member, number) not in self._next:
            self._says(event, f"processed {number}@{first}, which it does not have")
            return
        expected = self._next[event.member, number]
        if expected is not None and first != expected:
            self._says(event, f"processed {number}@{first} after {expected - 1}")
        elif expected is None and first > partition.high:
            self._says(event, f"skipped {number}@{partition.high} to {first - 1}")
        elif expected is None and first < partition.confirmed:
            self._says(event, f"began {number} at {first}, before the commit of {partition.confirmed}")
        elif expected is None and first not in {partition.confirmed, *partition.attempted}:
            self._says(event, f"began {number} at {first}, where nothing was committed")
        self.repeated += max(0, min(partition.high, last + 1) - first)
        self._next[event.member, number] = last + 1
        partition.high = max(partition.high, last + 1)

    def _committing(self, event: Event) -> None:
        self._attempt_ns[event.member] = event.time_ns
        for number, offset in _by_number(event).items():
            reached = self._next.get((event.member, number))
            if reached is None or offset > reached:
                self._says(event, f"commits {number}@{offset}, and has processed up to {reached}")
            self._of(number).attempted.add(offset)

    def _committed(self, event: Event) -> None:
        begun_ns = self._attempt_ns[event.member]
        for number, offset in _by_number(event).items():
            partition = self._of(number)
            if partition.owner not in (event.member, None) and partition.owned_since_ns < begun_ns:
                self._says(event, f"committed {number}@{offset}, which {partition.owner} has")
            elif offset < partition.confirmed and begun_ns > partition.confirmed_begun_ns:
                self._says(event, f"committed {number}@{offset} after {partition.confirmed}")
            # A paused member may report a commit only after the next owner has continued from it.
            if offset >= partition.confirmed:
                partition.confirmed, partition.confirmed_begun_ns = offset, begun_ns
            partition.attempted = {one for one in partition.attempted if one > offset}

    def _commit_failed(self, event: Event) -> None:
        """Keep the attempt: a failed commit may have been stored nevertheless."""

    def _started(self, event: Event) -> None:
        """Record that the process runs and has not joined yet."""

    def _busy(self, event: Event) -> None:
        """Record that the process computes and does not poll."""


def _by_number(event: Event) -> dict[int, int]:
    return {int(number): offset for number, offset in event.what["offsets"].items()}
