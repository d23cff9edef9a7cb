"""CommittedOffsets: a group's committed offsets, and the positions derived from them."""

from __future__ import annotations

import pytest
from model.group_offsets import GROUP, MEMBER, Group

from kafkacore.consumer.group.generation import Generation
from kafkacore.consumer.subscription_state import FetchPosition
from kafkacore.errors import (
    GroupAuthorizationFailedError,
    KafkaError,
    KafkaTimeoutError,
    TopicAuthorizationFailedError,
    UnknownError,
    WakeupError,
)
from kafkacore.protocol import ApiKey
from kafkacore.protocol.generated.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kafkacore.structs import OffsetAndMetadata, TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
FIVE = OffsetAndMetadata(5, "note", 0)
LOADING, NOT_AVAILABLE, NOT_COORDINATOR, UNSTABLE, UNKNOWN_TOPIC_ID = 14, 15, 16, 88, 100


@pytest.fixture
def group():
    return Group()


def asked(group):
    return group.broker.requests_of(OffsetFetchRequest)


# ---- Committed offsets for the application ---------------------------------------------------------------
@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testFetchCommittedOffsets",
    "ConsumerCoordinatorTest.testNoThrowWhenStableFlagIsSupported",
)
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "a lookup of committed offsets waits while a transaction is open; without a commit it returns none",
)
@pytest.mark.parametrize("version", range(1, 11))
def test_committed_offsets_are_read_in_every_version(version):
    group = Group({ApiKey.OFFSET_FETCH: version})
    group.broker.committed = {A0: FIVE, B0: OffsetAndMetadata(1)}
    found = group.offsets.fetch_committed({A0, A1, B0}, group.timer())
    epoch = 0 if version >= 5 else -1
    assert found == {A0: FIVE._replace(leader_epoch=epoch), A1: None, B0: OffsetAndMetadata(1)}
    (sent,) = asked(group)
    assert sent.version == version
    assert sent.message.require_stable is (version >= 7)


def test_topic_of_unknown_id_is_asked_for_by_name(group):
    group.broker.topics["c"] = 1
    place = TopicPartition("c", 0)
    assert group.offsets.fetch_committed({place}, group.timer()) == {place: None}
    assert asked(group)[0].version == 9


def test_no_partitions_are_not_asked_for(group):
    assert group.offsets.fetch_committed(set(), group.timer()) == {}
    assert asked(group) == []


@pytest.mark.kafka("ConsumerCoordinatorTest.testRefreshOffsetRetriableErrorCoordinatorLookup")
@pytest.mark.parametrize("code", [LOADING, NOT_AVAILABLE, NOT_COORDINATOR])
def test_coordinator_that_is_not_ready_is_asked_again(group, code):
    group.broker.committed[A0] = FIVE
    group.broker.group_errors.extend([code, code])
    assert group.offsets.fetch_committed({A0}, group.timer()) == {A0: FIVE}
    assert len(group.membership.failures) == (0 if code == LOADING else 2)


@pytest.mark.kafka("ConsumerCoordinatorTest.testNoThrowWhenStableFlagIsSupported")
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "a lookup of committed offsets waits while a transaction is open; without a commit it returns none",
)
@pytest.mark.parametrize("code", [UNSTABLE, UNKNOWN_TOPIC_ID])
def test_offset_of_an_open_transaction_is_waited_for(group, code):
    group.broker.committed[A0] = FIVE
    group.broker.errors[OffsetFetchRequest].extend([code, code])
    assert group.offsets.fetch_committed({A0}, group.timer()) == {A0: FIVE}
    assert len(asked(group)) == 3


@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "a lookup of committed offsets waits while a transaction is open; without a commit it returns none",
)
def test_offset_that_stays_unstable_is_a_time_out_that_names_the_cause(group):
    group.broker.errors[OffsetFetchRequest].extend([UNSTABLE] * 100)
    with pytest.raises(KafkaTimeoutError, match="group 'readers' within 900 ms") as raised:
        group.offsets.fetch_committed({A0}, group.timer(900))
    assert "UNSTABLE_OFFSET_COMMIT" in str(raised.value.__cause__)
    assert group.elapsed_ms() == pytest.approx(900, abs=10)


