"""ConsumerCoordinatorTest cases about commits that no other test covers (see docs/PORTED_TESTS.md)."""

import pytest
from model.consumer_cluster import read
from model.fetch_log import FetchLog, simple_batch
from model.group_offsets import Group

from kafkacore.consumer.group.generation import NO_GENERATION
from kafkacore.consumer.listener import ConsumerRebalanceListener
from kafkacore.consumer.offset_reset import OffsetResetStrategy
from kafkacore.errors import CommitFailedError, KafkaConnectionError, RetriableCommitFailedError
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.join_group import JoinGroupRequest
from kafkacore.protocol.generated.leave_group import LeaveGroupRequest
from kafkacore.protocol.generated.offset_commit import OffsetCommitRequest
from kafkacore.structs import OffsetAndMetadata, TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
FIVE = {A0: OffsetAndMetadata(5)}
NOT_AVAILABLE, NOT_COORDINATOR, ILLEGAL_GENERATION, UNKNOWN_MEMBER = 15, 16, 22, 25


@pytest.fixture
def make(make_consumer):
    """Return a function ``make(*topics, **configs)`` that creates a consumer of group "g".

    The partition a-0 has ten records, a-1 five.
    """

    def make(*topics, **configs):
        logs = {A0: FetchLog(simple_batch(0, 10)), A1: FetchLog(simple_batch(0, 5))}
        return make_consumer(logs, *topics, **{"group_id": "g"} | configs)

    return make


def committed(consumer):
    return {tp: kept.offset for tp, kept in consumer.model.coordinator.offsets.committed.items()}


def sent(consumer, *kinds):
    """Return the sent requests of these ``kinds``, in order."""
    return [kind for _, each in consumer.model.requests for kind in kinds if isinstance(each, kind)]


class RecordingListener(ConsumerRebalanceListener):
    def __init__(self):
        self.calls = []

    def on_partitions_revoked(self, revoked):
        self.calls.append(("revoked", set(revoked)))

    def on_partitions_assigned(self, assigned):
        self.calls.append(("assigned", set(assigned)))

    def on_partitions_lost(self, lost):
        self.calls.append(("lost", set(lost)))


# ---- Without a coordinator ---------------------------------------------------------------------------------
@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testAutoCommitAsyncWithUserAssignedType",
    "ConsumerCoordinatorTest.testAutoCommitManualAssignmentCoordinatorUnknown",
    "ConsumerCoordinatorTest.testAutoCommitAfterCoordinatorBackToService",
    "KafkaConsumerTest.verifyNoCoordinatorLookupForManualAssignmentWithSeek",
)
def test_an_auto_commit_looks_for_the_coordinator_and_goes_as_soon_as_it_is_known(make, clock):
    consumer = make()
    consumer.assign([A0])
    consumer.seek(A0, 4)
    consumer.poll(0)
    assert sent(consumer, FindCoordinatorRequest) == []
    clock.advance(5000)
    consumer.model.held.add(FindCoordinatorRequest)
    consumer.poll(0)
    consumer.poll(0)
    assert sent(consumer, FindCoordinatorRequest, OffsetCommitRequest) == [FindCoordinatorRequest]
    consumer.model.held.clear()
    consumer.poll(0)
    assert sent(consumer, FindCoordinatorRequest, OffsetCommitRequest)[1:] == [OffsetCommitRequest]
    consumer.poll(0)
    assert committed(consumer).keys() == {A0}


@pytest.mark.kafka("ConsumerCoordinatorTest.testManyInFlightAsyncCommitsWithCoordinatorDisconnect")
def test_a_thousand_commits_on_their_way_to_a_coordinator_that_is_lost_are_all_called_back():
    group = Group()
    group.broker.silent = True
    outcomes = []
    for number in range(1000):
        group.commits.commit_async({A0: OffsetAndMetadata(number)}, lambda *each: outcomes.append(each))
    group.client.disconnect_async(group.broker.nodes[0])
    group.client.poll_no_wakeup()
    group.commits.invoke_completed_callbacks()
    assert [offsets[A0].offset for offsets, _ in outcomes] == list(range(1000))
    assert {type(error.__cause__) for _, error in outcomes} == {KafkaConnectionError}


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testCoordinatorDisconnectAfterNotCoordinatorError",
    "ConsumerCoordinatorTest.testCoordinatorDisconnectAfterCoordinatorNotAvailableError",
    "ConsumerCoordinatorTest.testCommitOffsetAsyncCoordinatorNotAvailable",
    "ConsumerCoordinatorTest.testCommitOffsetAsyncNotCoordinator",
)
@pytest.mark.parametrize("code", [NOT_COORDINATOR, NOT_AVAILABLE])
def test_a_commit_behind_one_that_found_no_coordinator_fails_with_it(make, code):
    consumer = make("a", enable_auto_commit=False)
    read(consumer)
    answer = consumer.model.coordinator.answer

    def only_the_first(node_id, request):
        if isinstance(request, OffsetCommitRequest):
            consumer.model.held.add(OffsetCommitRequest)
        return answer(node_id, request)

    consumer.model.coordinator.answer = only_the_first
    consumer.model.coordinator.errors[OffsetCommitRequest].append(code)
    consumer.model.held.add(OffsetCommitRequest)
    outcomes = []
    for number in (1, 2):
        consumer.commit_async({A0: OffsetAndMetadata(number)}, lambda *each: outcomes.append(each))
    consumer.model.held.add(FindCoordinatorRequest)
    consumer.model.held.discard(OffsetCommitRequest)
    for _ in range(3):
        consumer.poll(0)
    assert [offsets[A0].offset for offsets, _ in outcomes] == [1, 2]
    assert {type(error) for _, error in outcomes} == {RetriableCommitFailedError}
    assert isinstance(outcomes[1][1].__cause__, KafkaConnectionError)


