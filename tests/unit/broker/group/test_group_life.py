"""Groups: loading from records, groups of another node, listing and deletion."""

from __future__ import annotations

import pytest
from model.group_harness import DELAY_MS, GROUP, NODE, SESSION_MS, GroupHarness

from kafkacore.broker.group.delayed_responses import DelayedResponses
from kafkacore.broker.group.group_record import group_of
from kafkacore.broker.group.interfaces import OffsetExpiry
from kafkacore.errors import (
    CoordinatorLoadInProgressError,
    GroupIdNotFoundError,
    IllegalGenerationError,
    MalformedMessageError,
    NonEmptyGroupError,
    NotCoordinatorError,
    UnknownError,
    UnknownMemberIdError,
)
from kafkacore.protocol.generated.group_records import GroupMetadataValue


@pytest.fixture
def harness() -> GroupHarness:
    return GroupHarness()


# ---- Loading from records ----------------------------------------------------------------------------------


@pytest.mark.kafka(
    "GroupMetadataManagerTest.testReplayGroupMetadataRecords",
    "GroupMetadataManagerTest.testOnLoadedSchedulesClassicGroupMemberHeartbeats",
)
def test_group_comes_back_as_it_was_written_and_its_sessions_begin_anew(harness: GroupHarness) -> None:
    members = harness.stable(2, "static")
    harness.pass_ms(SESSION_MS - 1)
    after = harness.restarted()
    before, group = harness.group, after.group
    for name in ("generation_id", "leader_id", "protocol_type", "protocol_name", "subscribed_topics"):
        assert getattr(group, name) == getattr(before, name), name
    assert group.static_member_id("static") == members[2]
    after.pass_ms(SESSION_MS - 1)
    assert [after.heartbeat(one, 1) for one in members] == [0] * 3
    assert [after.sync(one, 1).got.assignment for one in members] == [one.encode() for one in members]
    assert [after.join(one).got.generation_id for one in members[1:]] == [1, 1]
    after.pass_ms(SESSION_MS)
    assert after.state == "Empty"


def test_member_that_joins_a_group_that_came_back_waits_for_the_others(harness: GroupHarness) -> None:
    (member,) = harness.stable()
    after = harness.restarted()
    new = after.join()
    assert (new.result, after.state) == (None, "PreparingRebalance")
    rejoined = after.join(member)
    assert {one.got.generation_id for one in (new, rejoined)} == {2}


def test_empty_group_comes_back_empty_with_the_time_since_when_it_is(harness: GroupHarness) -> None:
    (member,) = harness.stable()
    harness.leave((member, None))
    since_ms = harness.clock.wall_ms()
    harness.pass_ms(5_000)
    after = harness.restarted()
    assert (after.state, after.group.generation_id, after.group.protocol_type) == ("Empty", 2, "consumer")
    assert after.registry.offset_expiry(GROUP) == OffsetExpiry(since_ms)
    answer = after.join()
    after.pass_ms(DELAY_MS)
    assert answer.got.generation_id == 3


def test_generation_that_was_never_stable_is_not_what_comes_back(harness: GroupHarness) -> None:
    members = harness.stable(2)
    for one in members:
        harness.join(one)
    assert harness.group.generation_id == 2
    after = harness.restarted()
    assert (after.state, after.group.generation_id) == ("Stable", 1)
    assert after.heartbeat(members[0], 2) == IllegalGenerationError.errno


def test_group_that_only_has_offsets_is_simple(harness: GroupHarness) -> None:
    harness.registry.load(["offsets only"])
    harness.registry.ensure_simple("commits")
    harness.registry.ensure_simple("commits")
    for name in ("offsets only", "commits"):
        group = harness.registry.known_classic_group(name)
        assert (group.state.value, group.protocol_type) == ("Empty", None)
        assert harness.registry.offset_expiry(name) == OffsetExpiry(None)
        assert not harness.registry.is_subscribed(name, "t")


def test_record_of_a_version_without_rebalance_timeouts_takes_the_sessions() -> None:
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=5,
        protocol="range",
        leader="a",
        members=[GroupMetadataValue.MemberMetadata(member_id="a", session_timeout=7, rebalance_timeout=-1)],
    )
    group = group_of("g", value, lambda: 0)
    assert (group.rebalance_timeout_ms, group.generation_id, group.leader_id) == (7, 5, "a")
    assert group.offset_expiry() is None