@pytest.mark.kafka("ConsumerCoordinatorTest.testRefreshOffsetsGroupNotAuthorized")
def test_group_without_permission_is_refused_at_once(group):
    group.broker.group_errors.append(30)
    with pytest.raises(GroupAuthorizationFailedError, match="readers"):
        group.offsets.fetch_committed({A0}, group.timer())


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testTopicAuthorizationFailedInOffsetFetch",
    "ConsumerCoordinatorTest.testRefreshOffsetUnknownTopicOrPartition",
)
@pytest.mark.parametrize(
    ("code", "error"), [(29, TopicAuthorizationFailedError), (3, KafkaError), (-1, UnknownError)]
)
def test_error_of_a_partition_is_raised_with_its_place(group, code, error):
    group.broker.errors[OffsetFetchRequest].append(code)
    with pytest.raises(error, match="a"):
        group.offsets.fetch_committed({A0}, group.timer())
    assert len(asked(group)) == 1


@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "a lookup of committed offsets waits while a transaction is open; without a commit it returns none",
)
@pytest.mark.parametrize(
    "answer",
    [
        OffsetFetchResponse(),
        OffsetFetchResponse(groups=[OffsetFetchResponse.OffsetFetchResponseGroup(group_id="another")]),
        OffsetFetchResponse(groups=[OffsetFetchResponse.OffsetFetchResponseGroup(group_id="readers")]),
    ],
)
def test_answer_that_leaves_something_out_does_not_mean_that_nothing_is_committed(group, answer):
    group.broker.prepare_response(answer)
    with pytest.raises(UnknownError, match="has no result for"):
        group.offsets.fetch_committed({A0}, group.timer())


@pytest.mark.kafka("ConsumerCoordinatorTest.testRefreshOffsetRetriableErrorCoordinatorLookup")
def test_lost_connection_looks_for_the_coordinator_and_asks_again(group):
    group.broker.committed[A0] = FIVE
    group.broker.prepare_response(OffsetFetchResponse, disconnected=True)
    assert group.offsets.fetch_committed({A0}, group.timer()) == {A0: FIVE}
    assert len(group.membership.failures) == 1


def test_wakeup_ends_the_wait(group):
    group.client.wakeup()
    with pytest.raises(WakeupError):
        group.offsets.fetch_committed({A0}, group.timer())


# ---- Initial positions -----------------------------------------------------------------------------------
def init(group):
    """Run turns as a poll does until all positions are initialized."""
    for _ in range(50):
        if group.offsets.init_positions():
            return
        group.turn(50)
    raise AssertionError("no positions after 50 turns")


def assign(group, *partitions):
    group.subscriptions.assign_from_subscribed(partitions)


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testRefreshOffset",
    "ConsumerCoordinatorTest.testRefreshOffsetWithNoFetchableOffsets",
)
def test_partitions_begin_where_the_group_has_come_to_and_those_without_stay_open(group):
    assign(group, A0, A1)
    group.broker.committed[A0] = FIVE
    init(group)
    assert group.subscriptions.position(A0) == FetchPosition(5, 0)
    assert group.subscriptions.initializing_partitions() == {A1}


@pytest.mark.kafka("ConsumerCoordinatorTest.testNoCoordinatorDiscoveryIfPositionsKnown")
def test_all_positions_known_asks_nobody(group):
    assign(group, A0)
    group.subscriptions.seek(A0, FetchPosition(1))
    assert group.offsets.init_positions()
    assert asked(group) == []


def test_question_is_asked_once_however_often_it_is_polled_for(group):
    assign(group, A0)
    group.broker.committed[A0] = FIVE
    group.broker.silent = True
    for _ in range(5):
        assert not group.offsets.init_positions()
        group.turn()
    assert len(asked(group)) == 1
    group.broker.answer_all()
    group.turn()
    assert group.offsets.init_positions()
    assert group.subscriptions.position(A0) == FetchPosition(5, 0)


def test_answer_for_another_assignment_or_generation_is_dropped(group):
    group.broker.committed = {A0: FIVE, A1: FIVE}
    group.broker.silent = True
    for partitions, generation in (([A0], 7), ([A0, A1], 7), ([A0, A1], 8)):
        assign(group, *partitions)
        group.membership.current = Generation(generation, MEMBER.member_id, "range")
        assert not group.offsets.init_positions()
        group.turn()
    assert len(asked(group)) == 3
    group.broker.silent = False
    group.broker.answer_all()
    init(group)
    assert group.subscriptions.initializing_partitions() == set()


