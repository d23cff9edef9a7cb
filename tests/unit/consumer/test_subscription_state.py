"""SubscriptionState: assigned partitions and their fetch positions."""

import pytest

from kafkacore.consumer.listener import ConsumerRebalanceListener
from kafkacore.consumer.subscription_pattern import SubscriptionPattern
from kafkacore.consumer.subscription_state import (
    FetchPosition,
    OffsetResetStrategy,
    SubscriptionState,
    ensure_valid_topic_name,
)
from kafkacore.errors import IllegalStateError, NoOffsetForPartitionError
from kafkacore.structs import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
EARLIEST, LATEST, NONE = OffsetResetStrategy.EARLIEST, OffsetResetStrategy.LATEST, OffsetResetStrategy.NONE


@pytest.fixture
def state():
    return SubscriptionState(EARLIEST)


@pytest.mark.kafka("SubscriptionStateTest.partitionAssignment")
def test_partition_is_fetchable_only_with_a_position(state):
    state.assign_from_user([A0])
    assert not state.is_fetchable(A0)
    state.seek(A0, FetchPosition(5))
    assert state.is_fetchable(A0)
    assert state.position(A0).offset == 5
    assert state.has_all_fetch_positions()


@pytest.mark.kafka("SubscriptionStateTest.partitionAssignmentChangeOnTopicSubscription")
def test_reassignment_keeps_positions_of_partitions_that_stay(state):
    state.assign_from_user([A0, A1])
    state.seek(A0, FetchPosition(5))
    state.assign_from_user([A0, B0])
    assert state.position(A0).offset == 5
    assert state.assigned_partitions() == {A0, B0}
    with pytest.raises(IllegalStateError):
        state.position(A1)


def test_assigned_order_of_partitions_is_kept(state):
    state.assign_from_user([B0, A1, A0])
    for tp in (A0, A1, B0):
        state.seek(tp, FetchPosition(0))
    assert state.fetchable_partitions() == [B0, A1, A0]
    state.move_to_end(B0)
    assert state.fetchable_partitions() == [A1, A0, B0]


@pytest.mark.kafka("SubscriptionStateTest.partitionPause")
def test_paused_partition_is_not_fetchable_until_resumed(state):
    state.assign_from_user([A0])
    state.seek(A0, FetchPosition(5))
    state.pause(A0)
    assert not state.is_fetchable(A0)
    assert state.paused_partitions() == {A0}
    state.resume(A0)
    assert state.is_fetchable(A0)


@pytest.mark.kafka(
    "SubscriptionStateTest.cantChangePositionForNonAssignedPartition",
    "SubscriptionStateTest.testPositionOrNull",
)
@pytest.mark.parametrize("partition_call", ["pause", "resume", "position", "request_offset_reset"])
def test_unassigned_partition_is_refused(state, partition_call):
    state.assign_from_user([A0])
    with pytest.raises(IllegalStateError):
        getattr(state, partition_call)(B0)


@pytest.mark.kafka(
    "SubscriptionStateTest.cantSubscribeTopicAndPattern",
    "SubscriptionStateTest.cantSubscribePartitionAndPattern",
    "SubscriptionStateTest.cantSubscribePatternAndTopic",
    "SubscriptionStateTest.cantSubscribePatternAndPartition",
)
def test_subscribing_and_assigning_exclude_each_other(state):
    state.subscribe(["a"])
    with pytest.raises(IllegalStateError):
        state.assign_from_user([A0])
    with pytest.raises(IllegalStateError):
        state.subscribe(pattern="a.*")
    state.unsubscribe()
    state.assign_from_user([A0])
    with pytest.raises(IllegalStateError):
        state.subscribe(["a"])


@pytest.mark.kafka("SubscriptionStateTest.topicSubscription")
def test_subscribe_needs_topics_or_a_pattern_and_one_of_them(state):
    with pytest.raises(ValueError, match="either"):
        state.subscribe()
    with pytest.raises(ValueError, match="either"):
        state.subscribe(["a"], pattern="b")
    with pytest.raises(TypeError):
        state.subscribe("a")


def test_listener_must_be_a_rebalance_listener(state):
    with pytest.raises(TypeError):
        state.subscribe(["a"], listener=object())

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked):
            self.revoked = revoked

        def on_partitions_assigned(self, assigned):
            pass

    listener = Listener()
    state.subscribe(["a"], listener=listener)
    assert state.listener is listener
    listener.on_partitions_lost([A0])
    assert listener.revoked == [A0]


@pytest.mark.kafka(
    "SubscriptionStateTest.partitionAssignmentChangeOnPatternSubscription",
    "SubscriptionStateTest.patternSubscription",
)
def test_pattern_subscription_follows_matching_topics(state):
    state.subscribe(pattern="^a")
    state.subscribe_from_pattern(["ab", "a", "ba"])
    assert state.subscription == {"ab", "a"}
    assert state.assign_from_subscribed([A0])
    assert not state.assign_from_subscribed([A0])


