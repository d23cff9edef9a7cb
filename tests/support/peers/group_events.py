"""Random events of a mixed group and of its broker, all drawn from one seed.

Members join, leave, are killed and are paused; the broker is killed and stopped. If members of both group
protocols take turns, the group migrates from one protocol to the other and back.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from eventually import eventually
from model.group_history import Event
from peers.mixed_group import CLIENTS, SESSION_TIMEOUT_MS, SHORT_SESSION_MS, STRATEGIES, Member, MixedGroup

#: Fewest and most members at a time.
FEWEST, MOST = 2, 5
#: Kinds of events, each as often as it is drawn.
WITHOUT_OUTAGES = ("join", "join", "leave", "kill")
WITH_OUTAGES = ("join", "join", "join", "leave", "leave", "kill", "kill", "pause", "pause", "outage")
#: Seconds of a pause. The long ones outlast a session, after which the group removes the member.
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 2.5 * SHORT_SESSION_MS / 1_000
#: Longest pause while the group migrates. If the last member of the consumer protocol is removed, the group
#: becomes a classic one, and librdkafka's next heartbeat fails forever with GROUP_ID_NOT_FOUND.
LONGEST_MIGRATING_PAUSE_S = 0.4 * SHORT_SESSION_MS / 1_000


class Restartable(Protocol):
    """The broker of the group."""

    def kill(self) -> None: ...
    def stop(self) -> None: ...
    def start(self) -> object: ...


@dataclass
class GroupEvents:
    """Draws the events of one group; call :meth:`run`.

    Parameters
    ----------
    kinds:
        The kinds of events to draw from. One that is impossible at the time is replaced by another kind.
    broker:
        The broker to restart, for the kind "outage".
    may_kill_broker:
        Whether an outage may be a SIGKILL. Otherwise the broker is stopped.
    without:
        Clients that do not take part.
    """

    group: MixedGroup
    chance: random.Random
    kinds: Sequence[str] = WITHOUT_OUTAGES
    broker: Restartable | None = None
    may_kill_broker: bool = True
    without: Collection[str] = ()
    #: Number of events by kind.
    counts: Counter[str] = field(default_factory=Counter)
    #: Group protocol that joining members use, while the group migrates.
    wanted: str = "classic"
    _wake: list[threading.Timer] = field(default_factory=list)

    def run(self, events: int) -> None:
        """Start two members, let the events happen, then process the rest and leave.

        A group that migrates gets more events until it has migrated in both directions.
        """
        first = "kafkacore" if "kafkacore" in self._clients else self._clients[0]
        with self.group.writing():
            self.group.join(first, **self.options()).await_event(_has_records)
            self.group.join(self.chance.choice(self._clients), **self.options())
            happened = 0
            while happened < events or not self._has_migrated():
                self.one_event()
                happened += 1
                if self.chance.random() < 0.4:
                    self.await_stable()
                # This waits for no condition: the time of the next event is random.
                threading.Event().wait(0.05 * 30 ** self.chance.random())
            self.await_stable()
        self.group.await_committed()
        # A member that was paused may not have known yet that it had lost its partitions.
        self.await_stable()
        self.group.leave_all()

    @property
    def _clients(self) -> tuple[str, ...]:
        return tuple(client for client in CLIENTS[self.group.protocol] if client not in self.without)

    @property
    def _migrates(self) -> bool:
        return self.group.protocol == "classic and consumer"

    def _has_migrated(self) -> bool:
        return not self._migrates or (self.counts["to classic"] > 0 and self.counts["to consumer"] > 0)

    def options(self) -> dict[str, Any]:
        """Return random options of the next member: its strategy, and whether it may be killed."""
        if self.group.protocol == "consumer" or (self._migrates and self.wanted == "consumer"):
            # The session is that of the broker, so that every member may be killed.
            return {"group_protocol": "consumer", "session_timeout_ms": SHORT_SESSION_MS}
        if self._migrates:
            # With members that cannot be killed, a paused one would keep its partitions.
            return {"strategy": "range", "session_timeout_ms": SHORT_SESSION_MS}
        strategy = self.chance.choice(STRATEGIES.get(self.group.protocol, (self.group.protocol,)))
        session_timeout_ms = self.chance.choice((SESSION_TIMEOUT_MS, SHORT_SESSION_MS))
        return {"strategy": strategy, "session_timeout_ms": session_timeout_ms}

    def one_event(self) -> None:
        """Let one event happen."""
        if self._migrates:
            self._turn()
        kind = self.chance.choice(self.kinds)
        count = len(self.group.members)
        if count <= FEWEST and kind != "outage":
            kind = "join"
        elif count >= MOST and kind == "join":
            kind = self.chance.choice(("leave", "kill"))
        self.counts[getattr(self, f"_{kind}")()] += 1

    def await_stable(self) -> None:
        """Resume all members and wait until each partition has one owner."""
        for timer in self._wake:
            timer.cancel()
            timer.join()
        for member in self.group.members:
            if member.is_paused:
                member.resume()
        self._wake = []
        self.group.await_stable()

    def _join(self) -> str:
        self.group.join(self.chance.choice(self._clients), **self.options())
        return "join"

    def _leave(self) -> str:
        able = [member for member in self._leavers() if member.knows_its_partitions()]
        if not able:
            return self._kill()
        member = self.chance.choice(able)
        if not member.may_be_killed:
            # A client that closes before its first JoinGroup is answered does not know the member id to leave
            # with. The group then waits for the second JoinGroup until the session expires. A cooperative
            # member of librdkafka that has had no partition sends no LeaveGroup (confluent-kafka 2.16.1).
            member.await_event(_has_partitions)
        self.group.leave(member)
        return "leave"

    def _kill(self) -> str:
        mortal = [member for member in self._leavers() if member.may_be_killed]
        if not mortal:
            # No member has a short session, so each of them was never paused and can leave.
            return self._leave()
        self.group.kill(self.chance.choice(mortal))
        return "kill"

    def _pause(self) -> str:
        running = [
            member for member in self.group.members if member.may_be_killed and member.knows_its_partitions()
        ]
        if not running:
            return self._join()
        member = self.chance.choice(running)
        member.pause()
        longest_s = LONGEST_MIGRATING_PAUSE_S if self._migrates else LONGEST_PAUSE_S
        pause_s = SHORTEST_PAUSE_S * (longest_s / SHORTEST_PAUSE_S) ** self.chance.random()
        timer = threading.Timer(pause_s, member.resume)
        timer.start()
        self._wake.append(timer)
        return "pause"

    def _outage(self) -> str:
        assert self.broker is not None
        if self.may_kill_broker and self.chance.random() < 0.7:
            self.broker.kill()
        else:
            self.broker.stop()
        self.broker.start()
        return "outage"

    def _leavers(self) -> list[Member]:
        """Return the members that may leave: while the group migrates, those of the old protocol."""
        old = [member for member in self.group.members if member.protocol != self.wanted]
        return old if old and self._migrates else self.group.members

    def _turn(self) -> None:
        """Start the migration in the other direction when all members use the wanted protocol."""
        if all(member.protocol == self.wanted for member in self.group.members):
            self.await_stable()
            eventually(lambda: self.group.kind() == self.wanted, self.group.kind)
            self.counts[f"to {self.wanted}"] += 1
            self.wanted = "consumer" if self.wanted == "classic" else "classic"


def _has_partitions(event: Event) -> bool:
    return event.kind == "assigned" and bool(event.what["owned"])


def _has_records(event: Event) -> bool:
    return event.kind == "records"
