"""OffsetCommits: when offsets are committed, and how each response is handled."""

from __future__ import annotations

import logging

import pytest
from model.group_offsets import GROUP, MEMBER, Group

from kafkacore.consumer.group.generation import NO_GENERATION, Generation
from kafkacore.errors import (
    BROKER_ERRORS,
    CommitFailedError,
    CoordinatorNotAvailableError,
    FencedInstanceIdError,
    GroupAuthorizationFailedError,
    InvalidCommitOffsetSizeError,
    KafkaConnectionError,
    KafkaTimeoutError,
    OffsetMetadataTooLargeError,
    RebalanceInProgressError,
    RetriableCommitFailedError,
    TopicAuthorizationFailedError,
    UnknownError,
    WakeupError,
)
from kafkacore.protocol import ApiKey
from kafkacore.protocol.generated.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kafkacore.structs import OffsetAndMetadata, TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
FIVE = {A0: OffsetAndMetadata(5, "note", 2)}
LOADING, NOT_AVAILABLE, NOT_COORDINATOR, TIMED_OUT, UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID = 14, 15, 16, 7, 3, 100
ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCE, FENCED = 22, 25, 27, 82
RETRIABLE = (LOADING, NOT_AVAILABLE, NOT_COORDINATOR, TIMED_OUT, UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID)


@pytest.fixture
def group():
    return Group()


def refuse(group, *codes):
    group.broker.errors[OffsetCommitRequest].extend(codes)


class RecordingCallback:
    """A commit callback that records its calls."""

    def __init__(self):
        self.outcomes = []

    def __call__(self, offsets, error):
        self.outcomes.append((dict(offsets), error))


# ---- Requests --------------------------------------------------------------------------------------------
@pytest.mark.kafka("ConsumerCoordinatorTest.testCommitOffsetMetadataSync")
@pytest.mark.parametrize("version", range(2, 11))
def test_commit_carries_generation_epoch_and_note_in_every_version(version):
    group = Group({ApiKey.OFFSET_COMMIT: version})
    group.commits.commit_sync(FIVE | {B0: OffsetAndMetadata(1)}, group.timer())
    (sent,) = group.broker.requests_of(OffsetCommitRequest)
    assert sent.version == version
    assert (sent.message.group_id, sent.message.generation_id_or_member_epoch, sent.message.member_id) == (
        GROUP, MEMBER.generation_id, MEMBER.member_id,
    )  # fmt: skip
    epoch = 2 if version >= 6 else -1
    assert group.broker.committed == {A0: OffsetAndMetadata(5, "note", epoch), B0: OffsetAndMetadata(1)}


def test_topic_of_unknown_id_is_committed_by_name(group):
    group.broker.topics["c"] = 1
    group.commits.commit_sync(FIVE | {TopicPartition("c", 0): OffsetAndMetadata(1)}, group.timer())
    (sent,) = group.broker.requests_of(OffsetCommitRequest)
    assert sent.version == 9
    assert [topic.name for topic in sent.message.topics] == ["a", "c"]


def test_static_member_names_its_instance():
    group = Group(group_instance_id="instance")
    group.commits.commit_sync(FIVE, group.timer())
    assert group.broker.commits()[0].group_instance_id == "instance"


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testCommitOffsetOnly",
    "ConsumerCoordinatorTest.testCommitOffsetShouldNotSetInstanceIdIfMemberIdIsUnknown",
)
def test_partitions_chosen_by_the_user_are_committed_without_generation_or_instance():
    group = Group(group_instance_id="instance")
    group.subscriptions.unsubscribe()
    group.subscriptions.assign_from_user([A0])
    group.membership.rebalancing = True
    group.commits.commit_sync(FIVE, group.timer())
    (sent,) = group.broker.commits()
    assert (sent.generation_id_or_member_epoch, sent.member_id, sent.group_instance_id) == (-1, "", None)