@pytest.mark.kafka("SubscriptionStateTest.topicSubscription")
def test_assignment_from_subscription_needs_one(state):
    with pytest.raises(IllegalStateError):
        state.assign_from_subscribed([A0])


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ä", "x" * 250])
def test_impossible_topic_name_is_refused(name):
    with pytest.raises(ValueError, match="topic name"):
        ensure_valid_topic_name(name)


def test_longest_topic_name_is_accepted():
    ensure_valid_topic_name("x" * 249)


@pytest.mark.kafka("SubscriptionStateTest.partitionReset")
def test_initializing_partitions_are_reset_by_the_default_strategy(state):
    state.assign_from_user([A0, A1])
    state.seek(A1, FetchPosition(3))
    state.reset_initializing_positions()
    assert state.partitions_needing_reset(0.0) == {A0: EARLIEST}


def test_missing_position_without_reset_strategy_raises():
    state = SubscriptionState(NONE)
    state.assign_from_user([A0])
    with pytest.raises(NoOffsetForPartitionError, match="auto_offset_reset"):
        state.reset_initializing_positions()


def test_reset_waits_for_its_retry_time(state):
    state.assign_from_user([A0])
    state.request_offset_reset(A0, LATEST)
    state.set_next_retry([A0], 100.0)
    assert state.partitions_needing_reset(99.0) == {}
    assert state.partitions_needing_reset(100.0) == {A0: LATEST}


def test_answer_of_a_reset_is_taken_only_while_it_is_wanted(state):
    state.assign_from_user([A0])
    state.request_offset_reset(A0, EARLIEST)
    assert not state.maybe_seek_unvalidated(A0, LATEST, FetchPosition(9))
    assert state.maybe_seek_unvalidated(A0, EARLIEST, FetchPosition(0))
    state.seek(A0, FetchPosition(42))
    assert not state.maybe_seek_unvalidated(A0, EARLIEST, FetchPosition(0))
    assert state.position(A0).offset == 42
    assert not state.maybe_seek_unvalidated(B0, EARLIEST, FetchPosition(0))


@pytest.mark.kafka("SubscriptionStateTest.partitionReset")
def test_seek_ends_a_reset(state):
    state.assign_from_user([A0])
    state.request_offset_reset(A0)
    assert state.is_offset_reset_needed(A0)
    state.seek(A0, FetchPosition(1))
    assert not state.is_offset_reset_needed(A0)


@pytest.mark.kafka("SubscriptionStateTest.invalidPositionUpdate")
def test_position_moves_only_where_there_is_one(state):
    state.assign_from_user([A0])
    with pytest.raises(IllegalStateError):
        state.set_position(A0, FetchPosition(1))


@pytest.mark.kafka("SubscriptionStateTest.testMaybeValidatePositionForCurrentLeader")
def test_new_leader_epoch_asks_once_for_validation(state):
    state.assign_from_user([A0])
    state.seek(A0, FetchPosition(10, offset_epoch=3))
    assert not state.maybe_validate_position(A0, 3)
    assert state.maybe_validate_position(A0, 5)
    assert not state.is_fetchable(A0)
    assert state.partitions_needing_validation(0.0) == {A0: FetchPosition(10, 3)}
    assert state.complete_validation(A0, FetchPosition(10, 3))
    assert state.is_fetchable(A0)
    assert not state.maybe_validate_position(A0, 5)


def test_position_without_epoch_is_not_validated(state):
    state.assign_from_user([A0])
    state.seek(A0, FetchPosition(10))
    assert not state.maybe_validate_position(A0, 5)
    assert state.is_fetchable(A0)


@pytest.mark.kafka("SubscriptionStateTest.testMaybeCompleteValidationAfterPositionChange")
def test_answer_of_a_validation_is_dropped_after_a_seek(state):
    state.assign_from_user([A0])
    state.seek(A0, FetchPosition(10, 3))
    state.maybe_validate_position(A0, 5)
    state.seek(A0, FetchPosition(11, 3))
    assert not state.complete_validation(A0, FetchPosition(10, 3))


@pytest.mark.kafka("SubscriptionStateTest.testPreferredReadReplicaLease")
def test_preferred_replica_expires(state):
    state.assign_from_user([A0])
    state.update_preferred_read_replica(A0, 7, expires_ms=100.0)
    assert state.preferred_read_replica(A0, 99.0) == 7
    assert state.preferred_read_replica(A0, 100.0) is None
    state.update_preferred_read_replica(A0, 8, expires_ms=200.0)
    assert state.clear_preferred_read_replica(A0) == 8
    assert state.clear_preferred_read_replica(A0) is None
    assert state.preferred_read_replica(B0, 0.0) is None


