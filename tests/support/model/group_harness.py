"""A group coordinator on a virtual clock, with a log in memory and one call per request of a member."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.group.classic_group import ClassicGroup
from kafkacore.broker.group.group_coordinator import GroupCoordinator, Leaving, Syncing
from kafkacore.broker.group.joining import Joining
from kafkacore.broker.group.member import JoinResult, MemberProtocol, SyncResult
from kafkacore.broker.group.records import decode_group_metadata, decode_key
from kafkacore.broker.purgatory.timer import Timer
from kafkacore.coordinator.group_partition import partition_for
from kafkacore.coordinator.protocol import Subscription, encode_subscription
from kafkacore.errors import BrokerResponseError, CoordinatorLoadInProgressError, NotCoordinatorError
from kafkacore.protocol.generated.group_records import GroupMetadataKey
from kafkacore.testing import VirtualClock

ResultT = TypeVar("ResultT")
GROUP = "flights"
NODE = 1
RANGE = (MemberProtocol("range", encode_subscription(Subscription(["t"]))),)
DELAY_MS = 3_000
SESSION_MS = 10_000
REBALANCE_MS = 60_000


class Answer(Generic[ResultT]):
    """The response to a waiting request. ``result`` is ``None`` until it is complete."""

    def __init__(self) -> None:
        self.result: ResultT | None = None

    def give(self, result: ResultT) -> None:
        assert self.result is None, f"answered twice: {self.result}, {result}"
        self.result = result

    @property
    def got(self) -> ResultT:
        assert self.result is not None, "not answered"
        return self.result


class MemoryCoordinatorLog:
    """A :class:`CoordinatorLog` in memory. Appends are safe immediately, or after :meth:`settle`."""

    def __init__(self) -> None:
        self.groups: Any = None
        #: (key, value) of every record, in order.
        self.records: list[tuple[bytes, bytes | None]] = []
        self.is_holding = False
        #: Error codes with which the next appends fail.
        self.failures: deque[int] = deque()
        self.leaders: dict[int, int] = {}
        self.refusal: BrokerResponseError | None = None
        self._held: deque[Callable[[int], None]] = deque()

    def partition_for(self, group_id: str) -> int:
        return partition_for(group_id)

    @property
    def is_loading(self) -> bool:
        return isinstance(self.refusal, CoordinatorLoadInProgressError)

    def check(self, group_id: str, node_id: int) -> None:
        if self.refusal is not None:
            raise self.refusal
        if self.leaders.get(partition_for(group_id), NODE) != node_id:
            raise NotCoordinatorError

    def append(
        self, group_id: str, records: Sequence[tuple[bytes, bytes | None]], on_safe: Callable[[int], None]
    ) -> None:
        assert records
        if self.failures and not self.is_holding:
            code = self.failures.popleft()
            if code == NotCoordinatorError.errno:
                # Unload the partition because its log has failed.
                self.groups.unload(self.partition_for(group_id))
                self.refusal = NotCoordinatorError()
            on_safe(code)
            return
        self.records += records
        self.apply(records)
        self.when_safe(group_id, on_safe)

    def when_safe(self, group_id: str, on_safe: Callable[[int], None]) -> None:
        if self.is_holding:
            self._held.append(on_safe)
        else:
            on_safe(0)

    def settle(self, error_code: int = 0) -> None:
        """Report to all waiting appends whether they are safe, and stop holding."""
        self.is_holding = False
        while self._held:
            self._held.popleft()(error_code)

    def apply(self, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        for key, value in records:
            decoded = decode_key(key)
            if isinstance(decoded, GroupMetadataKey):
                metadata = None if value is None else decode_group_metadata(value)
                self.groups.apply_group(decoded.group, metadata)

    def last_value(self) -> Any:
        """Return the value of the last record, or ``None`` for a tombstone."""
        value = self.records[-1][1]
        return None if value is None else decode_group_metadata(value)

    def generations(self) -> list[tuple[int, list[str]]]:
        """Return the generation and the member ids of each record of a group."""
        values = [decode_group_metadata(value) for _, value in self.records if value is not None]
        return [(value.generation, [one.member_id for one in value.members]) for value in values]


class GroupHarness:
    """One coordinator and a default group for all calls."""

    def __init__(self, clock: VirtualClock | None = None, **config: Any) -> None:
        self.clock = clock or VirtualClock()
        self.timer = Timer(self.clock.monotonic_ms())
        self.log = MemoryCoordinatorLog()
        self.config = BrokerConfig.from_properties(
            {"data_dir": "/nowhere", "group_initial_rebalance_delay_ms": DELAY_MS, **config}
        )
        #: Tombstones of the group's offsets.
        self.offset_tombstones: list[tuple[bytes, None]] = []
        self.coordinator = GroupCoordinator(
            self.log, self.config, self.clock, self.timer, lambda _: self.offset_tombstones
        )
        self.registry = self.log.groups = self.coordinator.registry

    def restarted(self, **config: Any) -> GroupHarness:
        """Return a new coordinator loaded from this one's log after compaction."""
        other = GroupHarness(self.clock, **config)
        other.log.records = list(dict(self.log.records).items())
        other.log.apply(other.log.records)
        other.registry.load([group.group_id for group in other.registry])
        return other

    @property
    def group(self) -> ClassicGroup:
        found = self.registry.get(GROUP)
        assert found is not None, "the group does not exist"
        return found

    @property
    def state(self) -> str:
        return self.group.state.value

    def pass_ms(self, duration_ms: float) -> None:
        """Advance the clock and run each due task at its time."""
        end_ms = self.clock.monotonic_ms() + duration_ms
        while True:
            wait_ms = self.timer.time_to_next_ms(self.clock.monotonic_ms())
            left_ms = end_ms - self.clock.monotonic_ms()
            if wait_ms is None or wait_ms > left_ms:
                break
            self.clock.advance(wait_ms)
            self.timer.advance(self.clock.monotonic_ms())
        self.clock.advance(left_ms)
        self.timer.advance(self.clock.monotonic_ms())

    # ---- Requests -------------------------------------------------------------------------------------

    def join(
        self,
        member_id: str = "",
        *,
        instance_id: str | None = None,
        protocols: tuple[MemberProtocol, ...] = RANGE,
        version: int = 3,
        group_id: str = GROUP,
        client_id: str = "client",
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        node_id: int = NODE,
    ) -> Answer[JoinResult]:
        """Send a JoinGroup. The default is version 3, in which a new member needs no second request."""
        answer: Answer[JoinResult] = Answer()
        joining = Joining(
            group_id=group_id,
            member_id=member_id,
            group_instance_id=instance_id,
            client_id=client_id,
            client_host="/127.0.0.1",
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            protocol_type=protocol_type,
            protocols=protocols,
            reason="not provided",
            must_know_its_id=version >= 4,
            may_skip_assignment=version >= 9,
            on_joined=answer.give,
        )
        try:
            self.coordinator.join(joining, node_id)
        except BrokerResponseError as error:
            answer.give(JoinResult(error.errno, member_id))
        return answer

    def sync(
        self,
        member_id: str,
        generation_id: int,
        assignments: Mapping[str, bytes] | None = None,
        *,
        instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> Answer[SyncResult]:
        """Send a SyncGroup."""
        answer: Answer[SyncResult] = Answer()
        syncing = Syncing(
            group_id=GROUP,
            generation_id=generation_id,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=assignments or {},
            on_synced=answer.give,
        )
        try:
            self.coordinator.sync(syncing, NODE)
        except BrokerResponseError as error:
            answer.give(SyncResult(error.errno))
        return answer

    def heartbeat(self, member_id: str, generation_id: int, instance_id: str | None = None) -> int:
        """Send a Heartbeat and return its error code."""
        try:
            self.coordinator.heartbeat(GROUP, member_id, instance_id, generation_id, NODE)
        except BrokerResponseError as error:
            return error.errno
        return 0

    def leave(self, *leaving: tuple[str, str | None]) -> list[int]:
        """Send a LeaveGroup for members by id and instance id, and return the error code of each."""
        return self.leave_held(*leaving).got

    def leave_held(self, *leaving: tuple[str, str | None]) -> Answer[list[int]]:
        """Send a LeaveGroup that is answered when its records are safe, and return its error codes.

        If the response as a whole has an error code, only that one is returned.
        """
        answer: Answer[list[int]] = Answer()
        members = [Leaving(*one, "done") for one in leaving]
        self.coordinator.leave(
            GROUP, members, NODE, lambda code, codes: answer.give([code] if code else codes)
        )
        return answer

    def delete(self, *group_ids: str) -> Answer[dict[str, int]]:
        """Send a DeleteGroups and return the error code of each group."""
        answer: Answer[dict[str, int]] = Answer()
        self.coordinator.delete(group_ids, NODE, answer.give)
        return answer

    # ---- Groups with members ----------------------------------------------------------------------------

    def joined(self, count: int = 1, *instance_ids: str, **how: Any) -> list[str]:
        """Let dynamic and then static members join an empty group; return their ids, the leader first."""
        answers = [self.join(**how) for _ in range(count)]
        answers += [self.join(instance_id=one, **how) for one in instance_ids]
        self.pass_ms(2 * DELAY_MS if len(answers) > 1 else DELAY_MS)
        assert all(answer.got.error_code == 0 for answer in answers)
        return [answer.got.member_id for answer in answers]

    def stable(self, count: int = 1, *instance_ids: str, **how: Any) -> list[str]:
        """Return members of a stable group, each of which is assigned its own id as bytes."""
        members = self.joined(count, *instance_ids, **how)
        generation_id = self.group.generation_id
        leader = self.group.leader_id
        assert leader is not None
        given = {one: one.encode() for one in members}
        for one in [*(other for other in members if other != leader), leader]:
            self.sync(one, generation_id, given if one == leader else None)
        assert self.state == "Stable"
        return members
