"""A group coordinator on a virtual clock, with a log in memory and one call per request of a member."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.config.group_limits import GroupLimits
from kafkacore.broker.group.classic_group import ClassicGroup
from kafkacore.broker.group.consumer._heartbeat import ConsumerHeartbeat, SteadyAnswer
from kafkacore.broker.group.consumer.consumer_group import ConsumerGroup
from kafkacore.broker.group.consumer.heartbeats import HeartbeatResult
from kafkacore.broker.group.group_coordinator import GroupCoordinator, Leaving, Syncing
from kafkacore.broker.group.joining import Joining
from kafkacore.broker.group.member import JoinResult, MemberProtocol, SyncResult
from kafkacore.broker.group.records import decode_consumer_value, decode_group_metadata, decode_key
from kafkacore.broker.log.topics_file import TopicState
from kafkacore.broker.metadata.feature_levels import FeatureLevels
from kafkacore.broker.purgatory.timer import Timer
from kafkacore.coordinator.group_partition import partition_for
from kafkacore.coordinator.protocol import Subscription, encode_subscription
from kafkacore.errors import BrokerResponseError, CoordinatorLoadInProgressError, NotCoordinatorError
from kafkacore.protocol.generated.group_records import GroupMetadataKey, OffsetCommitKey
from kafkacore.testing import VirtualClock

ResultT = TypeVar("ResultT")


class Heartbeat(NamedTuple):
    """Answer to a ConsumerGroupHeartbeat."""

    error_code: int
    result: HeartbeatResult
    message: str = ""

    @property
    def epoch(self) -> int:
        return self.result.member_epoch

    @property
    def partitions(self) -> dict[UUID, list[int]] | None:
        """Assigned partitions by topic id; ``None`` if the answer has none."""
        assigned = self.result.assignment
        return None if assigned is None else {topic: sorted(ones) for topic, ones in assigned.items()}


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

    def is_safe_now(self, group_id: str, node_id: int) -> bool:
        is_leader = self.leaders.get(partition_for(group_id), NODE) == node_id
        return self.refusal is None and is_leader and not self.is_holding

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
            elif decoded is not None and not isinstance(decoded, OffsetCommitKey):
                content = None if value is None else decode_consumer_value(decoded, value)
                self.groups.apply_consumer_record(decoded.group_id, decoded, content)

    def last_value(self) -> Any:
        """Return the value of the last record, or ``None`` for a tombstone."""
        value = self.records[-1][1]
        return None if value is None else decode_group_metadata(value)

    def generations(self) -> list[tuple[int, list[str]]]:
        """Return the generation and the member ids of each record of a group."""
        values = [decode_group_metadata(value) for _, value in self.records if value is not None]
        return [(value.generation, [one.member_id for one in value.members]) for value in values]


class MemoryTopics:
    """Topics by name, as the coordinator looks them up."""

    def __init__(self) -> None:
        self.version = 0
        self._topics: dict[str, TopicState] = {}

    def put(self, name: str, partition_count: int, topic_id: int | None = None) -> UUID:
        """Create a topic or change its number of partitions, and return its id."""
        known = self._topics.get(name)
        number = len(self._topics) + 1 if topic_id is None else topic_id
        new_id = UUID(int=number) if known is None or topic_id is not None else known.topic_id
        self._topics[name] = TopicState(name, new_id, partition_count, {})
        self.version += 1
        return new_id

    def delete(self, name: str) -> None:
        del self._topics[name]
        self.version += 1

    def names(self) -> list[str]:
        return sorted(self._topics)

    def get(self, name: str) -> TopicState | None:
        return self._topics.get(name)

    def name_of(self, topic_id: UUID) -> str | None:
        return next((name for name, topic in self._topics.items() if topic.topic_id == topic_id), None)


class GroupHarness:
    """One coordinator and a default group for all calls."""

    def __init__(
        self, clock: VirtualClock | None = None, topics: MemoryTopics | None = None, **config: Any
    ) -> None:
        self.clock = clock or VirtualClock()
        self.topics = topics or MemoryTopics()
        self.timer = Timer(self.clock.monotonic_ms())
        self.log = MemoryCoordinatorLog()
        self.config = BrokerConfig.from_properties(
            {"data_dir": "/nowhere", "group_initial_rebalance_delay_ms": DELAY_MS, **config}
        )
        #: Tombstones of the group's offsets.
        self.offset_tombstones: list[tuple[bytes, None]] = []
        self.limits = GroupLimits(self.config)
        self.features = FeatureLevels()
        metadata: Any = SimpleNamespace(features=self.features, group_limits=self.limits)
        topic_catalog: Any = self.topics
        self.coordinator = GroupCoordinator(
            self.log,
            self.config,
            self.clock,
            self.timer,
            topic_catalog,
            metadata,
            lambda _: self.offset_tombstones,
        )
        self.registry = self.log.groups = self.coordinator.registry

    def restarted(self, **config: Any) -> GroupHarness:
        """Return a new coordinator loaded from this one's log after compaction."""
        other = GroupHarness(self.clock, self.topics, **config)
        other.log.records = list(dict(self.log.records).items())
        other.log.apply(other.log.records)
        other.registry.load([group.group_id for group in other.registry])
        return other

    @property
    def group(self) -> ClassicGroup:
        found = self.registry.classic_group(GROUP)
        assert found is not None, "the group does not exist"
        return found

    @property
    def consumer_group(self) -> ConsumerGroup:
        found = self.registry.consumer_group(GROUP)
        assert found is not None, "the group does not exist"
        return found

    @property
    def state(self) -> str:
        return self.group.state.value

    def steady_answer(self, heartbeat: ConsumerHeartbeat, node_id: int) -> SteadyAnswer | None:
        return self.coordinator.steady_answer(heartbeat, node_id, self.clock.monotonic_ms())

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

    def consumer_heartbeat(
        self,
        member_id: str,
        member_epoch: int,
        *,
        topics: Sequence[str] | None = None,
        regex: str | None = None,
        owned: Mapping[UUID, Collection[int]] | None = None,
        instance_id: str | None = None,
        rack_id: str | None = None,
        assignor: str | None = None,
        rebalance_ms: int = -1,
        client_id: str = "client",
        version: int = 1,
        group_id: str = GROUP,
        may_describe: Callable[[str], bool] = lambda _: True,
        node_id: int = NODE,
    ) -> Answer[Heartbeat]:
        """Send a ConsumerGroupHeartbeat. The error of a refused one is in the answer."""
        answer: Answer[Heartbeat] = Answer()
        heartbeat = ConsumerHeartbeat(
            group_id=group_id,
            member_id=member_id,
            member_epoch=member_epoch,
            instance_id=instance_id,
            rack_id=rack_id,
            rebalance_timeout_ms=rebalance_ms,
            subscribed_topic_names=topics,
            subscribed_topic_regex=regex,
            server_assignor=assignor,
            topic_partitions=None if owned is None else list(owned.items()),
            client_id=client_id,
            client_host="/127.0.0.1",
            version=version,
        )
        # The general code also handles a heartbeat that has a steady answer: both give the same result.
        steady = self.steady_answer(heartbeat, node_id)
        try:
            self.coordinator.consumer_heartbeat(
                heartbeat,
                node_id,
                may_describe,
                lambda code, result: answer.give(Heartbeat(code, result)),
            )
        except BrokerResponseError as error:
            answer.give(Heartbeat(error.errno, HeartbeatResult(member_id, member_epoch), str(error)))
        if steady is not None:
            expected = HeartbeatResult(steady.member_id, steady.member_epoch, steady.heartbeat_interval_ms)
            assert answer.got == Heartbeat(0, expected), "the steady answer"
        return answer

    def consumer_join(self, member_id: str, topics: Sequence[str] = ("t",), **how: Any) -> Heartbeat:
        """Let a member join by the consumer protocol, and return the answer."""
        how = {"rebalance_ms": REBALANCE_MS, "owned": {}, "topics": topics, **how}
        return self.consumer_heartbeat(member_id, 0, **how).got

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
