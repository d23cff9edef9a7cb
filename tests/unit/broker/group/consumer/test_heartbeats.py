"""Members join a consumer group by heartbeats, get their partitions, lose them, and leave."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from model.group_harness import GROUP, REBALANCE_MS, GroupHarness

from kafkacore.broker.group.consumer.consumer_group import ConsumerGroupState
from kafkacore.broker.group.consumer.member_records import subscription_record
from kafkacore.broker.group.consumer.member_updates import MemberUpdates
from kafkacore.errors import (
    FencedInstanceIdError,
    FencedMemberEpochError,
    GroupIdNotFoundError,
    GroupMaxSizeReachedError,
    InvalidRegularExpressionError,
    InvalidRequestError,
    UnknownMemberIdError,
    UnreleasedInstanceIdError,
    UnsupportedAssignorError,
)

SESSION_MS = 45_000
INTERVAL_MS = 1_000
T, U = UUID(int=1), UUID(int=2)


@pytest.fixture
def harness() -> GroupHarness:
    harness = GroupHarness()
    harness.topics.put("t", 4)
    return harness


def test_first_member_gets_all_partitions_at_once(harness: GroupHarness) -> None:
    answer = harness.consumer_join("a")
    assert answer.error_code == 0
    assert (answer.result.member_id, answer.epoch, answer.result.heartbeat_interval_ms) == ("a", 2, 5000)
    assert answer.partitions == {T: [0, 1, 2, 3]}
    assert harness.consumer_group.state is ConsumerGroupState.STABLE
    assert harness.consumer_heartbeat("a", 2).got.partitions is None


def test_steady_heartbeat_is_answered_without_an_update(
    harness: GroupHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.consumer_join("a")
    monkeypatch.delattr(MemberUpdates, "update")
    answer = harness.consumer_heartbeat("a", 2).got
    assert (answer.error_code, answer.epoch, answer.partitions) == (0, 2, None)
    harness.pass_ms(SESSION_MS)
    assert harness.consumer_group.is_empty


def test_second_member_gets_partitions_when_the_first_has_revoked_them(harness: GroupHarness) -> None:
    harness.consumer_join("a")
    harness.pass_ms(INTERVAL_MS)
    joined = harness.consumer_join("b")
    assert (joined.epoch, joined.partitions) == (3, {})
    assert harness.consumer_group.state is ConsumerGroupState.RECONCILING
    asked = harness.consumer_heartbeat("a", 2).got
    assert (asked.epoch, asked.partitions) == (2, {T: [0, 1]})
    # The member still owns what it must revoke, and no other member does.
    assert harness.consumer_heartbeat("a", 2, owned={T: [0, 1, 2, 3]}).got.partitions is None
    assert harness.consumer_heartbeat("b", 3).got.partitions is None
    done = harness.consumer_heartbeat("a", 2, owned={T: [0, 1]}).got
    assert (done.epoch, done.partitions) == (3, None)
    assert harness.consumer_heartbeat("b", 3).got.partitions == {T: [2, 3]}
    assert harness.consumer_group.state is ConsumerGroupState.STABLE


def test_assignment_is_computed_once_in_its_interval(harness: GroupHarness) -> None:
    harness.consumer_join("a")
    assert harness.consumer_join("b").epoch == 2
    assert harness.consumer_group.state is ConsumerGroupState.ASSIGNING
    harness.pass_ms(INTERVAL_MS - 1)
    assert harness.consumer_heartbeat("b", 2).got.epoch == 2
    harness.pass_ms(1)
    assert harness.consumer_heartbeat("b", 2).got.epoch == 3


def test_member_that_leaves_makes_room(harness: GroupHarness) -> None:
    harness.consumer_join("a")
    harness.pass_ms(INTERVAL_MS)
    harness.consumer_join("b")
    harness.pass_ms(INTERVAL_MS)
    left = harness.consumer_heartbeat("a", -1).got
    assert (left.error_code, left.epoch) == (0, -1)
    answer = harness.consumer_heartbeat("b", 3).got
    assert (answer.epoch, answer.partitions) == (4, {T: [0, 1, 2, 3]})
    assert harness.consumer_heartbeat("a", 2).got.error_code == UnknownMemberIdError.errno


def test_member_without_heartbeats_is_removed_after_its_session(harness: GroupHarness) -> None:
    harness.consumer_join("a")
    harness.pass_ms(SESSION_MS - 1)
    harness.consumer_heartbeat("a", 2)
    harness.pass_ms(SESSION_MS - 1)
    assert "a" in harness.consumer_group
    harness.pass_ms(1)
    assert harness.consumer_group.is_empty
    assert harness.consumer_group.state is ConsumerGroupState.EMPTY


def test_member_that_does_not_revoke_is_removed(harness: GroupHarness) -> None:
    harness.consumer_join("a", rebalance_ms=10_000)
    harness.pass_ms(INTERVAL_MS)
    harness.consumer_join("b")
    for _ in range(10):
        harness.consumer_heartbeat("a", 2)
        harness.pass_ms(999)
    assert "a" in harness.consumer_group
    harness.pass_ms(10)
    assert "a" not in harness.consumer_group
    assert harness.consumer_heartbeat("b", 3).got.partitions == {T: [0, 1, 2, 3]}


def test_epoch_of_a_heartbeat_must_be_the_members(harness: GroupHarness) -> None:
    harness.consumer_join("a")
    later = harness.consumer_heartbeat("a", 3).got
    assert later.error_code == FencedMemberEpochError.errno
    assert "has a greater member epoch (3) than the one known by the group coordinator (2)" in later.message
    earlier = harness.consumer_heartbeat("a", 1).got
    assert earlier.error_code == FencedMemberEpochError.errno
    assert "has a smaller member epoch (1)" in earlier.message


def test_member_that_missed_an_answer_can_repeat_its_heartbeat(harness: GroupHarness) -> None:
    harness.consumer_join("a")
    harness.pass_ms(INTERVAL_MS)
    harness.topics.put("t", 5)
    assert harness.consumer_heartbeat("a", 2).got.epoch == 3
    again = harness.consumer_heartbeat("a", 2, owned={T: [0, 1, 2, 3]}).got
    assert (again.error_code, again.epoch) == (0, 3)
    assert harness.consumer_heartbeat("a", 2, owned={T: [9]}).got.error_code == FencedMemberEpochError.errno
    assert harness.consumer_heartbeat("a", 2).got.error_code == FencedMemberEpochError.errno


def test_member_rejoins_with_its_id_and_gets_its_partitions_again(harness: GroupHarness) -> None:
    harness.consumer_join("a")
    again = harness.consumer_join("a")
    assert (again.epoch, again.partitions) == (2, {T: [0, 1, 2, 3]})


def test_full_heartbeat_is_answered_with_the_assignment(harness: GroupHarness) -> None:
    harness.consumer_join("a")
    owned = {T: [0, 1, 2, 3]}
    full = harness.consumer_heartbeat("a", 2, topics=["t"], owned=owned, rebalance_ms=REBALANCE_MS).got
    assert full.partitions == {T: [0, 1, 2, 3]}


def test_new_partitions_and_topics_are_noticed_at_the_next_heartbeat(harness: GroupHarness) -> None:
    harness.consumer_join("a", ["t", "u"])
    harness.pass_ms(INTERVAL_MS)
    harness.topics.put("t", 6)
    assert harness.consumer_heartbeat("a", 2).got.partitions == {T: [0, 1, 2, 3, 4, 5]}
    harness.topics.put("other", 1)
    before = harness.consumer_group.epoch
    assert harness.consumer_heartbeat("a", 3).got.partitions is None
    assert harness.consumer_group.epoch == before
    harness.pass_ms(INTERVAL_MS)
    new = harness.topics.put("u", 1)
    assert harness.consumer_heartbeat("a", 3).got.partitions == {T: [0, 1, 2, 3, 4, 5], new: [0]}
    harness.pass_ms(INTERVAL_MS)
    harness.topics.delete("t")
    assert harness.consumer_heartbeat("a", 4).got.partitions == {new: [0]}


def test_member_changes_its_subscription(harness: GroupHarness) -> None:
    u = harness.topics.put("u", 2)
    harness.consumer_join("a")
    changed = harness.consumer_heartbeat("a", 2, topics=["u"], owned={T: [0, 1, 2, 3]}).got
    # The partitions of the old topic go before the next assignment is computed.
    assert changed.partitions == {}
    harness.pass_ms(INTERVAL_MS)
    assert harness.consumer_heartbeat("a", 2, owned={}).got.partitions == {u: [0, 1]}


def test_static_member_repeats_its_join(harness: GroupHarness) -> None:
    first = harness.consumer_join("a", instance_id="i")
    again = harness.consumer_join("a", instance_id="i")
    assert again.error_code == 0
    assert again.partitions == first.partitions == {T: [0, 1, 2, 3]}
    assert harness.consumer_heartbeat("a", again.epoch, instance_id="i").got.error_code == 0
    assert len(harness.restarted().consumer_group) == 1


def test_static_member_keeps_its_partitions_while_it_is_away(harness: GroupHarness) -> None:
    harness.consumer_join("a", instance_id="i")
    harness.pass_ms(INTERVAL_MS)
    harness.consumer_join("b")
    harness.consumer_heartbeat("a", 2, instance_id="i", owned={T: [0, 1, 2, 3]})
    harness.consumer_heartbeat("a", 2, instance_id="i", owned={T: [0, 1]})
    harness.consumer_heartbeat("b", 3)
    refused = harness.consumer_join("a2", instance_id="i")
    assert refused.error_code == UnreleasedInstanceIdError.errno
    assert "the instance id is owned by a member" in refused.message
    assert harness.consumer_heartbeat("a", -2, instance_id="i").got.epoch == -2
    epoch = harness.consumer_group.epoch
    back = harness.consumer_join("a2", instance_id="i")
    assert (back.epoch, back.partitions) == (3, {T: [0, 1]})
    assert harness.consumer_group.epoch == epoch
    fenced = harness.consumer_heartbeat("a", 3, instance_id="i").got
    assert fenced.error_code == FencedInstanceIdError.errno
    assert "with instance id i was fenced by member a2" in fenced.message
    assert harness.consumer_heartbeat("a", 3).got.error_code == UnknownMemberIdError.errno
    unknown = harness.consumer_heartbeat("a", 3, instance_id="other").got
    assert unknown.error_code == UnknownMemberIdError.errno


def test_static_member_that_stays_away_is_removed(harness: GroupHarness) -> None:
    harness.consumer_join("a", instance_id="i")
    harness.consumer_heartbeat("a", -2, instance_id="i")
    harness.pass_ms(SESSION_MS)
    assert harness.consumer_group.is_empty


def test_static_member_that_is_away_need_not_revoke(harness: GroupHarness) -> None:
    harness.consumer_join("a", instance_id="i", rebalance_ms=5_000)
    harness.pass_ms(INTERVAL_MS)
    harness.consumer_join("b")
    harness.consumer_heartbeat("a", 2, instance_id="i", owned={T: [0, 1, 2, 3]})
    harness.consumer_heartbeat("a", -2, instance_id="i")
    harness.pass_ms(5_000)
    assert "a" in harness.consumer_group
    assert harness.consumer_join("a2", instance_id="i").partitions == {T: [0, 1]}


def test_static_member_can_leave_for_good(harness: GroupHarness) -> None:
    harness.consumer_join("a", instance_id="i")
    assert harness.consumer_heartbeat("x", -1, instance_id="i").got.error_code == FencedInstanceIdError.errno
    assert harness.consumer_heartbeat("a", -1, instance_id="i").got.error_code == 0
    assert harness.consumer_group.is_empty


def test_regular_expression_follows_the_topics(harness: GroupHarness) -> None:
    """A match follows the heartbeat that makes it due, and the next heartbeat uses it."""
    joined = harness.consumer_join("a", None, regex="[tu]")
    assert (joined.epoch, joined.partitions) == (1, {})
    assert harness.consumer_heartbeat("a", 1).got.partitions == {T: [0, 1, 2, 3]}
    u = harness.topics.put("u", 1)
    harness.pass_ms(INTERVAL_MS)
    assert harness.consumer_heartbeat("a", 2).got.partitions is None
    assert harness.consumer_heartbeat("a", 2).got.partitions == {T: [0, 1, 2, 3], u: [0]}
    harness.topics.put("v", 1)
    size = len(harness.log.records)
    harness.consumer_heartbeat("a", 3)
    assert len(harness.log.records) == size
    bad = harness.consumer_heartbeat("a", 3, regex="[").got
    assert bad.error_code == InvalidRegularExpressionError.errno
    assert "SubscribedTopicRegex `[` is not a valid regular expression: missing ]" in bad.message
    harness.pass_ms(INTERVAL_MS)
    harness.consumer_heartbeat("a", 3, regex="", topics=["v"], owned={})
    assert harness.consumer_group.resolved == {}


def test_member_that_joins_with_a_known_expression_has_a_target_at_once(harness: GroupHarness) -> None:
    harness.consumer_join("a", None, regex="t")
    assert harness.consumer_heartbeat("a", 1).got.partitions == {T: [0, 1, 2, 3]}
    harness.pass_ms(INTERVAL_MS)
    assert harness.consumer_join("b", None, regex="t").epoch == harness.consumer_group.epoch == 3
    assert harness.consumer_heartbeat("a", 2).got.partitions == {T: [0, 1]}
    harness.consumer_heartbeat("a", 2, owned={T: [0, 1]})
    assert harness.consumer_heartbeat("b", 3).got.partitions == {T: [2, 3]}


def test_member_with_a_new_expression_releases_its_partitions(harness: GroupHarness) -> None:
    u = harness.topics.put("u", 1)
    harness.consumer_join("a", None, regex="t")
    assert harness.consumer_heartbeat("a", 1).got.partitions == {T: [0, 1, 2, 3]}
    harness.pass_ms(INTERVAL_MS)
    assert harness.consumer_heartbeat("a", 2, regex="u", owned={T: [0, 1, 2, 3]}).got.partitions == {}
    assert harness.consumer_group.resolved.keys() == {"u"}
    assert harness.consumer_heartbeat("a", 2, owned={}).got.partitions == {u: [0]}


def test_regular_expression_that_matches_no_topic_needs_no_assignment(harness: GroupHarness) -> None:
    joined = harness.consumer_join("a", None, regex="foo.*")
    assert (joined.epoch, joined.partitions) == (1, {})
    foo = harness.topics.put("foo1", 1)
    assert harness.consumer_heartbeat("a", 1).got.partitions is None
    assert harness.consumer_heartbeat("a", 1).got.partitions == {foo: [0]}
    other = harness.consumer_join("b", None, regex="bar.*")
    assert other.partitions == {}
    harness.pass_ms(INTERVAL_MS)
    left = harness.consumer_heartbeat("a", 2, regex="bar.*", owned={foo: [0]}).got
    assert left.partitions == {}


def test_regular_expression_does_not_match_topics_that_the_client_may_not_describe(
    harness: GroupHarness,
) -> None:
    harness.topics.put("u", 1)
    harness.consumer_join("a", None, regex=".*", may_describe=lambda topic: topic == "t")
    assert harness.consumer_heartbeat("a", 1).got.partitions == {T: [0, 1, 2, 3]}


def test_regular_expression_is_matched_again_after_a_while_because_permissions_change(
    harness: GroupHarness,
) -> None:
    harness.consumer_join("a", None, regex=".*", may_describe=lambda _: False)
    for _ in range(harness.config.group_consumer_regex_refresh_interval_ms // 30_000):
        harness.pass_ms(30_000)
        assert harness.consumer_heartbeat("a", 1).got.partitions is None
        assert harness.consumer_heartbeat("a", 1).got.partitions is None
    harness.pass_ms(30_000)
    assert harness.consumer_heartbeat("a", 1).got.partitions is None
    assert harness.consumer_heartbeat("a", 1).got.partitions == {T: [0, 1, 2, 3]}


def test_assignor_that_most_members_prefer_is_used(harness: GroupHarness) -> None:
    harness.topics.put("u", 4)
    harness.consumer_join("a", ["t", "u"], assignor="range")
    harness.pass_ms(INTERVAL_MS)
    harness.consumer_join("b", ["t", "u"])
    asked = harness.consumer_heartbeat("a", 2).got
    assert asked.partitions == {T: [0, 1], U: [0, 1]}
    unknown = harness.consumer_join("c", assignor="sticky")
    assert unknown.error_code == UnsupportedAssignorError.errno
    assert unknown.message.endswith(
        "ServerAssignor sticky is not supported. Supported assignors: uniform, range."
    )


def test_group_has_a_maximum_size() -> None:
    harness = GroupHarness(group_consumer_max_size=1)
    harness.topics.put("t", 1)
    assert harness.consumer_join("a").error_code == 0
    assert harness.consumer_join("b").error_code == GroupMaxSizeReachedError.errno
    assert harness.consumer_join("a").error_code == 0


def test_member_of_version_0_gets_an_id(harness: GroupHarness) -> None:
    answer = harness.consumer_join("", version=0)
    assert answer.error_code == 0
    assert len(answer.result.member_id) == 22
    assert answer.result.member_id in harness.consumer_group


@pytest.mark.parametrize(
    ("epoch", "fields", "message"),
    [
        (0, {"member_id": ""}, "MemberId can't be empty."),
        (5, {"member_id": "", "version": 0}, "MemberId can't be empty."),
        (0, {"member_id": " "}, "MemberId can't be empty."),
        (1, {"group_id": ""}, "GroupId can't be empty."),
        (1, {"instance_id": ""}, "InstanceId can't be empty."),
        (1, {"rack_id": " "}, "RackId can't be empty."),
        (0, {"rebalance_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        (0, {"owned": None}, "TopicPartitions must be empty when (re-)joining."),
        (0, {"owned": {T: [1]}}, "TopicPartitions must be empty when (re-)joining."),
        (0, {"topics": None}, "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null"),
        (-2, {}, "InstanceId can't be null."),
        (-3, {}, "MemberEpoch is invalid."),
    ],
)
def test_invalid_heartbeat_is_refused(
    harness: GroupHarness, epoch: int, fields: dict[str, object], message: str
) -> None:
    how: dict[str, object] = {"owned": {}, "rebalance_ms": 1, "topics": ["t"], **fields}
    answer = harness.consumer_heartbeat(str(how.pop("member_id", "a")), epoch, **how).got  # type: ignore[arg-type]
    assert answer.error_code == InvalidRequestError.errno
    assert message in answer.message
    assert harness.log.records == []


def test_group_that_does_not_exist_is_not_found(harness: GroupHarness) -> None:
    for epoch in (1, -1):
        assert harness.consumer_heartbeat("a", epoch).got.error_code == GroupIdNotFoundError.errno
    assert harness.registry.get(GROUP) is None


def test_empty_classic_group_becomes_a_consumer_group(harness: GroupHarness) -> None:
    member_id, *_ = harness.stable()
    harness.leave((member_id, None))
    assert harness.state == "Empty"
    assert harness.consumer_join("a").error_code == 0
    assert harness.registry.classic_group(GROUP) is None
    assert harness.restarted().consumer_group.state is ConsumerGroupState.STABLE


def test_group_comes_back_after_a_restart_with_all_that_its_members_know(harness: GroupHarness) -> None:
    harness.consumer_join("a", instance_id="i")
    harness.pass_ms(INTERVAL_MS)
    harness.consumer_join("b", None, regex="t")
    harness.consumer_heartbeat("a", 2, instance_id="i", owned={T: [0, 1, 2, 3]})
    before = harness.consumer_group
    after = harness.restarted()
    assert list(after.consumer_group) == list(before)
    assert after.consumer_group.target == before.target
    assert after.consumer_group.resolved.keys() == {"t"}
    assert after.consumer_group.state is before.state
    size = len(after.log.records)
    after.consumer_heartbeat("a", 2, instance_id="i", owned={T: [0, 1, 2, 3]})
    assert len(after.log.records) == size
    # The deadlines begin again: the member must revoke in time, and send heartbeats.
    after.pass_ms(SESSION_MS)
    assert after.consumer_group.is_empty


def test_dynamic_member_becomes_a_static_one_and_keeps_its_partitions(harness: GroupHarness) -> None:
    harness.consumer_join("a")
    joined = harness.consumer_join("a", instance_id="i")
    assert joined.partitions == {T: [0, 1, 2, 3]}
    assert [member.instance_id for member in harness.consumer_group] == ["i"]


def test_topics_of_an_expression_are_matched_again_after_a_failed_append(
    harness: GroupHarness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.consumer_join("a", None, regex="[tu]")
    harness.consumer_heartbeat("a", 1)
    harness.pass_ms(INTERVAL_MS)
    u = harness.topics.put("u", 1)
    harness.log.failures.append(15)
    assert harness.consumer_heartbeat("a", 2).got.partitions is None
    assert "failed to store the topics that match '[tu]': error 15" in caplog.text
    assert harness.consumer_heartbeat("a", 2).got.partitions is None
    assert harness.consumer_heartbeat("a", 2).got.partitions == {T: [0, 1, 2, 3], u: [0]}


def test_stored_expression_that_is_not_valid_here_matches_no_topic(
    harness: GroupHarness, caplog: pytest.LogCaptureFixture
) -> None:
    """Such a group comes from a folder of Apache Kafka, whose limits of repetitions are others."""
    harness.consumer_join("a")
    member = replace(harness.consumer_group.member("a"), subscribed_topic_regex="(a{100}){100}")
    harness.log.append(GROUP, [subscription_record(GROUP, member)], lambda code: None)
    assert harness.consumer_heartbeat("a", 2).got.error_code == 0
    assert "SubscribedTopicRegex `(a{100}){100}` is not a valid regular expression" in caplog.text
    assert harness.consumer_group.resolved["(a{100}){100}"].topics == frozenset()


def test_expression_of_a_member_that_could_not_join_is_not_matched(harness: GroupHarness) -> None:
    harness.consumer_join("a")
    harness.log.failures.append(15)
    assert harness.consumer_join("b", None, regex="t").error_code == 15
    assert harness.consumer_group.resolved == {}


def test_failed_append_changes_nothing_and_the_heartbeat_can_be_repeated(harness: GroupHarness) -> None:
    harness.log.failures.append(15)
    assert harness.consumer_join("a").error_code == 15
    assert harness.registry.get(GROUP) is None
    assert harness.consumer_join("a").partitions == {T: [0, 1, 2, 3]}
    harness.topics.put("t", 5)
    harness.pass_ms(INTERVAL_MS)
    harness.log.failures.append(15)
    assert harness.consumer_heartbeat("a", 2).got.error_code == 15
    assert harness.consumer_heartbeat("a", 2).got.partitions == {T: [0, 1, 2, 3, 4]}


def test_answer_waits_until_the_records_are_safe(harness: GroupHarness) -> None:
    harness.log.is_holding = True
    answer = harness.consumer_heartbeat("a", 0, topics=["t"], owned={}, rebalance_ms=1)
    steady = harness.consumer_heartbeat("a", 2)
    assert answer.result is steady.result is None
    harness.log.settle()
    assert answer.got.error_code == steady.got.error_code == 0


def test_group_is_deleted_when_it_is_empty(harness: GroupHarness) -> None:
    harness.consumer_join("a", None, regex="t")
    assert harness.delete(GROUP).got != {GROUP: 0}
    harness.consumer_heartbeat("a", -1)
    assert harness.delete(GROUP).got == {GROUP: 0}
    assert harness.registry.get(GROUP) is None
    values = dict(harness.log.records)
    assert set(values.values()) == {None}