def test_record_that_has_a_member_twice_is_refused() -> None:
    member = GroupMetadataValue.MemberMetadata
    for members in (
        [member(member_id="a"), member(member_id="a")],
        [member(member_id="a", group_instance_id="i"), member(member_id="b", group_instance_id="i")],
    ):
        value = GroupMetadataValue(protocol_type="consumer", generation=1, protocol="range", members=members)
        with pytest.raises(MalformedMessageError, match="g has a duplicate member"):
            group_of("g", value, lambda: 0)


# ---- Groups of other nodes ---------------------------------------------------------------------------------


@pytest.mark.kafka(
    "ClassicGroupTest.testCompleteAllJoinFutures",
    "GroupMetadataManagerTest.testClassicGroupOnUnloadedEmptyAndPreparingRebalance",
)
def test_who_waits_for_a_group_that_moves_is_sent_to_its_new_coordinator(harness: GroupHarness) -> None:
    leader, _ = harness.stable(2)
    joining = harness.join(leader)
    partition = harness.log.partition_for(GROUP)
    harness.registry.unload((partition + 1) % 50)
    assert joining.result is None
    harness.registry.unload(partition)
    assert joining.got.error_code == NotCoordinatorError.errno
    assert not harness.registry.exists(GROUP)
    assert len(harness.timer) == 0


@pytest.mark.kafka(
    "ClassicGroupTest.testCompleteAllSyncFutures",
    "GroupMetadataManagerTest.testClassicGroupOnUnloadedCompletingRebalance",
)
def test_who_waits_for_an_assignment_of_a_group_that_moves_is_sent_there_too(harness: GroupHarness) -> None:
    leader, follower = harness.joined(2)
    harness.log.is_holding = True
    waiting = [harness.sync(follower, 1), harness.sync(leader, 1, {})]
    harness.registry.unload(harness.log.partition_for(GROUP))
    assert [one.got.error_code for one in waiting] == [NotCoordinatorError.errno] * 2
    harness.log.settle(NotCoordinatorError.errno)
    assert not harness.registry.exists(GROUP)


def test_groups_of_a_partition_are_known_by_it(harness: GroupHarness) -> None:
    names = [f"g{number}" for number in range(200)]
    for name in names:
        harness.registry.ensure_simple(name)
    harness.delete("g7")
    found = [harness.registry.group_ids(partition) for partition in range(50)]
    assert sorted(name for some in found for name in some) == sorted({*names} - {"g7"})
    partition = harness.log.partition_for("g8")
    assert "g8" in found[partition]
    harness.registry.unload(partition)
    assert harness.registry.group_ids(partition) == []
    assert len(harness.registry) == 199 - len(found[partition])


# ---- Commits -----------------------------------------------------------------------------------------------


def test_commit_to_a_group_that_does_not_exist_is_an_admins_or_refused(harness: GroupHarness) -> None:
    harness.registry.validate_commit("new", "", None, -1, 9)
    assert not harness.registry.exists("new"), "the commit of its offsets creates it"
    with pytest.raises(GroupIdNotFoundError):
        harness.registry.validate_commit("new", "a", None, 1, 9)
    with pytest.raises(IllegalGenerationError):
        harness.registry.validate_commit("new", "a", None, 1, 8)
    harness.registry.validate_transactional_commit("new", "", None, -1)
    with pytest.raises(IllegalGenerationError):
        harness.registry.validate_transactional_commit("new", "a", None, 1)
    with pytest.raises(GroupIdNotFoundError):
        harness.registry.validate_offset_delete("new")


# ---- Listing and deletion ----------------------------------------------------------------------------------


@pytest.mark.kafka("ClassicGroupTest.testIsInStates", "GroupMetadataManagerTest.testListGroups")
def test_groups_are_listed_by_state_and_type_in_any_case(harness: GroupHarness) -> None:
    harness.stable()
    harness.registry.ensure_simple("simple")

    def listed(states=(), kinds=(), node_id=NODE) -> set[str]:
        return {one.group_id for one in harness.coordinator.groups(node_id, states, kinds)}

    assert listed() == {GROUP, "simple"}
    assert listed(["STABLE "]) == listed(["stable", "dead"], ["Classic"]) == {GROUP}
    assert listed([], ["classic"]) == {GROUP, "simple"}
    assert listed(["empty"]) == {"simple"}
    assert listed([], ["consumer"]) == listed(["nonsense"]) == set()
    harness.log.leaders[harness.log.partition_for(GROUP)] = NODE + 1
    assert listed() == {"simple"}
    assert listed(node_id=NODE + 1) == {GROUP}
    harness.log.refusal = CoordinatorLoadInProgressError()
    with pytest.raises(CoordinatorLoadInProgressError):
        listed()