# ---- Synchronous -----------------------------------------------------------------------------------------
@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testCommitOffsetSyncNotCoordinator",
    "ConsumerCoordinatorTest.testCommitOffsetSyncCoordinatorNotAvailable",
    "ConsumerCoordinatorTest.testRetryCommitUnknownTopicOrPartition",
)
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "a synchronous commit is retried until its timeout, an asynchronous one never",
)
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "an unknown partition is retried; a too long metadata string fails at once",
)
@pytest.mark.parametrize("code", RETRIABLE)
def test_sync_commit_is_tried_again_after_what_may_go_better(group, code):
    refuse(group, code, code)
    group.commits.commit_sync(FIVE, group.timer())
    assert group.broker.committed == FIVE
    assert len(group.broker.commits()) == 3
    looked_for = code in (NOT_AVAILABLE, NOT_COORDINATOR, TIMED_OUT)
    assert group.membership.failures == [BROKER_ERRORS[code].message] * (2 if looked_for else 0)
    assert group.elapsed_ms() >= 80 + 160, "the back-off must grow"


@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "a synchronous commit is retried until its timeout, an asynchronous one never",
)
def test_sync_commit_gives_up_when_its_time_ends_and_says_why(group):
    refuse(group, *[LOADING] * 100)
    with pytest.raises(KafkaTimeoutError, match=r"a-0 at 5 for group 'readers' within 1000 ms .*node0"):
        group.commits.commit_sync(FIVE, group.timer(1000))
    assert 4 < len(group.broker.commits()) < 12


@pytest.mark.kafka("ConsumerCoordinatorTest.testCommitOffsetSyncWithoutFutureGetsCompleted")
def test_sync_commit_without_an_answer_ends_with_its_time(group):
    group.broker.silent = True
    with pytest.raises(KafkaTimeoutError):
        group.commits.commit_sync(FIVE, group.timer(700))
    assert group.elapsed_ms() == pytest.approx(700, abs=10)


@pytest.mark.kafka("ConsumerCoordinatorTest.testCommitOffsetSyncWithoutFutureGetsCompleted")
def test_sync_commit_without_any_time_is_sent_all_the_same(group):
    with pytest.raises(KafkaTimeoutError):
        group.commits.commit_sync(FIVE, group.timer(0))
    assert group.broker.committed == FIVE


def test_sync_commit_waits_for_a_coordinator(group):
    group.membership.coordinator_failed("test")
    group.membership.lost_lookups = 3
    group.commits.commit_sync(FIVE, group.timer())
    assert group.membership.lookups == 4


@pytest.mark.kafka("ConsumerCoordinatorTest.testCommitOffsetSyncCoordinatorDisconnected")
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "a synchronous commit is retried until its timeout, an asynchronous one never",
)
def test_lost_connection_looks_for_the_coordinator_and_tries_again(group):
    group.broker.prepare_response(OffsetCommitResponse, disconnected=True)
    group.commits.commit_sync(FIVE, group.timer())
    assert len(group.membership.failures) == 1
    assert group.broker.committed == FIVE


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testCommitOffsetMetadataTooLarge",
    "ConsumerCoordinatorTest.testCommitOffsetSyncCallbackWithNonRetriableException",
    "ConsumerCoordinatorTest.testCommitOffsetRequestSyncWithFencedInstanceIdException",
)
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "an unknown partition is retried; a too long metadata string fails at once",
)
@pytest.mark.parametrize(
    ("code", "error"),
    [
        (12, OffsetMetadataTooLargeError),
        (28, InvalidCommitOffsetSizeError),
        (29, TopicAuthorizationFailedError),
        (30, GroupAuthorizationFailedError),
        (FENCED, FencedInstanceIdError),
        (-1, UnknownError),
        (999, UnknownError),
    ],
)
def test_error_that_a_retry_cannot_cure_is_raised_at_once_with_its_place(group, code, error):
    refuse(group, code)
    with pytest.raises(error, match="a" if error is TopicAuthorizationFailedError else "a-0 at 5"):
        group.commits.commit_sync(FIVE, group.timer())
    assert len(group.broker.commits()) == 1


def test_answer_that_leaves_a_partition_out_is_no_success(group):
    group.broker.prepare_response(OffsetCommitResponse(topics=[]))
    with pytest.raises(UnknownError, match="has no result for"):
        group.commits.commit_sync(FIVE, group.timer())


