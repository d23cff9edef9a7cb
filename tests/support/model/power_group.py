"""A consumer group (KIP-848) whose broker is stopped, killed, and loses power at random times.

Requests pass through the broker's own handlers. The members behave as Java's consumer: they give up a
partition before they report so, and repeat a heartbeat without a response with all their fields.
"""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

from model.broker_in_hand import BrokerInHand, frame_of
from model.loading import loading_at_once
from model.log_oracle import NOW_MS

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    FencedMemberEpochError,
    NotCoordinatorError,
    UnknownMemberIdError,
    UnreleasedInstanceIdError,
)
from kafkacore.protocol import decode_response
from kafkacore.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.testing.clock import VirtualClock
from kafkacore.testing.disk import PowerLossError, SimulatedDisk

GROUP, TOPIC = "group", "topic"
PARTITIONS = 6
MOST_MEMBERS = 4
#: No session expires in a run.
SESSION_MS = 10**9
CONFIG = {
    "port": 0,
    "log_retention_ms": -1,
    "offsets_topic_num_partitions": 1,
    # Small, so that the records of the group are compacted frequently.
    "offsets_topic_segment_bytes": 900,
    "group_consumer_max_session_timeout_ms": SESSION_MS,
    "group_consumer_session_timeout_ms": SESSION_MS,
}
#: The new assignment is delayed in every second run.
ASSIGNMENT_INTERVALS_MS = (0, 60)
RETRIABLE = {
    each.errno for each in (CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError)
}
#: Heartbeats of each member within which the group must be stable once the broker stays up.
MOST_ROUNDS = 200
#: Member epochs of a member that joins, of one that leaves, and of a static one that will return.
JOINS, LEAVES, RETURNS = 0, -1, -2


@dataclass
class PowerMember:
    """A member as its client knows it."""

    name: str
    instance: str | None = None
    epoch: int = JOINS
    owned: set[int] = field(default_factory=set)
    #: The partitions of the last response, until the member has given up and taken over partitions.
    target: set[int] | None = None
    #: Whether the next heartbeat has all fields.
    sends_all: bool = True
    #: The responses to the open request; ``None`` if no request is open.
    answers: list[Any] | None = None
    #: Number of requests in a row without a known outcome.
    unanswered: int = 0


