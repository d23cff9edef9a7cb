"""Two group members that read and commit while their broker is killed, and checks of the committed offsets.

The records go to a ledger. The checks of the group return sentences.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Collection
from typing import Any

from eventually import BUDGET_MS
from model.dose import dose
from model.findings import Finding
from model.group_history import Event, GroupHistory

import kafkacore
from kafkacore.consumer import ConsumerRebalanceListener
from kafkacore.errors import KafkaError
from kafkacore.structs import OffsetAndMetadata, TopicPartition

GROUP = "killed-group"
#: Range of the polls with records after which a member leaves and rejoins with another name.
SHORTEST_STAY, LONGEST_STAY = dose(5, 20), dose(15, 120)

#: Called with partition, offset and value of each processed record.
Saw = Callable[[int, int, bytes], None]


class KilledGroup:
    """A group that reads ``topic`` from its beginning.

    Parameters
    ----------
    lock:
        Guards all state here; ``saw`` is called while it is held.
    """

    def __init__(self, servers: str, topic: str, partitions: int, saw: Saw, lock: threading.Lock) -> None:
        self._servers = servers
        self._topic = topic
        self.partitions = [TopicPartition(topic, number) for number in range(partitions)]
        self._saw = saw
        self.lock = lock
        self._events: list[Event] = []
        self._names = itertools.count(1)
        self._confirmed = [0] * partitions
        self._attempted = [0] * partitions
        self._found = [0] * partitions
        self._is_at_end = threading.Event()
        self.started = threading.Event()
        self.findings: list[Finding] = []
        #: Times of the kills of the broker.
        self.kills_ns: list[int] = []
        self.processed = 0
        self.repeated = 0
        self.commits = 0
        self.refused_commits = 0
        self.stays = 0
        #: Number of checks of the committed offsets.
        self.checks = 0

    def prepare(self) -> None:
        """Commit initial offsets, because a missing offset raises without a reset policy."""
        with self.consumer() as client:
            client.commit({tp: OffsetAndMetadata(0) for tp in self.partitions}, timeout_ms=BUDGET_MS)

    def consumer(self) -> kafkacore.KafkaConsumer:
        return kafkacore.KafkaConsumer(
            bootstrap_servers=self._servers,
            group_id=GROUP,
            auto_offset_reset="none",
            enable_auto_commit=False,
            session_timeout_ms=10_000,
            heartbeat_interval_ms=300,
            fetch_max_wait_ms=50,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=100,
            retry_backoff_ms=20,
            max_poll_records=1_000,
        )

    def report(self, member: str, kind: str, **what: Any) -> None:
        """Add an event. The caller holds the lock, so that events are ordered by time."""
        self._events.append(Event(time.monotonic_ns(), member, kind, what))

    # ---- Members ------------------------------------------------------------------------------------------

    def be_member(self, chance: random.Random, producers_done: threading.Event) -> None:
        """Join, read, commit and leave, repeatedly, until the group has committed all records."""
        while not self._is_at_end.is_set():
            with self.lock:
                member = _Member(self, f"member-{next(self._names)}")
                self.stays += 1
            member.stay(chance.randint(SHORTEST_STAY, LONGEST_STAY), chance.random() < 0.5, producers_done)

    def process(self, member: str, tp: TopicPartition, records: list[Any]) -> None:
        with self.lock:
            first, last = records[0].offset, records[-1].offset
            self.report(member, "records", partition=tp.partition, first=first, last=last)
            if [record.offset for record in records] != list(range(first, last + 1)):
                self._find(f"{tp}: {member} was given {first} to {last} with gaps")
            self.processed += len(records)
            for record in records:
                self._saw(tp.partition, record.offset, record.value)

    def commit(self, member: str, client: kafkacore.KafkaConsumer, pending: dict[int, int]) -> None:
        """Commit the pending offsets. They stay pending if the commit fails or has no response."""
        offsets = dict(pending)
        with self.lock:
            self.report(member, "committing", offsets=offsets)
            for number, offset in offsets.items():
                self._attempted[number] = max(self._attempted[number], offset)
        try:
            client.commit({self.partitions[n]: OffsetAndMetadata(offset) for n, offset in offsets.items()})
        except KafkaError as error:
            with self.lock:
                self.report(member, "commit_failed", offsets=offsets, error=repr(error))
                self.refused_commits += 1
            return
        with self.lock:
            self.report(member, "committed", offsets=offsets)
            self.commits += 1
            for number, offset in offsets.items():
                self._confirmed[number] = max(self._confirmed[number], offset)
        pending.clear()

    def is_at_end(self, client: kafkacore.KafkaConsumer) -> bool:
        if not self._is_at_end.is_set():
            ends = client.end_offsets(self.partitions)
            with self.lock:
                if all(ends[tp] == self._confirmed[tp.partition] for tp in self.partitions):
                    self._is_at_end.set()
        return self._is_at_end.is_set()

    # ---- Checks -------------------------------------------------------------------------------------------

    def watch(self) -> None:
        """Check the committed offsets after every start of the broker, until the group reaches the end."""
        with self.consumer() as client:
            while not self._is_at_end.is_set():
                if self.started.wait(0.1):
                    self.started.clear()
                    self.check(client)
            self.check(client)

    def check(self, client: kafkacore.KafkaConsumer) -> None:
        """Check that committed offsets were sent, do not go back, and are not beyond the log's end."""
        with self.lock:
            least = [max(pair) for pair in zip(self._confirmed, self._found, strict=True)]
        committed = client.committed(self.partitions, timeout_ms=BUDGET_MS)
        with self.lock:
            most = list(self._attempted)
        ends = client.end_offsets(self.partitions)
        for tp in self.partitions:
            found, number = committed[tp], tp.partition
            if found is None or not least[number] <= found <= most[number]:
                self._find(f"{tp}: {found} is committed; {least[number]} was before, {most[number]} was sent")
            elif found > ends[tp]:
                self._find(f"{tp}: {found} is committed, and the log ends at {ends[tp]}")
            else:
                self._found[number] = found
        self.checks += 1

    def judge(self, ends: dict[int, int]) -> list[Finding]:
        """Return the findings of the checks, and those about records that members skipped or repeated."""
        history = GroupHistory()
        for sentence in history.check(self._events, ends):
            # A sentence about an event begins with its time in seconds.
            time_s, _, what = sentence.partition(" ")
            if time_s.replace(".", "").isdigit():
                self._find(what, int(float(time_s) * 1e9))
            else:
                self._find(sentence)
        self.repeated = history.repeated
        return self.findings

    def _find(self, sentence: str, time_ns: int | None = None) -> None:
        kills = len(self.kills_ns) if time_ns is None else bisect_right(self.kills_ns, time_ns)
        self.findings.append(Finding(sentence, GROUP, kills))

    def figures(self) -> dict[str, int]:
        """Return the group's figures as text."""
        return {
            "processed by the group": self.processed,
            "repeated": self.repeated,
            "commits": self.commits,
            "commits without success": self.refused_commits,
            "stays of members": self.stays,
            "checks of commits": self.checks,
        }


