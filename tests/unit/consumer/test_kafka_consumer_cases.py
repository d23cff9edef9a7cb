"""KafkaConsumerTest cases about groups that no other test covers (see docs/PORTED_TESTS.md)."""

import pytest
from model.consumer_cluster import read
from model.fetch_log import FetchLog, simple_batch

from kafkacore.errors import SaslAuthenticationFailedError
from kafkacore.protocol.generated.fetch import FetchRequest
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.heartbeat import HeartbeatRequest
from kafkacore.protocol.generated.join_group import JoinGroupRequest
from kafkacore.protocol.generated.sync_group import SyncGroupRequest
from kafkacore.structs import OffsetAndMetadata, TopicPartition

A0, B0, C0 = (TopicPartition(topic, 0) for topic in "abc")
NOT_AVAILABLE = 15


@pytest.fixture
def make(make_consumer):
    """Return a function ``make(*topics, **configs)`` that creates a consumer of group "g".

    The topics a, b and c have ten records each.
    """

    def make(*topics, **configs):
        logs = {tp: FetchLog(simple_batch(0, 10)) for tp in (A0, B0, C0)}
        return make_consumer(logs, *topics, **{"group_id": "g"} | configs)

    return make


def committed(consumer):
    return {tp: kept.offset for tp, kept in consumer.model.coordinator.offsets.committed.items()}


@pytest.mark.kafka("KafkaConsumerTest.verifyHeartbeatSentWhenFetchedDataReady")
def test_polls_that_find_their_records_waiting_beat_too(make, clock):
    consumer = make("a", heartbeat_interval_ms=3000)
    for expected in range(10):
        assert read(consumer, max_records=1) == {A0: [expected]}
        clock.advance(1000)
    assert len(consumer.model.requests_of(HeartbeatRequest)) >= 2


@pytest.mark.kafka(
    "KafkaConsumerTest.verifyPollTimesOutDuringMetadataUpdate",
    "KafkaConsumerTest.testPollSendsRequestToJoin",
)
def test_subscribing_asks_nobody_and_nothing_is_fetched_before_the_group_is_joined(make):
    consumer = make("a")
    assert consumer.model.requests == []
    consumer.model.held.add(SyncGroupRequest)
    for _ in range(20):
        assert consumer.poll(0) == {}
    assert consumer.model.requests_of(JoinGroupRequest)
    assert consumer.model.requests_of(FetchRequest) == []
    consumer.model.held.clear()
    assert read(consumer) == {A0: list(range(10))}


@pytest.mark.kafka(
    "KafkaConsumerTest.verifyNoCoordinatorLookupForManualAssignmentWithOffsetCommit",
    "KafkaConsumerTest.testResetToCommittedOffset",
    "KafkaConsumerTest.testCommitsFetchedDuringAssign",
    "KafkaConsumerTest.testNoCommittedOffsets",
)
def test_who_chose_its_partitions_finds_a_coordinator_that_was_not_there_and_commits(make):
    consumer = make(enable_auto_commit=False)
    consumer.model.coordinator.offsets.committed[A0] = OffsetAndMetadata(4, "")
    consumer.model.coordinator.errors[FindCoordinatorRequest].append(NOT_AVAILABLE)
    consumer.assign([A0])
    assert read(consumer) == {A0: list(range(4, 10))}
    consumer.commit()
    assert consumer.committed(A0) == 10
    consumer.assign([A0, B0])
    assert consumer.committed(A0) == 10
    assert consumer.committed(B0) is None
    consumer.commit({B0: OffsetAndMetadata(2, "")})
    assert consumer.committed(B0) == 2


@pytest.mark.kafka(
    "KafkaConsumerTest.testRegexSubscription",
    "KafkaConsumerTest.testChangingRegexSubscription",
)
def test_another_pattern_takes_the_place_of_the_one_before(make):
    consumer = make()
    consumer.subscribe(pattern="a")
    assert read(consumer) == {A0: list(range(10))}
    consumer.subscribe(pattern="b")
    assert read(consumer) == {B0: list(range(10))}
    assert consumer.subscription() == {"b"}
    assert consumer.assignment() == {B0}


@pytest.mark.kafka(
    "KafkaConsumerTest.testSubscriptionChangesWithAutoCommitEnabled",
    "KafkaConsumerTest.testSubscriptionChangesWithAutoCommitDisabled",
)
@pytest.mark.parametrize("auto_commit", [True, False])
def test_another_subscription_is_another_assignment_with_the_next_poll(make, auto_commit):
    consumer = make("a", "b", enable_auto_commit=auto_commit)
    assert consumer.subscription() == {"a", "b"}
    assert consumer.assignment() == set()
    assert read(consumer).keys() == {A0, B0}
    assert consumer.assignment() == {A0, B0}
    consumer.subscribe(["a", "c"])
    assert consumer.subscription() == {"a", "c"}
    assert consumer.assignment() == {A0, B0}
    # Without a commit, a-0 is read from the start again: an eager rebalance revokes all partitions.
    assert read(consumer) == {C0: list(range(10))} | ({} if auto_commit else {A0: list(range(10))})
    assert consumer.assignment() == {A0, C0}
    assert committed(consumer) == ({A0: 10, B0: 10} if auto_commit else {})
    consumer.unsubscribe()
    assert consumer.subscription() in (None, set())
    assert consumer.assignment() == set()
    consumer.close()
    assert committed(consumer) == ({A0: 10, B0: 10, C0: 10} if auto_commit else {})


@pytest.mark.kafka(
    "KafkaConsumerTest.testPollAuthenticationFailure",
    "KafkaConsumerTest.testCommitSyncAuthenticationFailure",
    "KafkaConsumerTest.testCommittedAuthenticationFailure",
)
@pytest.mark.parametrize("call", ["commit", "committed", "poll"])
def test_an_authentication_that_failed_is_raised_by_every_call_that_needs_the_coordinator(
    make, monkeypatch, call
):
    consumer = make("a") if call == "poll" else make()
    if call != "poll":
        consumer.assign([A0])
    error = SaslAuthenticationFailedError("wrong password")
    monkeypatch.setattr(consumer.network, "authentication_error", lambda node: error)
    monkeypatch.setattr(consumer.network, "least_loaded_node", lambda now_ms: consumer.model.nodes[0])
    consumer.model.down.add(0)
    calls = {
        "commit": lambda: consumer.commit({A0: OffsetAndMetadata(1, "")}),
        "committed": lambda: consumer.committed(A0),
        "poll": lambda: consumer.poll(1000),
    }
    with pytest.raises(SaslAuthenticationFailedError, match="wrong password"):
        calls[call]()
