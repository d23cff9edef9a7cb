"""A consumer group of clients in several languages, each a process that joins, leaves or is killed.

``model.group_history`` checks the events that the members report.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from eventually import BUDGET_MS, BUDGET_S, eventually
from model.group_history import Event
from model.raw_line import Line
from peers.jars import SHORT_LIVED, java_command

from kafkacore import KafkaProducer
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.protocol.generated.list_groups import ListGroupsRequest

SUPPORT = Path(__file__).resolve().parents[1]
#: First version of ListGroups whose response has the types of groups.
LIST_GROUPS_WITH_TYPES = 5
#: No session expires on a slow machine. librdkafka refuses a session that is longer than its
#: max.poll.interval.ms, whose default is 5 minutes.
SESSION_TIMEOUT_MS = min(int(2 * BUDGET_MS), 300_000)
#: Session timeout of members that may be killed, which keep their partitions for this long. On a slow machine
#: it may expire while the member is alive; the member then loses its partitions, which the history allows.
SHORT_SESSION_MS = 3_000
#: Properties of a broker whose groups of the consumer protocol (KIP-848) have short sessions. Their members
#: cannot choose the time-outs.
SHORT_CONSUMER_SESSIONS = {
    "group.consumer.session.timeout.ms": str(SHORT_SESSION_MS),
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
}
CLIENTS = {
    "range": ("kafkacore", "kafkacore.aio", "java", "confluent", "kafka-python", "aiokafka"),
    "roundrobin": ("kafkacore", "kafkacore.aio", "java", "confluent", "kafka-python", "aiokafka"),
    "sticky": ("kafkacore", "kafkacore.aio", "java", "kafka-python", "aiokafka"),
    "cooperative-sticky": ("kafkacore", "kafkacore.aio", "java", "confluent", "kafka-python"),
    # The other clients do not support two assignors of different kinds.
    "eager to cooperative": ("kafkacore", "kafkacore.aio", "java"),
    # Group protocols; those above are assignors of the classic one.
    "consumer": ("kafkacore", "kafkacore.aio", "java", "confluent"),
    "classic and consumer": ("kafkacore", "kafkacore.aio", "java", "confluent"),
}
#: The keys of ``CLIENTS`` that are assignors.
ASSIGNORS = [name for name in CLIENTS if "consumer" not in name]
#: Assignors of members that change from eager to cooperative rebalances (KIP-429).
STRATEGIES = {"eager to cooperative": ("cooperative-sticky,range", "cooperative-sticky")}


class Member:
    """One process and the events that it has reported."""

    def __init__(self, name: str, client: str, options: dict[str, Any], errors: Path) -> None:
        self.name = name
        self.client = client
        self.events: list[Event] = []
        self.protocol: str = options.get("group_protocol", "classic")
        self.may_be_killed = options["session_timeout_ms"] <= SHORT_SESSION_MS
        self._errors = errors
        self._has_ended = False
        #: Number of events when it was resumed; 0 if it was never paused, ``None`` while it is paused.
        self._resumed_at: int | None = 0
        if client == "java":
            command = java_command("GroupMember", json.dumps(options), jvm=[*SHORT_LIVED, "-Xmx128m"])
        else:
            command = [sys.executable, "-m", "model.group_member", client, json.dumps(options)]
        with errors.open("wb") as stderr:
            self.process = subprocess.Popen(
                command, cwd=SUPPORT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
            )
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said = json.loads(line)
            with self._changed:
                self.events.append(Event(said["time_ns"], self.name, said["kind"], said["what"]))
                self._changed.notify_all()
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def await_event(self, is_it: Callable[[Event], bool], since: int = 0) -> None:
        """Wait for an event of this kind, from the ``since``-th event on."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_ended or any(map(is_it, self.events[since:])), BUDGET_S)
            found = any(map(is_it, self.events[since:]))
        assert found, f"{self.name} reported only {self.events[-3:]}:\n{self._errors.read_text()[-4000:]}"

    def owned(self) -> set[int]:
        """Return the partitions that it last reported to own."""
        for event in reversed(self.events):
            if "owned" in event.what:
                return set(event.what["owned"])
        return set()

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        self.process.kill()
        self._end()
        self.events.append(Event(int(SYSTEM_CLOCK.monotonic_ms() * 1e6), self.name, "dead"))

    def compute(self, seconds: float) -> None:
        """Let it compute while holding the GIL, without polling. Returns when it has begun."""
        assert self.process.stdin is not None
        known = len(self.events)
        self.process.stdin.write(f"{seconds}\n".encode())
        self.process.stdin.flush()
        self.await_event(lambda event: event.kind == "busy", since=known)

    @property
    def is_paused(self) -> bool:
        return self._resumed_at is None

    def pause(self) -> None:
        """Stop the process with SIGSTOP; :meth:`resume` continues it."""
        self._resumed_at = None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the process with SIGCONT. The group may have removed it meanwhile."""
        self._resumed_at = len(self.events)
        self.process.send_signal(signal.SIGCONT)

    def knows_its_partitions(self) -> bool:
        """Return whether it has learned since its last pause what it has lost.

        A consumer that is closed before that reports its partitions as revoked, because it does not know that
        it has lost them.
        """
        if self._resumed_at is None:
            return False
        kinds = [event.kind for event in self.events[self._resumed_at :]]
        # A commit that was begun before the pause may have been answered before it.
        begun = kinds.index("committing") if "committing" in kinds else len(kinds)
        return self._resumed_at == 0 or "lost" in kinds or "committed" in kinds[begun:]

    def leave(self) -> None:
        """Ask it to leave the group; :meth:`ended` waits for it."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def ended(self) -> None:
        """Wait until it has left and all its events have been read."""
        try:
            self.process.wait(BUDGET_S)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
            self.kill()
            raise AssertionError(f"{self.name} has not exited: {self.events[-3:]}") from None
        self._end()
        if self.process.returncode:
            said = self._errors.read_text()[-4000:]
            raise AssertionError(f"{self.name} exited with status {self.process.returncode}:\n{said}")

    def _end(self) -> None:
        self.process.wait(BUDGET_S)
        self._reader.join(BUDGET_S)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()