@dataclass
class PowerGroup:
    """One run with a seed; call :meth:`run`."""

    seed: int
    folder: Path
    members: list[PowerMember] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    states: int = 0
    #: Number of assignments that a member has taken over, and of fenced members.
    assignments: int = 0
    fenced: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.clock = VirtualClock(start_ms=NOW_MS, seed=self.seed)
        self.disk = SimulatedDisk()
        self._broker: BrokerInHand | None = None
        self._topic_id = UUID(int=0)
        self._names = count()

    def run(self, losses: int) -> list[str]:
        """Interrupt the broker ``losses`` times, wait for a stable group, and return the violations."""
        with loading_at_once():
            for _ in range(losses):
                with suppress(PowerLossError):
                    self._live()
                self._end_life()
                self.states += 1
            self.disk.fault = lambda call, verb, path: None
            self._start()
            self._settle()
            self._abandon()
        return [f"seed {self.seed}, state {self.states}: {finding}" for finding in self.findings]

    # ---- The broker ---------------------------------------------------------------------------------------

    @property
    def broker(self) -> BrokerInHand:
        assert self._broker is not None
        return self._broker

    def _live(self) -> None:
        left = self.chance.randrange(10, 250)

        def fault(call: int, verb: str, path: Path) -> BaseException | None:
            nonlocal left
            left -= call >= 0
            return PowerLossError(verb) if left < 0 else None

        self.disk.fault = fault
        self._start()
        for _ in range(self.chance.randrange(20, 200)):
            self._step()
        if self.chance.random() < 0.5:
            self.broker.stop()

    def _start(self) -> None:
        interval_ms = ASSIGNMENT_INTERVALS_MS[self.seed % 2]
        properties = {"group_consumer_assignment_interval_ms": interval_ms, **CONFIG}
        config = BrokerConfig.from_properties({"data_dir": self.folder, **properties})
        self._broker = BrokerInHand(config, background=False, clock=self.clock, disk=self.disk)
        self.broker.start()
        if TOPIC not in self.broker.logs.topics():
            self.broker.services.topics.create(TOPIC, PARTITIONS, {})
        self.broker.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]))
        self._turn()
        self._topic_id = self.broker.services.topics.get(TOPIC).topic_id

    def _end_life(self) -> None:
        """Abandon the broker. The power is lost, or only the process ends."""
        lost = not self.disk.has_power or self.chance.random() < 0.5
        self._abandon()
        self.disk = self.disk.lose_power(self.clock) if lost else self.disk.kill_process()
        for member in self.members:
            if member.answers is not None:
                self._take_answer(member)
            if member.answers is not None:
                self._lose_answer(member)

    def _abandon(self) -> None:
        if self._broker is not None:
            self._broker.abandon()
            self._broker = None

    def _turn(self) -> None:
        """Run the threads of the log, and one iteration of the network thread, then take the responses."""
        self.broker.flush()
        if not self.disk.has_power:
            raise PowerLossError("in a turn")
        self.clock.advance(10)
        for member in list(self.members):
            self._take_answer(member)

    # ---- The members --------------------------------------------------------------------------------------

    def _step(self) -> None:
        how = self.chance.random()
        idle = [member for member in self.members if member.answers is None]
        if how < 0.3:
            self._turn()
        elif how < 0.35 and len(self.members) < MOST_MEMBERS:
            number = next(self._names)
            instance = f"instance {number}" if number % 3 == 2 else None
            self.members.append(PowerMember(f"member {number}", instance))
        elif how < 0.36:
            self.broker.logs.clean_filthiest()
        elif idle:
            member = self.chance.choice(idle)
            if member.target is not None and how < 0.8:
                self._reconcile(member)
            elif member.epoch > 0 and how < 0.42:
                self._leave(member)
            else:
                self._heartbeat(member)

    def _heartbeat(self, member: PowerMember) -> None:
        sends_all = member.sends_all or member.epoch == JOINS
        partitions = ConsumerGroupHeartbeatRequest.TopicPartitions(
            topic_id=self._topic_id, partitions=sorted(member.owned)
        )
        message = ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=member.name,
            instance_id=member.instance,
            member_epoch=member.epoch,
            rebalance_timeout_ms=SESSION_MS if sends_all else -1,
            subscribed_topic_names=[TOPIC] if sends_all else None,
            topic_partitions=([partitions] if member.owned else []) if sends_all else None,
        )
        member.sends_all = False
        # The power may be lost in the next line. The request is then open.
        member.answers = []
        member.answers = self.broker.give(frame_of(message, 1))

    def _leave(self, member: PowerMember) -> None:
        """Stop processing, and leave for good, or as a static member until a client with its instance id."""
        member.owned, member.target = set(), None
        member.epoch = RETURNS if member.instance and self.chance.random() < 0.7 else LEAVES
        self._heartbeat(member)

    def _take_answer(self, member: PowerMember) -> None:
        if not member.answers:
            return
        answer = decode_response(member.answers[0], ConsumerGroupHeartbeatRequest, 1)[1]
        member.answers = None
        if answer.error_code in RETRIABLE:
            # The records may have been written nevertheless.
            self._lose_answer(member)
        elif member.epoch < 0:
            self._take_leave(member, answer.error_code)
        elif answer.error_code == FencedMemberEpochError.errno and member.unanswered > 1:
            # After one lost response the broker accepts the member's last epoch, but only that one.
            member.epoch, member.sends_all, member.owned, member.target = JOINS, True, set(), None
            member.unanswered = 0
            self.fenced += 1
        elif answer.error_code:
            self.findings.append(f"{member} was answered with {answer}")
            self._drop(member)
        else:
            if answer.member_epoch < member.epoch:
                self.findings.append(f"{member}: its epoch goes back to {answer.member_epoch}")
            member.epoch, member.unanswered = answer.member_epoch, 0
            if answer.assignment is not None:
                member.target = {
                    one for topic in answer.assignment.topic_partitions for one in topic.partitions
                }

    def _take_leave(self, member: PowerMember, error_code: int) -> None:
        # The response to an earlier request to leave may have been lost.
        allowed = {UnknownMemberIdError.errno} if member.unanswered else set()
        if member.epoch == RETURNS and member.unanswered:
            allowed.add(UnreleasedInstanceIdError.errno)
        if error_code and error_code not in allowed:
            self.findings.append(f"{member} left, and was answered with error {error_code}")
        self._drop(member)
        if member.epoch == RETURNS:
            self.members.append(PowerMember(f"{member.name} again", member.instance))

    def _lose_answer(self, member: PowerMember) -> None:
        member.answers, member.sends_all = None, True
        member.unanswered += 1

    def _drop(self, member: PowerMember) -> None:
        self.members = [other for other in self.members if other is not member]

    def _reconcile(self, member: PowerMember) -> None:
        """Give up the partitions that are not in the target, then take over the others."""
        assert member.target is not None
        for other in self.members:
            if other is not member and (shared := other.owned & member.target):
                self.findings.append(f"partitions {sorted(shared)} of {other} are also assigned to {member}")
        member.owned, member.target, member.sends_all = member.target, None, True
        self.assignments += 1

    def _settle(self) -> None:
        """Check that the group becomes stable, and that each partition then has an owner."""
        self.members.append(PowerMember("last member"))
        for _ in range(MOST_ROUNDS):
            for member in list(self.members):
                if member.target is not None:
                    self._reconcile(member)
                if member.answers is None:
                    self._heartbeat(member)
            self._turn()
            if self.findings or self._is_stable():
                return
        self.findings.append(f"the group does not become stable: {self.members}")

    def _is_stable(self) -> bool:
        owned = [len(member.owned) for member in self.members]
        epochs = {member.epoch for member in self.members}
        return sum(owned) == PARTITIONS and max(owned) - min(owned) <= 1 and len(epochs) == 1
