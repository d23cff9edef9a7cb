"""A group changes its type when members of the other protocol join, and back when they leave."""

from __future__ import annotations

import random
from uuid import UUID

import pytest
from model.group_harness import GROUP, REBALANCE_MS, SESSION_MS, Answer, GroupHarness

from kafkacore.broker.group.consumer.consumer_group import ConsumerGroup, ConsumerGroupState
from kafkacore.broker.group.consumer.consumer_member import MemberState
from kafkacore.broker.group.member import JoinResult, MemberProtocol, SyncResult
from kafkacore.coordinator.protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kafkacore.errors import (
    CoordinatorNotAvailableError,
    FencedInstanceIdError,
    GroupIdNotFoundError,
    GroupMaxSizeReachedError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    MemberIdRequiredError,
    NotCoordinatorError,
    RebalanceInProgressError,
    UnknownError,
    UnknownMemberIdError,
)
from kafkacore.structs import TopicPartition

INTERVAL_MS = 1_000
T = UUID(int=1)
NOT_AVAILABLE = CoordinatorNotAvailableError.errno

SUBSCRIPTION = encode_subscription(Subscription(["t"]))


def protocols(*owned: int, topic: str = "t") -> tuple[MemberProtocol, ...]:
    subscription = Subscription([topic], owned_partitions=[TopicPartition(topic, one) for one in owned])
    return (MemberProtocol("range", encode_subscription(subscription)),)


def given(*partitions: int, user_data: bytes | None = None) -> bytes:
    return encode_assignment(Assignment([TopicPartition("t", one) for one in partitions], user_data))


def partitions_in(assignment: bytes) -> list[int]:
    return [partition for _, partition in decode_assignment(assignment).partitions]


@pytest.fixture
def harness() -> GroupHarness:
    return made()


def made(**config: object) -> GroupHarness:
    harness = GroupHarness(**config)
    harness.topics.put("t", 4)
    return harness


def classic_group(harness: GroupHarness, **shares: bytes) -> list[str]:
    """Create a stable classic group whose members have these assignments, and return their ids."""
    members = harness.joined(len(shares), protocols=protocols())
    assignments = dict(zip(members, shares.values(), strict=True))
    leader = harness.group.leader_id
    for one in [*(other for other in members if other != leader), leader]:
        assert one is not None
        harness.sync(one, harness.group.generation_id, assignments if one == leader else None)
    assert harness.state == "Stable"
    return members


def test_first_member_of_the_new_protocol_upgrades_the_group(harness: GroupHarness) -> None:
    (old,) = classic_group(harness, a=given(0, 1, 2, 3))
    generation = harness.group.generation_id
    joined = harness.consumer_join("new")
    assert (joined.error_code, joined.partitions) == (0, {})
    group = harness.consumer_group
    assert (group.classic_count, len(group)) == (1, 2)
    assert group.member(old).assigned == {T: dict.fromkeys(range(4), generation)}
    assert harness.heartbeat(old, generation) == RebalanceInProgressError.errno
    # The member keeps its partitions until it has reported what it owns.
    again = harness.join(old, protocols=protocols(0, 1, 2, 3)).got
    assert (again.error_code, again.generation_id, again.protocol_name) == (0, generation, "range")
    assert (again.leader, list(again.members)) == ("", [])
    kept = partitions_in(harness.sync(old, generation).got.assignment)
    assert kept == [0, 1]
    assert harness.consumer_heartbeat("new", joined.epoch).got.partitions is None
    # It rejoins a second time, without the partitions that it has revoked.
    assert harness.heartbeat(old, generation) == RebalanceInProgressError.errno
    done = harness.join(old, protocols=protocols(*kept)).got
    assert done.generation_id == joined.epoch
    assert partitions_in(harness.sync(old, done.generation_id).got.assignment) == kept
    assert harness.consumer_heartbeat("new", joined.epoch).got.partitions == {T: [2, 3]}
    assert harness.heartbeat(old, done.generation_id) == 0
    assert group.state is ConsumerGroupState.STABLE