def test_wakeup_ends_a_sync_commit_and_leaves_it_usable(group):
    group.client.wakeup()
    with pytest.raises(WakeupError):
        group.commits.commit_sync(FIVE, group.timer())
    group.commits.commit_sync({A0: OffsetAndMetadata(6)}, group.timer())
    assert group.broker.committed == {A0: OffsetAndMetadata(6)}


# ---- Generations -----------------------------------------------------------------------------------------
@pytest.mark.kafka("ConsumerCoordinatorTest.testCommitOffsetRebalanceInProgress")
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "a commit during a rebalance or of an old generation fails; a late failure leaves the new one intact",
)
def test_commit_while_rebalancing_says_to_poll(group):
    group.membership.rebalancing = True
    with pytest.raises(RebalanceInProgressError, match=r"call poll\(\) until"):
        group.commits.commit_sync(FIVE, group.timer())
    assert group.broker.commits() == []


@pytest.mark.kafka("ConsumerCoordinatorTest.testCommitOffsetRebalanceInProgress")
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "a commit during a rebalance or of an old generation fails; a late failure leaves the new one intact",
)
def test_rebalance_that_the_coordinator_knows_of_has_the_member_join_again(group):
    refuse(group, REBALANCE)
    with pytest.raises(RebalanceInProgressError, match=r"call poll\(\) until"):
        group.commits.commit_sync(FIVE, group.timer())
    assert len(group.membership.rejoins) == 1
    assert group.membership.current == MEMBER


@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "a commit during a rebalance or of an old generation fails; a late failure leaves the new one intact",
)
def test_commit_of_one_who_is_no_member_fails_with_what_to_do(group):
    group.membership.current = NO_GENERATION
    with pytest.raises(CommitFailedError, match=r"poll\(\) joins"):
        group.commits.commit_sync(FIVE, group.timer())
    assert group.broker.commits() == []


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testCommitOffsetIllegalGeneration",
    "ConsumerCoordinatorTest.testCommitOffsetUnknownMemberId",
)
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "a commit during a rebalance or of an old generation fails; a late failure leaves the new one intact",
)
@pytest.mark.parametrize("code", [ILLEGAL_GENERATION, UNKNOWN_MEMBER])
def test_commit_of_a_member_thrown_out_fails_and_resets_it(group, code):
    refuse(group, code)
    with pytest.raises(CommitFailedError, match="max_poll_interval_ms=300000"):
        group.commits.commit_sync(FIVE, group.timer())
    assert group.membership.resets == [(BROKER_ERRORS[code], MEMBER)]


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testCommitOffsetIllegalGenerationWithNewGeneration",
    "ConsumerCoordinatorTest.testCommitOffsetUnknownMemberWithNewGeneration",
    "ConsumerCoordinatorTest.testCommitOffsetFencedInstanceWithRebalancingGeneration",
    "ConsumerCoordinatorTest.testCommitOffsetFencedInstanceWithNewGeneration",
)
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "a commit during a rebalance or of an old generation fails; a late failure leaves the new one intact",
)
@pytest.mark.parametrize("code", [ILLEGAL_GENERATION, UNKNOWN_MEMBER, FENCED])
@pytest.mark.parametrize("rebalancing", [True, False])
def test_late_refusal_of_an_old_generation_leaves_the_new_one_alone(group, code, rebalancing):
    group.broker.silent = True
    callback = RecordingCallback()
    group.commits.commit_async(FIVE, callback)
    group.membership.current = newer = Generation(8, "member-1", "range")
    group.membership.rebalancing = rebalancing
    refuse(group, code)
    group.broker.answer_all()
    group.turn()
    ((_, error),) = callback.outcomes
    assert type(error) is (RebalanceInProgressError if rebalancing else CommitFailedError)
    assert group.membership.current == newer
    group.turn()


def test_group_with_members_refuses_one_who_only_assigned(group):
    group.subscriptions.unsubscribe()
    group.subscriptions.assign_from_user([A0])
    group.membership.current = NO_GENERATION
    refuse(group, UNKNOWN_MEMBER)
    with pytest.raises(CommitFailedError, match=r"assign\(\) cannot commit"):
        group.commits.commit_sync(FIVE, group.timer())
    assert group.membership.resets == []