@dataclass
class MixedGroup:
    """Members of one group on one topic, while a producer writes to all partitions."""

    servers: str
    topic: str
    partitions: int
    protocol: str
    scratch: Path
    options: dict[str, Any] = field(default_factory=dict)
    members: list[Member] = field(default_factory=list)
    past: list[Member] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)
    _number: Iterator[int] = field(default_factory=count)

    @property
    def group_id(self) -> str:
        return f"group of {self.topic}"

    def kind(self) -> str:
        """Return the type of the group on its broker: "classic" or "consumer"."""
        with Line(self.servers) as line:
            found = line.ask(ListGroupsRequest(), LIST_GROUPS_WITH_TYPES).groups
        return next((each.group_type for each in found if each.group_id == self.group_id), "")

    def join(self, client: str, **options: Any) -> Member:
        """Start a member."""
        name = f"{next(self._number)}-{client}"
        shared = {
            "servers": self.servers,
            "topic": self.topic,
            "group": self.group_id,
            "strategy": self.protocol,
            "session_timeout_ms": SESSION_TIMEOUT_MS,
        }
        member = Member(name, client, shared | self.options | options, self.scratch / f"{name}.err")
        self.members.append(member)
        return member

    def leave(self, member: Member) -> None:
        """Let the member leave without waiting for it."""
        self.members.remove(member)
        self.past.append(member)
        member.leave()

    def kill(self, member: Member) -> None:
        """Kill the member."""
        self.members.remove(member)
        self.past.append(member)
        member.kill()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Run a producer within the block. Afterwards the number of records is known."""
        stopped = threading.Event()
        with KafkaProducer(bootstrap_servers=self.servers, acks="all", linger_ms=5) as producer:

            def write() -> None:
                for number in count():
                    if stopped.wait(0.005):
                        return
                    for _ in range(4):
                        producer.send(
                            self.topic, b"%d" % number, partition=(number * 5 + _ * 3) % self.partitions
                        )

            thread = threading.Thread(target=write)
            thread.start()
            try:
                yield
            finally:
                stopped.set()
                thread.join()
            last = [producer.send(self.topic, b"last", partition=one) for one in range(self.partitions)]
            self.ends = {one: future.get(BUDGET_S).offset + 1 for one, future in enumerate(last)}

    def settle(self) -> None:
        """Wait until the members report that all records are committed, then let them leave."""
        self.await_committed()
        self.leave_all()

    def await_committed(self) -> None:
        """Wait until the members report that all records are committed."""

        def are_committed() -> bool:
            are_alive = all(member.process.poll() is None for member in self.members)
            committed = self.committed()
            assert are_alive or committed == self.ends, self.what_is_left(committed)
            return committed == self.ends

        eventually(are_committed, lambda: self.what_is_left(self.committed()))

    def leave_all(self) -> None:
        """Let all members leave, and wait until they and the earlier ones have exited."""
        for member in self.members:
            member.leave()
        for member in (*self.members, *self.past):
            if member.process.returncode is None:
                member.ended()

    def await_stable(self) -> int:
        """Wait until each partition has one owner; return the monotonic time (ms) of the last change."""

        def owned() -> dict[str, tuple[list[int], list[Event]]]:
            return {member.name: (sorted(member.owned()), member.events[-2:]) for member in self.members}

        eventually(self.is_stable, lambda: f"not stable: {owned()}")
        return max(event.time_ns for event in self.events() if "owned" in event.what) // 1_000_000

    def is_stable(self) -> bool:
        """Return whether all partitions have an owner and are evenly distributed, as far as members know."""
        if not all(member.knows_its_partitions() for member in self.members):
            return False
        owned = [member.owned() for member in self.members]
        counts = list(map(len, owned))
        every = set().union(*owned)
        return sum(counts) == len(every) == self.partitions and max(counts) - min(counts) <= 1

    def what_is_left(self, committed: dict[int, int]) -> str:
        """Describe the remaining work for a message."""
        left = {one: (committed.get(one), end) for one, end in self.ends.items() if committed.get(one) != end}
        said = {member.name: (sorted(member.owned()), member.events[-2:]) for member in self.members}
        return f"not committed, of: {left}; members: {said}"

    def committed(self) -> dict[int, int]:
        """Return the highest confirmed commit of each partition."""
        found: dict[int, int] = {}
        for event in self.events():
            if event.kind == "committed":
                for number, offset in event.what["offsets"].items():
                    found[int(number)] = max(found.get(int(number), 0), offset)
        return found

    def events(self) -> list[Event]:
        """Return the events of all members, unordered."""
        return [event for member in (*self.members, *self.past) for event in list(member.events)]

    def __enter__(self) -> MixedGroup:
        return self

    def __exit__(self, *_: object) -> None:
        for member in (*self.members, *self.past):
            if member.process.poll() is None:
                member.process.kill()
            member._end()