@pytest.mark.kafka("GroupMetadataManagerTest.testClassicGroupDelete")
def test_group_with_members_or_none_at_all_is_not_deleted(harness: GroupHarness) -> None:
    (member,) = harness.stable()
    codes = harness.delete(GROUP, "nothing").got
    assert codes == {GROUP: NonEmptyGroupError.errno, "nothing": GroupIdNotFoundError.errno}
    harness.leave((member, None))
    assert harness.delete(GROUP).got == {GROUP: 0}
    assert not harness.registry.exists(GROUP)
    assert harness.log.last_value() is None
    assert harness.delete(GROUP).got == {GROUP: GroupIdNotFoundError.errno}
    assert not harness.restarted().registry.exists(GROUP)


def test_group_is_deleted_with_its_offsets_when_that_is_safe(harness: GroupHarness) -> None:
    harness.registry.ensure_simple("a")
    harness.registry.ensure_simple("b")
    harness.offset_tombstones = [(b"\x00\x01\x00\x01a\x00\x01t\x00\x00\x00\x00", None)]
    harness.log.is_holding = True
    answer = harness.delete("a", "b")
    assert answer.result is None
    harness.log.settle()
    assert answer.got == {"a": 0, "b": 0}
    assert [key[:2] for key, _ in harness.log.records] == [b"\x00\x01", b"\x00\x02"] * 2
    assert harness.delete().got == {}


def test_deletion_that_cannot_be_written_leaves_the_group(harness: GroupHarness) -> None:
    harness.registry.ensure_simple("a")
    harness.log.failures.append(UnknownError.errno)
    assert harness.delete("a").got == {"a": UnknownError.errno}
    assert harness.registry.exists("a")


def test_deleted_group_waits_for_nobody(harness: GroupHarness) -> None:
    pending = harness.join(version=4).got.member_id
    assert len(harness.timer) == 1
    assert harness.delete(GROUP).got == {GROUP: 0}
    assert len(harness.timer) == 0
    assert harness.join(pending, version=4).got.error_code == UnknownMemberIdError.errno


@pytest.mark.kafka("GroupMetadataManagerTest.testClassicGroupMaybeDelete")
def test_idle_group_has_a_tombstone_another_none(harness: GroupHarness) -> None:
    harness.registry.ensure_simple("simple")
    assert [value for _, value in harness.registry.removal("simple")] == [None]
    harness.stable()
    assert list(harness.registry.removal(GROUP)) == list(harness.registry.removal("nothing")) == []


def test_group_that_is_not_there_is_not_described(harness: GroupHarness) -> None:
    with pytest.raises(GroupIdNotFoundError, match="Group nothing not found"):
        harness.coordinator.describe("nothing", NODE)
    harness.stable()
    assert harness.coordinator.describe(GROUP, NODE) is harness.group
    with pytest.raises(NotCoordinatorError):
        harness.coordinator.describe(GROUP, NODE + 1)


# ---- Log messages ------------------------------------------------------------------------------------------


def test_log_tells_a_groups_life_in_a_line_each(
    harness: GroupHarness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "kafkacore.broker.group")
    member = harness.join(version=4).got.member_id
    harness.join(member, version=4)
    harness.pass_ms(DELAY_MS)
    harness.sync(member, 1, {member: b"x"})
    for _ in range(10):
        harness.heartbeat(member, 1)
    harness.pass_ms(SESSION_MS)
    lines = [record.getMessage().replace(member, "M") for record in caplog.records]
    assert lines == [
        "group flights: member M joined from /127.0.0.1 (client id client, dynamic; reason: not provided)",
        "group flights: preparing to rebalance, old generation 0 (reason: member M joined)",
        "group flights: generation 1 has 1 members; waiting for the assignment of leader M",
        "group flights: stable in generation 1 with 1 members (0 static)",
        "group flights: removed member M, which sent no heartbeat for 10000 ms",
        "group flights: preparing to rebalance, old generation 1 (reason: the session of member M expired)",
        "group flights: now empty in generation 2",
    ]


def test_answers_go_out_when_the_change_is_over_even_if_it_failed() -> None:
    delayed_responses, given = DelayedResponses(), []
    answer = delayed_responses.later(given.append)
    seen = []

    def change() -> None:
        with delayed_responses:
            with delayed_responses:
                answer("a")
            seen.append(list(given))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        change()
    assert (seen, given) == ([[]], ["a"])


def test_response_that_cannot_be_sent_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    delayed_responses, given = DelayedResponses(), []
    with delayed_responses:
        delayed_responses.later(lambda _: 1 / 0)("a")
        delayed_responses.later(given.append)("b")
    assert given == ["b"]
    assert "failed to send the response to a member of a group" in caplog.text