# ---- Asynchronous ----------------------------------------------------------------------------------------
@pytest.mark.kafka("ConsumerCoordinatorTest.testCommitOffsetMetadataAsync")
def test_async_commit_is_not_waited_for_and_its_callback_runs_in_a_poll(group):
    callback = RecordingCallback()
    group.broker.silent = True
    outcome = group.commits.commit_async(FIVE, callback)
    assert len(group.broker.commits()) == 1, "the request is sent without a poll"
    group.broker.answer_all()
    group.client.poll(group.timer())
    assert outcome.succeeded()
    assert callback.outcomes == []
    group.commits.invoke_completed_callbacks()
    assert callback.outcomes == [(FIVE, None)]


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testCommitOffsetAsyncFailedWithDefaultCallback",
    "ConsumerCoordinatorTest.testCommitOffsetAsyncCoordinatorNotAvailable",
    "ConsumerCoordinatorTest.testCommitOffsetAsyncNotCoordinator",
)
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "a synchronous commit is retried until its timeout, an asynchronous one never",
)
@pytest.mark.parametrize("code", RETRIABLE)
def test_async_commit_is_not_tried_again(group, code):
    refuse(group, code)
    callback = RecordingCallback()
    outcome = group.commits.commit_async(FIVE, callback)
    group.turn()
    ((_, error),) = callback.outcomes
    assert type(error) is RetriableCommitFailedError
    assert type(error.__cause__) is BROKER_ERRORS[code]
    assert outcome.exception() is error
    assert len(group.broker.commits()) == 1


@pytest.mark.kafka("ConsumerCoordinatorTest.testCommitOffsetAsyncDisconnected")
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "a synchronous commit is retried until its timeout, an asynchronous one never",
)
def test_async_commit_over_a_lost_connection_is_worth_a_retry(group):
    group.broker.prepare_response(OffsetCommitResponse, disconnected=True)
    callback = RecordingCallback()
    group.commits.commit_async(FIVE, callback)
    group.turn()
    ((_, error),) = callback.outcomes
    assert (type(error), type(error.__cause__)) == (RetriableCommitFailedError, KafkaConnectionError)


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testAsyncCommitCallbacksInvokedPriorToSyncCommitCompletion",
)
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "callbacks of asynchronous commits run in order, and before a later synchronous commit returns",
)
def test_callbacks_run_in_order_and_before_a_later_sync_commit_returns(group):
    order = []
    group.broker.silent = True
    for number in range(3):
        group.commits.commit_async(
            {A0: OffsetAndMetadata(number)}, lambda offsets, error: order.append(offsets[A0].offset)
        )
    assert order == []
    group.broker.silent = False
    group.broker.answer_all()
    group.commits.commit_sync({A0: OffsetAndMetadata(9)}, group.timer())
    assert order == [0, 1, 2]
    assert group.interceptor.committed == [{A0: OffsetAndMetadata(number)} for number in (0, 1, 2, 9)]


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testEnsureCompletingAsyncCommitsWhenSyncCommitWithoutOffsets",
)
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "callbacks of asynchronous commits run in order, and before a later synchronous commit returns",
)
def test_empty_sync_commit_waits_for_the_asynchronous_ones(group):
    callback = RecordingCallback()
    group.broker.silent = True
    group.commits.commit_async(FIVE, callback)
    with pytest.raises(KafkaTimeoutError):
        group.commits.commit_sync({}, group.timer(100))
    group.broker.answer_all()
    group.commits.commit_sync({}, group.timer(100))
    assert callback.outcomes == [(FIVE, None)]


