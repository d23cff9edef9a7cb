"""Many members of consumer groups (KIP-848) on a few connections, for measurements of a broker.

The members speak the protocol with raw requests from one thread: they join, confirm each assignment with the
next heartbeat, and then send a heartbeat at the interval that the broker has chosen.
"""

from __future__ import annotations

import heapq
import itertools
import selectors
import socket
import struct
import uuid
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from eventually import BUDGET_S, eventually
from model.raw_line import Line

from kafkacore.broker.group.consumer.consumer_member import JOIN_EPOCH, LEAVE_EPOCH
from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.errors import KafkaConnectionError
from kafkacore.protocol import decode_response, encode_request
from kafkacore.protocol.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest

VERSION = 1
FIND_COORDINATOR_VERSION = 6
REBALANCE_TIMEOUT_MS = 300_000
#: Requests of one connection whose response has not arrived.
IN_FLIGHT = 64
#: Milliseconds between two looks at the condition that ends a run.
ASK_MS = 100
_CLIENT_ID = "heartbeats"
_SIZE = struct.Struct(">i")


@dataclass(slots=True, eq=False)
class LoadMember:
    """A member as far as its requests need it."""

    number: int
    group: str
    topic: str
    member_id: str
    epoch: int = 0
    owned: list[ConsumerGroupHeartbeatRequest.TopicPartitions] = field(default_factory=list)
    #: Whether the broker does not know yet that the member has taken over its assignment.
    owes_confirmation: bool = False
    is_leaving: bool = False

    def request(self) -> ConsumerGroupHeartbeatRequest:
        """Return the next request: with all fields to join, otherwise with those that have changed."""
        if self.is_leaving:
            return ConsumerGroupHeartbeatRequest(
                group_id=self.group, member_id=self.member_id, member_epoch=LEAVE_EPOCH
            )
        if self.epoch == 0:
            return ConsumerGroupHeartbeatRequest(
                group_id=self.group,
                member_id=self.member_id,
                member_epoch=JOIN_EPOCH,
                rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
                subscribed_topic_names=[self.topic],
                topic_partitions=[],
            )
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            topic_partitions=self.owned if self.owes_confirmation else None,
        )


class _Connection:
    """A connection with the requests in flight, in their order."""

    def __init__(self, servers: str) -> None:
        host, _, port = servers.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), BUDGET_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = bytearray()
        self.in_flight: deque[tuple[LoadMember, float]] = deque()
        self._number = 0

    def send(self, member: LoadMember, now_ms: float) -> None:
        self._number += 1
        pieces = encode_request(member.request(), VERSION, self._number, _CLIENT_ID)
        payload = b"".join(map(bytes, pieces))
        self.socket.sendall(_SIZE.pack(len(payload)) + payload)
        self.in_flight.append((member, now_ms))

    def receive(self) -> list[tuple[LoadMember, float, ConsumerGroupHeartbeatResponse]]:
        """Read what has arrived, and return the member, the time of its request, and the response."""
        taken = self.socket.recv(1 << 18)
        if not taken:
            raise KafkaConnectionError("the broker closed a connection of the load generator")
        self._received += taken
        found, at = [], 0
        while len(self._received) - at >= _SIZE.size:
            (size,) = _SIZE.unpack_from(self._received, at)
            if len(self._received) - at - _SIZE.size < size:
                break
            frame = bytes(self._received[at + _SIZE.size : at + _SIZE.size + size])
            at += _SIZE.size + size
            _, answer = decode_response(frame, ConsumerGroupHeartbeatRequest, VERSION)
            found.append((*self.in_flight.popleft(), answer))
        del self._received[:at]
        return found