def test_members_that_wait_for_the_classic_group_must_rejoin(harness: GroupHarness) -> None:
    classic_group(harness, a=given(0, 1, 2, 3))
    waiting = harness.join("", protocols=protocols())
    assert waiting.result is None
    harness.consumer_join("new")
    assert waiting.got.error_code == RebalanceInProgressError.errno


@pytest.mark.parametrize(
    ("config", "assignment", "reason"),
    [
        ({"group_consumer_migration_policy": "downgrade"}, given(0), "online upgrade is disabled"),
        ({"group_consumer_migration_policy": "disabled"}, given(0), "online upgrade is disabled"),
        ({"group_consumer_max_size": 1}, given(0), "the group size exceeds the consumer group maximum size"),
        ({}, given(0, user_data=b"x"), "an unsupported custom assignor is in use"),
        ({}, b"\x00", "the embedded consumer protocol is malformed"),
    ],
)
def test_group_that_cannot_be_upgraded_stays_as_it_is(
    config: dict[str, object], assignment: bytes, reason: str
) -> None:
    harness = made(**config)
    members = classic_group(harness, a=assignment, b=given())
    refused = harness.consumer_join("new")
    assert refused.error_code == GroupIdNotFoundError.errno
    assert reason in refused.message
    assert harness.heartbeat(members[0], harness.group.generation_id) == 0


def test_group_with_two_owners_of_a_partition_cannot_be_upgraded(harness: GroupHarness) -> None:
    members = classic_group(harness, a=given(0, 1), b=given(1, 2, 3))
    refused = harness.consumer_join("new")
    assert refused.error_code == UnknownError.errno
    assert "two members own the same partition" in refused.message
    assert harness.heartbeat(members[0], harness.group.generation_id) == 0


def test_group_of_another_protocol_type_cannot_be_upgraded(harness: GroupHarness) -> None:
    harness.joined(1, protocol_type="connect")
    refused = harness.consumer_join("new")
    assert "the group does not use the consumer embedded protocol" in refused.message


@pytest.mark.kafka("ClassicGroupTest.testFromConsumerGroupWithoutJoiningMember")
def test_group_is_downgraded_when_its_last_member_of_the_new_protocol_leaves(harness: GroupHarness) -> None:
    (old,) = classic_group(harness, a=given(0, 1, 2, 3))
    joined = harness.consumer_join("new")
    epoch = harness.consumer_group.epoch
    assert harness.consumer_heartbeat("new", -1).got.error_code == 0
    assert joined.epoch <= epoch
    assert harness.registry.consumer_group(GROUP) is None
    assert harness.state == "PreparingRebalance"
    assert harness.group.generation_id == epoch
    assert harness.heartbeat(old, epoch) == RebalanceInProgressError.errno
    after = harness.restarted()
    assert after.state == "Stable"
    assert next(iter(after.group)).member_id == old
    harness.join(old, protocols=protocols())
    assert harness.state == "CompletingRebalance"


def test_group_is_downgraded_when_its_last_member_of_the_new_protocol_fails(harness: GroupHarness) -> None:
    (old,) = classic_group(harness, a=given(0, 1, 2, 3))
    harness.consumer_join("new")
    for _ in range(10):
        harness.pass_ms(4_600)
        if harness.registry.consumer_group(GROUP) is None:
            break
        harness.join(old, protocols=protocols())
    assert harness.registry.consumer_group(GROUP) is None


def test_policy_can_forbid_the_downgrade() -> None:
    harness = made(group_consumer_migration_policy="upgrade")
    (old,) = classic_group(harness, a=given(0, 1, 2, 3))
    harness.consumer_join("new")
    harness.consumer_heartbeat("new", -1)
    assert [member.member_id for member in harness.consumer_group] == [old]