@pytest.mark.kafka("ConsumerCoordinatorTest.testCommitAsyncWithUserAssignedType")
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "callbacks of asynchronous commits run in order, and before a later synchronous commit returns",
)
def test_async_commits_wait_in_order_for_a_coordinator_that_is_looked_for(group):
    group.membership.coordinator_failed("test")
    group.membership.held_lookups = True
    callback = RecordingCallback()
    outcomes = [group.commits.commit_async({A0: OffsetAndMetadata(n)}, callback) for n in range(3)]
    assert (group.membership.lookups, group.broker.commits()) == (1, [])
    group.membership.end_lookup()
    group.turn()
    assert [offsets[A0].offset for offsets, _ in callback.outcomes] == [0, 1, 2]
    assert all(each.succeeded() for each in outcomes)
    assert group.broker.committed == {A0: OffsetAndMetadata(2)}


@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "callbacks of asynchronous commits run in order, and before a later synchronous commit returns",
)
def test_callbacks_keep_their_order_though_a_later_commit_fails_at_once(group):
    group.broker.silent = True
    callback = RecordingCallback()
    group.commits.commit_async({A0: OffsetAndMetadata(1)}, callback)
    group.membership.coordinator_failed("test")
    group.membership.lost_lookups = 1
    later = group.commits.commit_async({A0: OffsetAndMetadata(2)}, callback)
    assert later.failed()
    group.turn()
    assert callback.outcomes == []
    group.broker.answer_all()
    group.turn()
    assert [offsets[A0].offset for offsets, _ in callback.outcomes] == [1, 2]
    assert [type(error).__name__ for _, error in callback.outcomes] == [
        "NoneType",
        "RetriableCommitFailedError",
    ]


def test_async_commit_without_a_coordinator_fails_as_worth_a_retry(group):
    group.membership.coordinator_failed("test")
    group.membership.lost_lookups = 1
    callback = RecordingCallback()
    group.commits.commit_async(FIVE, callback)
    group.turn()
    ((_, error),) = callback.outcomes
    assert (type(error), type(error.__cause__)) == (RetriableCommitFailedError, CoordinatorNotAvailableError)


def test_async_commit_of_nothing_succeeds_without_a_word(group):
    group.membership.coordinator_failed("test")
    callback = RecordingCallback()
    group.commits.commit_async({}, callback)
    group.turn()
    assert callback.outcomes == [({}, None)]
    assert (group.membership.lookups, group.broker.commits()) == (0, [])


def test_offsets_are_those_of_the_moment_of_the_call(group):
    callback, offsets = RecordingCallback(), dict(FIVE)
    group.commits.commit_async(offsets, callback)
    offsets[A0] = OffsetAndMetadata(99)
    group.turn()
    assert callback.outcomes == [(FIVE, None)]


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testCommitOffsetRequestAsyncWithFencedInstanceIdException",
    "ConsumerCoordinatorTest.testCommitOffsetRequestAsyncAlwaysReceiveFencedException",
)
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "a commit during a rebalance or of an old generation fails; a late failure leaves the new one intact",
)
def test_fenced_instance_is_told_to_the_callback_and_raised_by_all_that_follows(group):
    refuse(group, FENCED)
    callback = RecordingCallback()
    group.commits.commit_async(FIVE, callback)
    with pytest.raises(FencedInstanceIdError, match="another consumer"):
        group.turn()
    assert type(callback.outcomes[0][1]) is FencedInstanceIdError
    for call in (
        group.commits.invoke_completed_callbacks,
        lambda: group.commits.commit_sync(FIVE, group.timer()),
        lambda: group.commits.commit_async(FIVE),
    ):
        with pytest.raises(FencedInstanceIdError):
            call()


@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "callbacks of asynchronous commits run in order, and before a later synchronous commit returns",
)
def test_callback_that_raises_is_heard_of_once_and_those_behind_it_are_called(group):
    callback = RecordingCallback()

    def breaks(offsets, error):
        raise RuntimeError("broken callback")

    group.broker.silent = True
    for each in (breaks, callback):
        group.commits.commit_async(FIVE, each)
    group.broker.silent = False
    group.broker.answer_all()
    with pytest.raises(RuntimeError, match="broken callback"):
        group.turn()
    assert callback.outcomes == []
    group.commits.commit_sync({A0: OffsetAndMetadata(6)}, group.timer())
    assert callback.outcomes == [(FIVE, None)]