class HeartbeatLoad:
    """Members of consumer groups that join and then send heartbeats.

    Parameters
    ----------
    servers:
        Address of the broker.
    groups:
        Topic of each group. Members are spread over the groups in turn.
    members:
        Number of members of all groups.
    connections:
        Number of connections, each shared by as many members.
    clock:
        Source of the monotonic time.
    """

    def __init__(
        self,
        servers: str,
        groups: dict[str, str],
        members: int,
        connections: int,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._clock = clock
        self.members = [
            LoadMember(number, group, groups[group], str(uuid.uuid4()))
            for number, group in zip(range(members), itertools.cycle(groups), strict=False)
        ]
        _await_coordinator(servers, list(groups))
        self._connections = [_Connection(servers) for _ in range(connections)]
        self._selector = selectors.DefaultSelector()
        for connection in self._connections:
            self._selector.register(connection.socket, selectors.EVENT_READ, connection)
        now_ms = self._clock.monotonic_ms()
        self._due = [(now_ms, number) for number in range(members)]
        #: Milliseconds from the request to the response, since the last call of :meth:`forget_figures`.
        self.latencies_ms: list[float] = []
        #: Responses that brought a new assignment, since the last call of :meth:`forget_figures`.
        self.assignments = 0
        #: Responses with an error, by its code, since the last call of :meth:`forget_figures`.
        self.errors: Counter[int] = Counter()

    def forget_figures(self) -> None:
        """Start the figures at zero."""
        self.latencies_ms.clear()
        self.assignments = 0
        self.errors.clear()

    def run(self, is_over: Callable[[], bool], longest_s: float) -> float:
        """Send and receive until ``is_over``, and return the seconds that it took.

        ``is_over`` is called ten times a second.

        Raises
        ------
        TimeoutError
            If it is not over after ``longest_s``.
        """
        began_ms = asked_ms = self._clock.monotonic_ms()
        while True:
            now_ms = self._clock.monotonic_ms()
            if now_ms - asked_ms >= ASK_MS:
                asked_ms = now_ms
                if is_over():
                    return (now_ms - began_ms) / 1000
                if now_ms - began_ms > longest_s * 1000:
                    raise TimeoutError(self.state())
            self._send_due(now_ms)
            self._receive()

    def leave(self, longest_s: float) -> None:
        """Let all members leave, so that the broker has no sessions of them that expire later.

        Raises
        ------
        TimeoutError
            If not all have left after ``longest_s``.
        """
        now_ms = self._clock.monotonic_ms()
        for member in self.members:
            member.is_leaving = True
        self._due = [(now_ms, member.number) for member in self.members]
        self.run(lambda: not any(member.epoch for member in self.members), longest_s)

    def state(self) -> str:
        """Describe how far the members are, for a message."""
        joined = sum(member.epoch > 0 for member in self.members)
        return (
            f"{joined} of {len(self.members)} members joined and own {self.owned()} partitions; {self.errors}"
        )

    def owned(self) -> int:
        """Return how many partitions the members own, each counted once."""
        return len(
            {
                (member.group, topic.topic_id, partition)
                for member in self.members
                for topic in member.owned
                for partition in topic.partitions
            }
        )

    def is_stable(self, partitions: int) -> bool:
        """Return whether all members have joined and confirmed, and own these partitions evenly.

        Members that joined first may own all partitions until the broker has computed the next assignment.
        """
        if not all(member.epoch > 0 and not member.owes_confirmation for member in self.members):
            return False
        counts = [sum(len(topic.partitions) for topic in member.owned) for member in self.members]
        return max(counts) - min(counts) <= 1 and self.owned() == partitions

    def close(self) -> None:
        """Close the connections. Members that have not left stay until their sessions expire."""
        self._selector.close()
        for connection in self._connections:
            connection.socket.close()

    def _send_due(self, now_ms: float) -> None:
        """Send the requests that are due, as far as connections may have more in flight."""
        waiting = []
        while self._due and self._due[0][0] <= now_ms:
            at_ms, number = heapq.heappop(self._due)
            connection = self._connections[number % len(self._connections)]
            if len(connection.in_flight) >= IN_FLIGHT:
                waiting.append((at_ms, number))
                if len(waiting) >= len(self._connections) * 4:
                    break
                continue
            connection.send(self.members[number], now_ms)
        for each in waiting:
            heapq.heappush(self._due, each)

    def _receive(self) -> None:
        now_ms = self._clock.monotonic_ms()
        wait_ms = min(max(self._due[0][0] - now_ms, 1.0), 20.0) if self._due else 20.0
        for key, _ in self._selector.select(wait_ms / 1000):
            for member, sent_ms, answer in key.data.receive():
                self._take(member, sent_ms, answer)

    def _take(self, member: LoadMember, sent_ms: float, answer: ConsumerGroupHeartbeatResponse) -> None:
        now_ms = self._clock.monotonic_ms()
        if member.is_leaving:
            # The response to an earlier heartbeat comes before that to the request to leave.
            if answer.error_code or answer.member_epoch == LEAVE_EPOCH:
                member.epoch = 0
            return
        self.latencies_ms.append(now_ms - sent_ms)
        due_ms = sent_ms + answer.heartbeat_interval_ms
        if answer.error_code:
            # The member was fenced, or the group is being loaded: it joins again.
            self.errors[answer.error_code] += 1
            member.epoch, member.owned, member.owes_confirmation = 0, [], False
            due_ms = now_ms + 100
        else:
            member.epoch = answer.member_epoch
            member.owes_confirmation = answer.assignment is not None
            if answer.assignment is not None:
                self.assignments += 1
                member.owned = [
                    ConsumerGroupHeartbeatRequest.TopicPartitions(
                        topic_id=topic.topic_id, partitions=topic.partitions
                    )
                    for topic in answer.assignment.topic_partitions
                ]
                # The Java client, too, confirms at once.
                due_ms = now_ms
        heapq.heappush(self._due, (due_ms, member.number))


def _await_coordinator(servers: str, groups: list[str]) -> None:
    """Wait until the only broker coordinates the groups. The first request creates the offsets topic."""
    request = FindCoordinatorRequest(coordinator_keys=groups)
    with Line(servers) as line:
        eventually(
            lambda: (
                not any(each.error_code for each in line.ask(request, FIND_COORDINATOR_VERSION).coordinators)
            ),
            lambda: "no coordinator",
            # Apache Kafka first creates the logs of 10,000 partitions.
            budgets=5,
        )