@pytest.mark.kafka("ClassicGroupTest.testFromConsumerGroupWithJoiningMember")
def test_static_member_changes_its_protocol_and_keeps_its_partitions(harness: GroupHarness) -> None:
    joined = harness.consumer_join("a", instance_id="i")
    assert joined.partitions == {T: [0, 1, 2, 3]}
    harness.consumer_heartbeat("a", -2, instance_id="i")
    back = harness.join("", instance_id="i", protocols=protocols(0, 1, 2, 3)).got
    assert back.error_code == 0
    assert harness.state == "Stable"
    assert harness.group.generation_id == back.generation_id == joined.epoch
    assert partitions_in(harness.sync(back.member_id, back.generation_id).got.assignment) == [0, 1, 2, 3]
    # And back: the classic group is upgraded again.
    again = harness.consumer_join("b", instance_id="i")
    assert (again.error_code, again.partitions) == (0, {T: [0, 1, 2, 3]})
    assert harness.heartbeat(back.member_id, back.generation_id, "i") == FencedInstanceIdError.errno


def test_classic_member_joins_a_consumer_group(harness: GroupHarness) -> None:
    harness.consumer_join("new")
    asked = harness.join("", version=4, protocols=protocols()).got
    assert asked.error_code == MemberIdRequiredError.errno
    harness.pass_ms(INTERVAL_MS)
    joined = harness.join(asked.member_id, version=4, protocols=protocols()).got
    assert (joined.error_code, joined.member_id) == (0, asked.member_id)
    assert harness.consumer_group.member(joined.member_id).state is MemberState.UNRELEASED_PARTITIONS
    synced = harness.sync(joined.member_id, joined.generation_id, protocol_type="consumer").got
    assert (synced.error_code, partitions_in(synced.assignment)) == (0, [])
    # The other member has nothing released yet, so there is no reason to rejoin.
    assert harness.heartbeat(joined.member_id, joined.generation_id) == 0
    harness.consumer_heartbeat("new", 2, owned={T: [0, 1, 2, 3]})
    harness.consumer_heartbeat("new", 2, owned={T: [0, 1]})
    assert harness.heartbeat(joined.member_id, joined.generation_id) == RebalanceInProgressError.errno
    again = harness.join(joined.member_id, version=4, protocols=protocols()).got
    assert partitions_in(harness.sync(again.member_id, again.generation_id).got.assignment) == [2, 3]


@pytest.mark.parametrize(
    ("config", "how", "error"),
    [
        ({"group_consumer_migration_policy": "disabled"}, {}, InconsistentGroupProtocolError),
        ({"group_consumer_max_size": 1}, {}, GroupMaxSizeReachedError),
        ({}, {"protocol_type": "connect"}, InconsistentGroupProtocolError),
        ({}, {"protocols": (MemberProtocol("range", b"\x00"),)}, UnknownError),
        ({}, {"member_id": "x", "instance_id": "i"}, UnknownMemberIdError),
    ],
)
def test_classic_member_that_does_not_fit_is_refused(
    config: dict[str, object], how: dict[str, object], error: type
) -> None:
    harness = made(**config)
    harness.consumer_join("new")
    before = list(harness.log.records)
    answer = harness.join(**{"protocols": protocols(), **how})  # type: ignore[arg-type]
    assert (answer.got.error_code, answer.got.member_id) == (error.errno, "")
    assert harness.log.records == before


def test_requests_of_classic_members_need_their_generation_and_their_protocol(harness: GroupHarness) -> None:
    harness.consumer_join("new")
    old = harness.join("", protocols=protocols()).got
    member_id, generation = old.member_id, old.generation_id
    assert harness.heartbeat(member_id, generation + 1) == IllegalGenerationError.errno
    assert harness.heartbeat("other", generation) == UnknownMemberIdError.errno
    assert harness.heartbeat("new", 2) == UnknownMemberIdError.errno
    for how in ({"protocol_type": "connect"}, {"protocol_name": "sticky"}):
        answer = harness.sync(member_id, generation, **how)  # type: ignore[arg-type]
        assert answer.got.error_code == InconsistentGroupProtocolError.errno
    assert harness.leave(("other", None), (member_id, None)) == [UnknownMemberIdError.errno, 0]
    assert member_id not in harness.consumer_group