def test_callback_may_commit(group):
    callback = RecordingCallback()
    group.commits.commit_async(
        FIVE, lambda *_: group.commits.commit_async({A0: OffsetAndMetadata(6)}, callback)
    )
    group.turn()
    group.turn()
    assert callback.outcomes == [({A0: OffsetAndMetadata(6)}, None)]


def test_interrupted_commit_does_not_hold_up_those_behind_it(group, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    callback = RecordingCallback()
    with monkeypatch.context() as patch:
        patch.setattr(group.client, "send", interrupted)
        with pytest.raises(KeyboardInterrupt):
            group.commits.commit_async(FIVE, callback)
    group.commits.commit_async({A0: OffsetAndMetadata(6)}, callback)
    group.commits.commit_sync({}, group.timer())
    assert [type(error).__name__ for _, error in callback.outcomes] == ["KeyboardInterrupt", "NoneType"]


@pytest.mark.kafka("ConsumerCoordinatorTest.testCommitOffsetAsyncWithDefaultCallback")
def test_commit_without_callback_has_the_default_one():
    callback = RecordingCallback()
    group = Group(default_offset_commit_callback=callback)
    group.commits.commit_async(FIVE)
    group.turn()
    assert callback.outcomes == [(FIVE, None)]


@pytest.mark.kafka("ConsumerCoordinatorTest.testCommitOffsetAsyncFailedWithDefaultCallback")
def test_failure_that_nobody_is_told_of_is_logged(group, caplog):
    refuse(group, 30)
    group.commits.commit_async(FIVE)
    with caplog.at_level(logging.ERROR, "kafkacore.consumer"):
        group.turn()
    assert "commit of" in caplog.text
    assert "GROUP_AUTHORIZATION_FAILED" in caplog.text


# ---- Auto-commit -----------------------------------------------------------------------------------------
def auto_commit(group):
    group.commits.maybe_auto_commit_async(group.clock.monotonic_ms())
    group.turn()


@pytest.mark.kafka("ConsumerCoordinatorTest.testAutoCommitAwaitsInterval")
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "auto-commit runs at its interval, before a revocation and in close, and covers only returned records",
)
def test_auto_commit_comes_when_the_interval_is_over_and_not_before(group):
    group.consumed = FIVE
    assert group.commits.time_to_next_auto_commit_ms(group.clock.monotonic_ms()) == 5000
    group.clock.advance(4999)
    auto_commit(group)
    assert group.broker.committed == {}
    group.clock.advance(1)
    auto_commit(group)
    assert group.broker.committed == FIVE
    group.consumed = {A0: OffsetAndMetadata(6)}
    group.clock.advance(4999)
    auto_commit(group)
    assert group.broker.committed == FIVE
    group.clock.advance(1)
    auto_commit(group)
    assert group.broker.committed == group.consumed


@pytest.mark.kafka("ConsumerCoordinatorTest.testAutoCommitRetryBackoff")
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "auto-commit runs at its interval, before a revocation and in close, and covers only returned records",
)
def test_auto_commit_that_may_go_better_is_tried_again_after_the_back_off(group):
    group.consumed = FIVE
    group.clock.advance(5000)
    refuse(group, LOADING)
    auto_commit(group)
    assert group.commits.time_to_next_auto_commit_ms(group.clock.monotonic_ms()) == 100
    group.clock.advance(100)
    auto_commit(group)
    assert group.broker.committed == FIVE
    assert group.commits.time_to_next_auto_commit_ms(group.clock.monotonic_ms()) == 5000


def test_auto_commit_that_is_refused_for_good_waits_for_its_next_turn(group, caplog):
    group.consumed = FIVE
    group.clock.advance(5000)
    refuse(group, 30)
    with caplog.at_level(logging.WARNING, "kafkacore.consumer"):
        auto_commit(group)
    assert "auto-commit" in caplog.text
    assert group.commits.time_to_next_auto_commit_ms(group.clock.monotonic_ms()) == 5000


def test_auto_commit_that_meets_a_rebalance_says_nothing_and_waits_for_its_next_turn(group, caplog):
    group.consumed = FIVE
    group.clock.advance(5000)
    group.membership.rebalancing = True
    with caplog.at_level(logging.INFO, "kafkacore.consumer"):
        auto_commit(group)
    assert caplog.text == ""
    group.membership.rebalancing = False
    group.clock.advance(5000)
    auto_commit(group)
    assert group.broker.committed == FIVE