@pytest.mark.kafka(
    "SubscriptionStateTest.unsubscribeUserAssignment",
    "SubscriptionStateTest.unsubscribeUserSubscribe",
    "SubscriptionStateTest.unsubscription",
)
@pytest.mark.parametrize("subscribed", [True, False])
def test_nothing_is_left_after_unsubscribing_and_another_kind_may_follow(state, subscribed):
    if subscribed:
        state.subscribe(["a"])
        state.assign_from_subscribed([A0])
    else:
        state.assign_from_user([A0])
    state.seek(A0, FetchPosition(1))
    state.unsubscribe()
    assert state.assigned_partitions() == set()
    assert not state.is_fetchable(A0)
    assert state.subscription == set()
    if subscribed:
        state.assign_from_user([A1])
    else:
        state.subscribe(["a"])
        state.assign_from_subscribed([A1])
    assert state.assigned_partitions() == {A1}


@pytest.fixture
def validating(state):
    """Return a state in which position 5 (epoch 1) of A0 awaits validation by the leader."""
    state.assign_from_user([A0])
    state.seek(A0, FetchPosition(5, 1))
    assert state.maybe_validate_position(A0, 2)
    return state


@pytest.mark.kafka(
    "SubscriptionStateTest.testSeekUnvalidatedWithNoEpochClearsAwaitingValidation",
    "SubscriptionStateTest.testSeekValidatedShouldClearAwaitingValidation",
)
def test_seek_ends_a_validation(validating):
    validating.seek(A0, FetchPosition(7))
    assert validating.is_fetchable(A0)
    assert not validating.complete_validation(A0, FetchPosition(5, 1))
    assert validating.position(A0) == FetchPosition(7)


@pytest.mark.kafka(
    "SubscriptionStateTest.testOffsetResetWhileAwaitingValidation",
    "SubscriptionStateTest.testMaybeCompleteValidationAfterOffsetReset",
)
def test_reset_ends_a_validation_and_its_answer_is_nothing_any_more(validating):
    validating.request_offset_reset(A0)
    assert validating.is_offset_reset_needed(A0)
    assert not validating.complete_validation(A0, FetchPosition(5, 1))
    assert validating.partitions_needing_validation(0.0) == {}
    assert not validating.maybe_validate_position(A0, 3)


@pytest.mark.kafka("SubscriptionStateTest.testCompleteValidationShouldClearAwaitingValidation")
def test_paused_partition_is_validated_all_the_same(validating):
    validating.pause(A0)
    assert validating.complete_validation(A0, FetchPosition(5, 1))
    assert not validating.is_fetchable(A0)
    validating.resume(A0)
    assert validating.is_fetchable(A0)


@pytest.mark.kafka(
    "SubscriptionStateTest.testSeekUnvalidatedWithNoOffsetEpoch",
    "SubscriptionStateTest.testSeekUnvalidatedWithOffsetEpoch",
)
def test_unvalidated_seek_without_epoch_needs_no_validation(state):
    state.assign_from_user([A0])
    state.seek_unvalidated(A0, FetchPosition(5))
    assert not state.has_unseen_positions
    assert state.is_fetchable(A0)
    state.seek_unvalidated(A0, FetchPosition(5, 1))
    assert state.has_unseen_positions


def test_server_pattern_subscribes_to_no_names(state):
    state.subscribe(pattern=SubscriptionPattern("a.*"))
    assert state.server_pattern == "a.*"
    assert state.pattern is None
    assert state.subscribed == frozenset()
    assert state.needs_all_topics()
    assert state.assign_from_subscribed([A0, B0])


def test_new_server_pattern_replaces_the_previous_one(state):
    state.subscribe(pattern=SubscriptionPattern("a.*"))
    state.subscribe(pattern=SubscriptionPattern("b.*"))
    assert state.server_pattern == "b.*"
    state.unsubscribe()
    assert state.server_pattern is None
    assert not state.needs_all_topics()
    state.subscribe(["a"])


@pytest.mark.parametrize("other", [{"topics": ["a"]}, {"pattern": "a"}])
def test_server_pattern_excludes_other_subscriptions(state, other):
    state.subscribe(pattern=SubscriptionPattern("a"))
    with pytest.raises(IllegalStateError, match="unsubscribe"):
        state.subscribe(**other)
    assert state.server_pattern == "a"
    state.unsubscribe()
    state.subscribe(**other)
    with pytest.raises(IllegalStateError, match="unsubscribe"):
        state.subscribe(pattern=SubscriptionPattern("a"))


def test_server_pattern_and_topics_are_refused_together(state):
    with pytest.raises(ValueError, match="not both"):
        state.subscribe(["a"], pattern=SubscriptionPattern("a"))


@pytest.mark.parametrize(("pattern", "error"), [("", ValueError), (None, TypeError), (b"a", TypeError)])
def test_subscription_pattern_must_be_text(pattern, error):
    with pytest.raises(error, match="the pattern must"):
        SubscriptionPattern(pattern)


def test_subscription_patterns_compare_by_their_text():
    assert SubscriptionPattern("a") == SubscriptionPattern("a") != SubscriptionPattern("b")
    assert str(SubscriptionPattern("a.*")) == "a.*"
    assert len({SubscriptionPattern("a"), SubscriptionPattern("a")}) == 1