def test_classic_member_is_removed_by_each_of_its_deadlines(harness: GroupHarness) -> None:
    harness.consumer_join("new")

    def passes(duration_ms: int, member_id: str | None = None, generation: int = 0) -> None:
        """Let time pass while the members send heartbeats."""
        for _ in range(duration_ms // 1_000):
            harness.pass_ms(1_000)
            epoch = harness.consumer_group.member("new").member_epoch
            owned = {T: sorted(harness.consumer_group.member("new").assigned.get(T, ()))}
            harness.consumer_heartbeat("new", epoch, owned=owned)
            if member_id is not None:
                harness.heartbeat(member_id, generation)

    silent = harness.join("", protocols=protocols()).got.member_id
    passes(SESSION_MS)
    assert silent not in harness.consumer_group
    unsynced = harness.join("", protocols=protocols(), rebalance_ms=20_000).got
    passes(20_000, unsynced.member_id, unsynced.generation_id)
    assert unsynced.member_id not in harness.consumer_group
    late = harness.join("", protocols=protocols(), rebalance_ms=20_000).got
    harness.sync(late.member_id, late.generation_id)
    passes(30_000, late.member_id, late.generation_id)
    assert late.member_id not in harness.consumer_group


def test_static_classic_member_may_have_an_empty_instance_id(harness: GroupHarness) -> None:
    harness.consumer_join("new")
    first = harness.join("", instance_id="", protocols=protocols()).got
    again = harness.join(first.member_id, instance_id="", protocols=protocols()).got
    assert (first.error_code, again.error_code, again.member_id) == (0, 0, first.member_id)


def test_dynamic_member_that_changes_its_protocol_does_not_change_the_type(harness: GroupHarness) -> None:
    harness.consumer_join("x")
    joined = harness.join("x", protocols=protocols()).got
    assert joined.error_code == 0
    assert harness.consumer_group.member("x").uses_classic_protocol


def test_removal_that_cannot_be_written_is_tried_again(harness: GroupHarness) -> None:
    classic_group(harness, a=given(0, 1, 2, 3))
    harness.consumer_join("new")
    harness.log.failures.extend([15, 15])
    harness.pass_ms(SESSION_MS - 1)
    assert len(harness.consumer_group) == 2
    harness.pass_ms(2)
    assert len(harness.consumer_group) == 2
    harness.pass_ms(2_000)
    assert [member.member_id for member in harness.consumer_group] == ["new"]


def test_downgrade_that_cannot_be_written_is_tried_again() -> None:
    harness = made(group_max_session_timeout_ms=600_000)
    (old,) = harness.joined(1, protocols=protocols(), session_ms=600_000)
    harness.sync(old, harness.group.generation_id, {old: given(0, 1, 2, 3)})
    harness.consumer_join("new")
    harness.log.failures.append(15)
    harness.pass_ms(45_001)
    assert len(harness.consumer_group) == 2
    harness.pass_ms(1_000)
    assert [member.member_id for member in harness.group] == [old]


def test_protocol_that_a_classic_member_names_twice_counts_once(harness: GroupHarness) -> None:
    harness.consumer_join("new")

    def join(*names: str) -> int:
        supported = tuple(MemberProtocol(one, SUBSCRIPTION) for one in names)
        return harness.join("", protocols=supported).got.error_code

    assert [join("range", "range", "sticky"), join("sticky")] == [0, 0]
    assert join("range") == InconsistentGroupProtocolError.errno
    harness.consumer_heartbeat("new", -1)
    assert harness.group.protocol_name == "sticky"


def test_removal_that_fails_with_an_exception_is_tried_again(
    harness: GroupHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.consumer_join("new")
    with monkeypatch.context() as patched:
        patched.setattr(harness.log, "append", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            harness.pass_ms(45_001)
    assert "new" in harness.consumer_group
    harness.pass_ms(1_000)
    assert harness.consumer_group.is_empty


def test_static_member_whose_replacement_cannot_be_written_keeps_its_session(harness: GroupHarness) -> None:
    harness.consumer_join("new")
    first = harness.join("", instance_id="i", protocols=protocols(), session_ms=SESSION_MS).got
    harness.sync(first.member_id, first.generation_id, instance_id="i")
    harness.log.failures.append(15)
    assert harness.join("", instance_id="i", protocols=protocols()).got.error_code == 15
    harness.pass_ms(SESSION_MS)
    assert first.member_id not in harness.consumer_group


def test_failed_append_of_an_upgrade_leaves_the_classic_group(harness: GroupHarness) -> None:
    (old,) = classic_group(harness, a=given(0, 1, 2, 3))
    harness.log.failures.append(15)
    assert harness.consumer_join("new").error_code == 15
    assert harness.heartbeat(old, harness.group.generation_id) == 0
    assert harness.consumer_join("new").error_code == 0


def test_empty_group_stays_if_it_cannot_be_deleted_for_a_classic_member(harness: GroupHarness) -> None:
    harness.consumer_join("new")
    harness.consumer_heartbeat("new", -1)
    harness.log.failures.append(15)
    assert harness.join("", protocols=protocols()).got.error_code == 15
    assert harness.consumer_group.is_empty
    assert harness.join("unknown", protocols=protocols()).got.error_code == UnknownMemberIdError.errno
    assert harness.consumer_group.is_empty
    harness.log.failures.append(NotCoordinatorError.errno)
    assert harness.join("", protocols=protocols()).got.error_code == NotCoordinatorError.errno
    assert harness.registry.get(GROUP) is None


def test_empty_groups_change_their_type_with_any_policy() -> None:
    harness = made(group_consumer_migration_policy="disabled")
    harness.consumer_join("new")
    harness.consumer_heartbeat("new", -1)
    (old,) = classic_group(harness, a=given(0, 1, 2, 3))
    harness.leave((old, None))
    assert harness.consumer_join("new").partitions == {T: [0, 1, 2, 3]}


def test_downgraded_members_keep_what_they_own(harness: GroupHarness) -> None:
    (old,) = classic_group(harness, a=given(0, 1, 2, 3))
    harness.consumer_join("new")
    harness.consumer_heartbeat("new", -1)
    assert harness.state == "PreparingRebalance"
    # The classic member does not know yet that it must revoke partitions.
    again = harness.consumer_join("again")
    assert again.partitions == {}
    assert harness.consumer_group.member(old).owned == {T: [0, 1, 2, 3]}


def test_static_member_that_downgrades_the_group_gets_only_what_is_free(harness: GroupHarness) -> None:
    classic_group(harness, a=given(0, 1, 2, 3))
    harness.consumer_join("new", instance_id="i")
    harness.consumer_heartbeat("new", -2, instance_id="i")
    back = harness.join("", instance_id="i", protocols=protocols()).got
    assert harness.state == "PreparingRebalance"
    synced = harness.sync(back.member_id, back.generation_id, instance_id="i").got
    assert synced.error_code == RebalanceInProgressError.errno


def test_upgrade_during_a_rebalance_leaves_no_partition_without_an_owner(harness: GroupHarness) -> None:
    members = harness.joined(1, "i", protocols=protocols())
    generation, leader = harness.group.generation_id, harness.group.leader_id
    for one in sorted(members, key=lambda one: one == leader):
        harness.sync(one, generation, dict(zip(members, [given(0, 1), given(2, 3)], strict=True)))
    harness.leave((members[0], None))
    upgraded = harness.consumer_join("new", instance_id="i")
    assert upgraded.partitions == {T: [0, 1, 2, 3]}


def test_upgrade_before_the_first_generation_has_an_epoch(harness: GroupHarness) -> None:
    harness.topics.delete("t")
    old = harness.join("", protocols=protocols())
    joined = harness.consumer_join("new", topics=[])
    assert (joined.error_code, joined.epoch) == (0, 1)
    assert old.got.error_code == RebalanceInProgressError.errno
    assert harness.join(old.got.member_id, protocols=protocols()).got.generation_id == 1


def test_classic_members_of_a_consumer_group_share_what_another_one_had() -> None:
    harness = made(group_consumer_migration_policy="upgrade")
    (old,) = classic_group(harness, a=given(0, 1, 2, 3))
    harness.consumer_join("new")
    member = harness.join(old, protocols=protocols()).got
    harness.sync(old, member.generation_id)
    harness.consumer_heartbeat("new", 2)
    harness.consumer_heartbeat("new", -1)
    # The next assignment is not computed before its interval has passed.
    assert harness.heartbeat(old, member.generation_id) == 0
    harness.pass_ms(INTERVAL_MS)
    assert harness.heartbeat(old, member.generation_id) == RebalanceInProgressError.errno
    again = harness.join(old, protocols=protocols()).got
    assert partitions_in(harness.sync(old, again.generation_id).got.assignment) == [0, 1, 2, 3]
    assert harness.heartbeat(old, again.generation_id) == 0


def test_classic_members_of_a_consumer_group_get_new_partitions() -> None:
    harness = made(group_consumer_migration_policy="upgrade")
    harness.consumer_join("new")
    harness.pass_ms(INTERVAL_MS)
    old = harness.join("", protocols=protocols()).got
    harness.sync(old.member_id, old.generation_id)
    harness.consumer_heartbeat("new", -1)
    harness.pass_ms(INTERVAL_MS)
    old = harness.join(old.member_id, protocols=protocols()).got
    assert partitions_in(harness.sync(old.member_id, old.generation_id).got.assignment) == [0, 1, 2, 3]
    harness.topics.put("other", 1)
    assert harness.heartbeat(old.member_id, old.generation_id) == 0
    harness.topics.put("t", 5)
    harness.pass_ms(INTERVAL_MS)
    assert harness.heartbeat(old.member_id, old.generation_id) == RebalanceInProgressError.errno
    old = harness.join(old.member_id, protocols=protocols(0, 1, 2, 3)).got
    assert partitions_in(harness.sync(old.member_id, old.generation_id).got.assignment) == [0, 1, 2, 3, 4]
    assert harness.heartbeat(old.member_id, old.generation_id) == 0


@pytest.mark.parametrize("seed", range(60))
def test_members_of_both_protocols_share_the_partitions_at_any_time(seed: int) -> None:
    chance = random.Random(seed)
    config = {
        "group_consumer_assignment_interval_ms": chance.choice([0, 0, 1_000]),
        # Consumer groups with more members cannot become classic groups.
        "group_max_size": chance.choice([2, 10]),
    }
    crowd = Crowd(made(**config), chance, is_cooperative=chance.random() < 0.5)
    for _ in range(80):
        if chance.random() < 0.03:
            crowd.restart(**config)
        if chance.random() < 0.1:
            crowd.harness.log.failures.append(NOT_AVAILABLE)
        crowd.step()
        crowd.check()
    crowd.harness.log.failures.clear()
    # Until the sessions of clients have ended that the restarts have made forget their ids.
    for _ in range(120):
        crowd.everyone_goes_on()
    owned = sorted(one for member in crowd.members.values() for one in member.owned)
    assert owned == (list(range(4)) if crowd.members else [])
    crowd.everyone_leaves()
    assert len(crowd.harness.timer) == 0


class Client:
    """One client, and the partitions that it believes to own."""

    def __init__(self, is_new: bool, instance_id: str | None) -> None:
        self.is_new = is_new
        self.instance_id = instance_id
        self.member_id = ""
        self.epoch = 0
        self.owned: list[int] = []
        self.must_rejoin = False
        self.joining: Answer[JoinResult] | None = None
        self.syncing: Answer[SyncResult] | None = None

    def is_fenced(self) -> None:
        """Handle an error after which the client joins as a new member."""
        self.member_id, self.epoch, self.owned = "", 0, []


class Crowd:
    """Clients of both protocols that follow the coordinator's answers.

    The classic clients are all eager or all cooperative. Some clients are static members. When such a client
    restarts, it may use the other protocol.
    """

    def __init__(self, harness: GroupHarness, chance: random.Random, *, is_cooperative: bool) -> None:
        self.harness = harness
        self.members: dict[int, Client] = {}
        self._chance = chance
        self._is_cooperative = is_cooperative
        self._next = 0
        #: Last epoch of the group and of its members.
        self._epoch = 0
        self._epochs: dict[str, int] = {}

    def step(self) -> None:
        kind = self._chance.choice(["join", "continue", "continue", "continue", "leave", "restart", "time"])
        if kind == "time":
            self.harness.pass_ms(500)
        elif kind == "join" and len(self.members) < 4:
            self._next += 1
            instance_id = f"i{self._next}" if self._chance.random() < 0.3 else None
            self.members[self._next] = Client(self._chance.random() < 0.5, instance_id)
        elif self.members:
            number = self._chance.choice(list(self.members))
            client = self.members[number]
            # A client that leaves without an id stays as a member until its session ends.
            if kind == "leave" and len(self.members) > 1 and client.joining is None:
                self._leave(self.members.pop(number))
            elif kind == "restart" and client.instance_id is not None:
                self._restart_static(number, client)
            else:
                self._go_on(number)

    def restart(self, **config: object) -> None:
        """Restart the broker. The clients do not get the answers for which they wait."""
        for client in self.members.values():
            client.must_rejoin |= client.joining is not None or client.syncing is not None
            client.joining = client.syncing = None
        before = self._stored()
        if before is None:
            # A generation of a classic group is stored when it gets its assignment.
            self._epoch = 0
        self.harness = self.harness.restarted(**config)
        assert self._stored() == before

    def everyone_goes_on(self) -> None:
        self.harness.pass_ms(500)
        self.check()
        for number in list(self.members):
            self._go_on(number)
            self.check()

    def everyone_leaves(self) -> None:
        for client in self.members.values():
            self._leave(client)
        # Until the sessions of members have ended whose clients do not know their ids.
        self.harness.pass_ms(600_000)

    def check(self) -> None:
        """Check that no two clients own a partition, and that no epoch goes back."""
        owned = [one for member in self.members.values() for one in member.owned]
        assert len(set(owned)) == len(owned), owned
        group = self.harness.registry.get(GROUP)
        if group is None or group.is_empty:
            self._epoch, self._epochs = 0, {}
        elif isinstance(group, ConsumerGroup):
            assert group.epoch >= max(self._epoch, group.assignment_epoch)
            self._epoch = group.epoch
            epochs = {member.member_id: member.member_epoch for member in group if member.member_epoch > 0}
            assert all(epoch >= self._epochs.get(member_id, 0) for member_id, epoch in epochs.items())
            self._epochs = epochs
            given = sorted(one for member in group for one in member.owned.get(T, ()))
            assert given == [one for one in range(4) if group.is_owned(T, one)]
        else:
            assert group.generation_id >= self._epoch
            self._epoch = group.generation_id

    def _stored(self) -> object:
        """Return the state of a consumer group that a restart must not change."""
        group = self.harness.registry.consumer_group(GROUP)
        if group is None:
            return None
        members = {member.member_id: member for member in group}
        return group.epoch, group.metadata_hash, group.assignment_epoch, group.target, members, group.state

    def _restart_static(self, number: int, client: Client) -> None:
        if client.is_new and client.epoch:
            epoch, instance_id = -2, client.instance_id
            self.harness.consumer_heartbeat(client.member_id, epoch, instance_id=instance_id)
        self._next += 1
        self.members[self._next] = Client(self._chance.random() < 0.5, client.instance_id)
        del self.members[number]

    def _leave(self, client: Client) -> None:
        if not client.member_id:
            return
        if client.is_new:
            self.harness.consumer_heartbeat(client.member_id, -1, instance_id=client.instance_id)
        else:
            self.harness.leave((client.member_id, client.instance_id))

    def _go_on(self, number: int) -> None:
        client = self.members[number]
        (self._go_on_new if client.is_new else self._go_on_classic)(client, number)

    def _go_on_new(self, client: Client, number: int) -> None:
        instance_id = client.instance_id
        if not client.member_id:
            client.member_id = f"new-{number}"
        if client.epoch == 0:
            client.owned = []
            answer = self.harness.consumer_join(client.member_id, instance_id=instance_id)
        else:
            owned = {T: client.owned} if client.owned else {}
            answer = self.harness.consumer_heartbeat(
                client.member_id, client.epoch, owned=owned, instance_id=instance_id
            ).got
        if answer.error_code:
            if answer.error_code != NOT_AVAILABLE:
                client.epoch, client.owned = 0, []
            return
        assert answer.epoch >= client.epoch
        client.epoch = answer.epoch
        if answer.partitions is not None:
            client.owned = answer.partitions.get(T, [])

    def _go_on_classic(self, client: Client, number: int) -> None:
        is_stable = client.joining is None and client.syncing is None and not client.must_rejoin
        if client.member_id and client.epoch and is_stable:
            code = self.harness.heartbeat(client.member_id, client.epoch, client.instance_id)
            client.must_rejoin = code == RebalanceInProgressError.errno
            if code and not client.must_rejoin:
                client.is_fenced()
            return
        if client.syncing is not None:
            self._take_sync(client)
        elif client.joining is not None:
            self._take_join(client)
        else:
            # Eager clients give up everything before they join.
            client.owned = client.owned if self._is_cooperative else []
            supported = protocols(*client.owned)
            client.joining = self.harness.join(
                client.member_id, instance_id=client.instance_id, protocols=supported, rebalance_ms=SESSION_MS
            )
            self._take_join(client)

    def _take_join(self, client: Client) -> None:
        """Take the answer to a JoinGroup, if it has come, and send a SyncGroup."""
        assert client.joining is not None
        result = client.joining.result
        if result is None:
            return
        client.joining = None
        if result.error_code:
            if result.error_code not in (RebalanceInProgressError.errno, NOT_AVAILABLE):
                client.is_fenced()
            return
        client.member_id, client.epoch, client.must_rejoin = result.member_id, result.generation_id, False
        client.syncing = self.harness.sync(
            client.member_id, client.epoch, self._shares(result), instance_id=client.instance_id
        )
        self._take_sync(client)

    @staticmethod
    def _shares(result: JoinResult) -> dict[str, bytes]:
        """Return the assignments of a leader. No member gets a partition that another one owns."""
        owners = {
            partition: member.member_id
            for member in result.members
            for _, partition in decode_subscription(member.metadata).owned_partitions
        }
        shares = {}
        for place, member in enumerate(result.members):
            share = range(4)[place :: len(result.members)]
            shares[member.member_id] = given(
                *(one for one in share if owners.get(one) in (None, member.member_id))
            )
        return shares

    @staticmethod
    def _take_sync(client: Client) -> None:
        assert client.syncing is not None
        result = client.syncing.result
        if result is None:
            return
        client.syncing = None
        client.must_rejoin = bool(result.error_code)
        if not result.error_code:
            before, client.owned = client.owned, partitions_in(result.assignment)
            # A cooperative client rejoins after it has revoked partitions.
            client.must_rejoin = not set(before) <= set(client.owned)
        elif result.error_code not in (RebalanceInProgressError.errno, NOT_AVAILABLE):
            client.owned = []


def test_rebalance_timeout_is_that_of_the_classic_member(harness: GroupHarness) -> None:
    harness.consumer_join("new")
    old = harness.join("", protocols=protocols()).got.member_id
    assert harness.consumer_group.member(old).rebalance_timeout_ms == REBALANCE_MS