@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "auto-commit runs at its interval, before a revocation and in close, and covers only returned records",
)
def test_commit_before_a_revoke_comes_whatever_the_interval(group):
    assert group.commits.auto_commit_now() is None, "there must be nothing to commit"
    group.consumed = FIVE
    outcome = group.commits.auto_commit_now()
    group.turn()
    assert outcome.succeeded()
    assert group.broker.committed == FIVE


@pytest.mark.kafka("ConsumerCoordinatorTest.testAutoCommitDynamicAssignmentRebalance")
def test_new_assignment_begins_the_interval_anew(group):
    group.clock.advance(3000)
    now_ms = group.clock.monotonic_ms()
    group.commits.restart_auto_commit_interval(now_ms)
    assert group.commits.time_to_next_auto_commit_ms(now_ms) == 5000


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testJoinPrepareWithDisableAutoCommit",
    "KafkaConsumerTest.testManualAssignmentChangeWithAutoCommitDisabled",
)
def test_without_auto_commit_nothing_is_committed_by_itself():
    group = Group(enable_auto_commit=False)
    group.consumed = FIVE
    group.clock.advance(1_000_000)
    auto_commit(group)
    assert group.commits.auto_commit_now() is None
    group.commits.auto_commit_sync(group.timer())
    assert group.commits.time_to_next_auto_commit_ms(group.clock.monotonic_ms()) == float("inf")
    assert group.broker.commits() == []


# ---- Close -----------------------------------------------------------------------------------------------
def test_auto_commit_at_the_end_is_waited_for(group):
    group.consumed = FIVE
    refuse(group, LOADING)
    group.commits.auto_commit_sync(group.timer())
    assert group.broker.committed == FIVE


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testCloseCoordinatorNotKnownManualAssignment",
    "ConsumerCoordinatorTest.testCloseCoordinatorNotKnownWithCommits",
    "ConsumerCoordinatorTest.testCloseNoResponseForCommit",
)
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "close commits, then leaves; it is bounded if no coordinator answers; with a timeout of 0 it never waits",
)
@pytest.mark.parametrize("timeout_ms", [0, 500])
def test_auto_commit_at_the_end_is_bounded_and_what_fails_is_logged(group, caplog, timeout_ms):
    group.consumed = FIVE
    group.membership.coordinator_failed("test")
    group.membership.lost_lookups = 10**9
    with caplog.at_level(logging.WARNING, "kafkacore.consumer"):
        group.commits.auto_commit_sync(group.timer(timeout_ms))
    assert "read again" in caplog.text
    assert group.elapsed_ms() == pytest.approx(timeout_ms, abs=10)


def test_broken_callback_does_not_keep_the_end_from_its_way(group, caplog):
    group.commits.commit_async({A0: OffsetAndMetadata(1)}, lambda *_: 1 / 0)
    group.client.poll(group.timer())
    group.consumed = FIVE
    group.commits.auto_commit_sync(group.timer())
    assert "ZeroDivisionError" in caplog.text
    assert group.broker.committed == FIVE


def test_close_waits_for_asynchronous_commits_and_calls_them_back(group):
    callback = RecordingCallback()
    group.membership.coordinator_failed("test")
    group.membership.held_lookups = True
    group.commits.commit_async(FIVE, callback)
    group.membership.end_lookup()
    group.commits.close(group.timer())
    assert callback.outcomes == [(FIVE, None)]


@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "close commits, then leaves; it is bounded if no coordinator answers; with a timeout of 0 it never waits",
)
def test_close_waits_no_longer_than_it_may(group, caplog):
    group.broker.silent = True
    group.commits.commit_async(FIVE)
    with caplog.at_level(logging.WARNING, "kafkacore.consumer"):
        group.commits.close(group.timer(300))
    assert group.elapsed_ms() == pytest.approx(300, abs=10)
    assert "asynchronous commits" in caplog.text