# ---- Before a rebalance ------------------------------------------------------------------------------------
@pytest.mark.kafka("ConsumerCoordinatorTest.testJoinPrepareAndCommitWithCoordinatorNotAvailable")
def test_a_commit_before_a_rebalance_that_finds_no_coordinator_is_made_at_the_next(make):
    consumer = make("a", auto_commit_interval_ms=60_000)
    read(consumer)
    before = len(sent(consumer, OffsetCommitRequest, FindCoordinatorRequest, JoinGroupRequest))
    consumer.model.coordinator.errors[OffsetCommitRequest].append(NOT_AVAILABLE)
    consumer.model.coordinator.rebalance()
    read(consumer, 5000)
    kinds = sent(consumer, OffsetCommitRequest, FindCoordinatorRequest, JoinGroupRequest)[before:]
    assert kinds[:4] == [OffsetCommitRequest, FindCoordinatorRequest, OffsetCommitRequest, JoinGroupRequest]
    assert committed(consumer) == {A0: 10, A1: 5}


@pytest.mark.kafka("ConsumerCoordinatorTest.testJoinPrepareAndCommitWithUnknownMemberId")
def test_a_commit_before_a_rebalance_that_finds_us_thrown_out_lets_the_partitions_be_lost(make):
    consumer, listener = make(auto_commit_interval_ms=60_000), RecordingListener()
    consumer.subscribe(["a"], listener=listener)
    read(consumer)
    consumer.model.coordinator.errors[OffsetCommitRequest].append(UNKNOWN_MEMBER)
    consumer.model.coordinator.rebalance()
    read(consumer, 5000)
    assert listener.calls == [("assigned", {A0, A1}), ("lost", {A0, A1}), ("assigned", {A0, A1})]
    assert committed(consumer) == {}


# ---- Generations -------------------------------------------------------------------------------------------
@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testCommitOffsetIllegalGenerationShouldResetGenerationId",
    "ConsumerCoordinatorTest.testCommitOffsetUnknownMemberShouldResetToNoGeneration",
)
@pytest.mark.parametrize(("code", "keeps_id"), [(ILLEGAL_GENERATION, True), (UNKNOWN_MEMBER, False)])
def test_a_refused_commit_takes_the_generation_and_only_an_unknown_member_its_id(make, code, keeps_id):
    consumer = make("a", enable_auto_commit=False)
    read(consumer)
    member_id = consumer.group_metadata().member_id
    consumer.model.coordinator.errors[OffsetCommitRequest].append(code)
    with pytest.raises(CommitFailedError):
        consumer.commit(FIVE)
    assert consumer.group_metadata()[1:3] == (-1, member_id if keeps_id else "")


@pytest.mark.kafka(
    "ConsumerCoordinatorTest.testCommitOffsetIllegalGenerationWithResetGeneration",
    "ConsumerCoordinatorTest.testCommitOffsetUnknownMemberWithResetGeneration",
)
@pytest.mark.parametrize("code", [ILLEGAL_GENERATION, UNKNOWN_MEMBER])
def test_a_refusal_that_comes_when_there_is_no_generation_any_more_resets_nothing(code):
    group = Group()
    group.broker.silent = True
    outcomes = []
    group.commits.commit_async(FIVE, lambda *each: outcomes.append(each))
    group.membership.current = NO_GENERATION
    group.broker.errors[OffsetCommitRequest].append(code)
    group.broker.answer_all()
    group.turn()
    ((_, error),) = outcomes
    assert isinstance(error, CommitFailedError)
    assert group.membership.resets == []


@pytest.mark.kafka("ConsumerCoordinatorTest.testCommitAfterLeaveGroup")
def test_who_has_left_and_chosen_its_partitions_commits_as_no_member(make):
    consumer = make("a", enable_auto_commit=False)
    read(consumer)
    consumer.unsubscribe()
    consumer.assign([A0])
    consumer.commit(FIVE)
    (commit,) = consumer.model.requests_of(OffsetCommitRequest)
    assert (commit.generation_id_or_member_epoch, commit.member_id) == (-1, "")
    assert committed(consumer) == {A0: 5}


# ---- Other cases -------------------------------------------------------------------------------------------
@pytest.mark.kafka("ConsumerCoordinatorTest.testNoCoordinatorDiscoveryIfPartitionAwaitingReset")
def test_partitions_that_are_reset_ask_for_no_committed_offset():
    group = Group()
    group.membership.coordinator_failed("test")
    group.subscriptions.unsubscribe()
    group.subscriptions.assign_from_user([A0])
    group.subscriptions.request_offset_reset(A0, OffsetResetStrategy.EARLIEST)
    assert group.offsets.init_positions()
    assert group.membership.lookups == 0
    assert group.subscriptions.is_offset_reset_needed(A0)


@pytest.mark.kafka("ConsumerCoordinatorTest.testCloseManualAssignment")
def test_who_chose_its_partitions_commits_when_it_closes_and_leaves_nothing(make):
    consumer = make()
    consumer.assign([A0])
    read(consumer)
    consumer.close()
    assert committed(consumer) == {A0: 10}
    assert sent(consumer, LeaveGroupRequest, JoinGroupRequest) == []