def test_seek_meanwhile_is_not_undone(group):
    assign(group, A0)
    group.broker.committed[A0] = FIVE
    group.broker.silent = True
    assert not group.offsets.init_positions()
    group.subscriptions.seek(A0, FetchPosition(77))
    group.broker.answer_all()
    group.turn()
    assert group.offsets.init_positions()
    assert group.subscriptions.position(A0) == FetchPosition(77)


@pytest.mark.kafka("ConsumerCoordinatorTest.testRefreshOffsetWithPendingTransactions")
@pytest.mark.behaviour(
    "ConsumerCoordinator",
    "a lookup of committed offsets waits while a transaction is open; without a commit it returns none",
)
def test_unstable_offsets_hold_positions_back_with_growing_pauses(group):
    assign(group, A0)
    group.broker.committed[A0] = FIVE
    group.broker.errors[OffsetFetchRequest].extend([UNSTABLE] * 4)
    init(group)
    assert group.subscriptions.position(A0) == FetchPosition(5, 0)
    assert len(asked(group)) == 5
    assert group.elapsed_ms() >= 80 + 160 + 320 + 640


@pytest.mark.kafka("ConsumerCoordinatorTest.testRefreshOffsetUnknownTopicOrPartition")
def test_error_that_a_retry_cannot_cure_is_raised_by_the_poll_and_asked_again_by_the_next(group):
    assign(group, A0)
    group.broker.committed[A0] = FIVE
    group.broker.group_errors.append(30)
    with pytest.raises(GroupAuthorizationFailedError):
        init(group)
    init(group)
    assert group.subscriptions.position(A0) == FetchPosition(5, 0)


@pytest.mark.kafka("ConsumerCoordinatorTest.testRefreshOffsetWithValidation")
def test_committed_offset_of_an_old_leader_epoch_is_validated_before_it_is_read_from(group):
    group.broker.metadata.update_partition_leadership({A0: (0, 4)}, [])
    assign(group, A0, A1)
    group.broker.committed = {A0: OffsetAndMetadata(5, "", 3), A1: OffsetAndMetadata(6, "", -1)}
    init(group)
    group.validator.notice_new_leaders()
    now_ms = group.clock.monotonic_ms()
    assert group.subscriptions.partitions_needing_validation(now_ms) == {A0: FetchPosition(5, 3)}
    assert group.subscriptions.fetchable_partitions() == [A1]


def test_committed_offset_of_an_epoch_that_is_news_asks_for_metadata(group):
    assign(group, A0)
    group.broker.committed[A0] = OffsetAndMetadata(5, "", 9)
    before = group.broker.metadata.update_version
    init(group)
    group.broker.poll_until(lambda: group.broker.metadata.update_version > before)
    assert group.subscriptions.position(A0) == FetchPosition(5, 9)


def test_coordinator_that_is_unknown_is_looked_for_without_waiting(group):
    assign(group, A0)
    group.membership.coordinator_failed("test")
    group.membership.lost_lookups = 2
    assert not group.offsets.init_positions()
    assert group.elapsed_ms() == 0
    init(group)
    assert group.membership.lookups == 3


@pytest.mark.parametrize("version", [5, 9])
def test_errors_of_partitions_that_were_not_asked_for_are_ignored(version):
    group = Group({ApiKey.OFFSET_FETCH: version})
    shape = OffsetFetchResponse
    partitions = [(0, 0, 5), (7, 29, -1), (-1, 3, -1)]
    if version >= 8:
        answered = [
            shape.OffsetFetchResponsePartitions(
                partition_index=number, committed_offset=offset, error_code=code, metadata=""
            )
            for number, code, offset in partitions
        ]
        topic = shape.OffsetFetchResponseTopics(name="a", partitions=answered)
        response = shape(groups=[shape.OffsetFetchResponseGroup(group_id=GROUP, topics=[topic])])
    else:
        old = [
            shape.OffsetFetchResponsePartition(
                partition_index=number, committed_offset=offset, error_code=code, metadata=""
            )
            for number, code, offset in partitions
        ]
        response = shape(topics=[shape.OffsetFetchResponseTopic(name="a", partitions=old)])
    group.broker.prepare_response(response)
    assert group.offsets.fetch_committed({A0}, group.timer()) == {A0: OffsetAndMetadata(5, "", -1)}