class _Member(ConsumerRebalanceListener):
    """One stay of a member in the group."""

    def __init__(self, group: KilledGroup, name: str) -> None:
        self._group = group
        self._name = name
        self._client = group.consumer()
        #: Offsets of records that were processed and are not known to be committed.
        self._pending: dict[int, int] = {}

    def stay(self, polls: int, forgets: bool, producers_done: threading.Event) -> None:
        """Stay in the group for a while. ``forgets`` leaves the last records uncommitted.

        The next owner then repeats them.
        """
        with self._client as client:
            client.subscribe([self._group.partitions[0].topic], listener=self)
            while polls > 0:
                found = client.poll(timeout_ms=100)
                polls -= bool(found)
                for tp, records in found.items():
                    self._group.process(self._name, tp, records)
                    self._pending[tp.partition] = records[-1].offset + 1
                if not polls and forgets:
                    self._pending.clear()
                elif self._pending:
                    self._group.commit(self._name, client, self._pending)
                if producers_done.is_set() and not found and self._group.is_at_end(client):
                    break
        self._changed("closed", [])

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        self._changed("assigned", assigned)

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        if self._pending:
            self._group.commit(self._name, self._client, self._pending)
        self._changed("revoked", revoked)

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        self._changed("lost", lost)

    def _changed(self, kind: str, partitions: Collection[TopicPartition]) -> None:
        if kind in ("revoked", "lost"):
            for tp in partitions:
                self._pending.pop(tp.partition, None)
        with self._group.lock:
            self._group.report(self._name, kind, partitions=sorted(tp.partition for tp in partitions))
