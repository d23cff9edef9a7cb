"""How a Fetcher handles errors, preferred replicas and stale responses.

The cases follow Kafka's FetcherTest and FetchCollectorTest.
"""

import struct

import pytest
from model.fetch_log import FetchLog, simple_batch
from model.fetching import collect, fetch, fetch_requests

from kafkacore.consumer.offset_fetcher import OffsetFetcher
from kafkacore.consumer.offset_reset import OffsetResetStrategy
from kafkacore.consumer.subscription_state import FetchPosition
from kafkacore.errors import (
    CorruptRecordError,
    FencedLeaderEpochError,
    FetchSessionIdNotFoundError,
    InconsistentTopicIdError,
    KafkaStorageError,
    NotLeaderForPartitionError,
    OffsetNotAvailableError,
    OffsetOutOfRangeError,
    ReplicaNotAvailableError,
    SaslAuthenticationFailedError,
    TopicAuthorizationFailedError,
    UnknownError,
    UnknownLeaderEpochError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol.generated.fetch import FetchRequest, FetchResponse
from kafkacore.structs import IsolationLevel, TopicPartition

A0, A1, A2, A3 = (TopicPartition("a", number) for number in range(4))
EARLIEST, NONE = OffsetResetStrategy.EARLIEST, OffsetResetStrategy.NONE
OF_STALE_METADATA = [
    NotLeaderForPartitionError,
    ReplicaNotAvailableError,
    KafkaStorageError,
    FencedLeaderEpochError,
    OffsetNotAvailableError,
    UnknownTopicOrPartitionError,
    UnknownTopicIdError,
    InconsistentTopicIdError,
]


def nodes_asked(parts):
    return [node_id for node_id, request in parts.cluster.requests if isinstance(request, FetchRequest)]


def prefer(parts, node_id, lease_ms=1000):
    parts.subscriptions.update_preferred_read_replica(A0, node_id, parts.clock.monotonic_ms() + lease_ms)


def preferred(parts):
    return parts.subscriptions.preferred_read_replica(A0, parts.clock.monotonic_ms())


# ---- Partition errors --------------------------------------------------------------------------------------
@pytest.mark.kafka(
    "FetcherTest.testFetchError",
    "FetcherTest.testHandleFetchResponseError",
    "FetcherTest.testFetchErrorShouldClearPreferredReadReplica",
    "FetchCollectorTest.testFetchWithMetadataRefreshErrors",
)
@pytest.mark.behaviour(
    "Fetcher",
    "an error for a stale leader refreshes the metadata, and the new leader in the response is used",
)
@pytest.mark.parametrize("error", OF_STALE_METADATA)
def test_stale_metadata_are_refreshed_the_replica_forgotten_and_the_position_kept(make_fetcher, clock, error):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 2))}, node_count=2)
    prefer(parts, 1)
    parts.cluster.errors["fetch", A0].append(error.errno)
    fetch(parts)
    version = parts.metadata.update_version
    assert collect(parts) == {}
    assert preferred(parts) is None
    parts.client.poll_no_wakeup()
    assert parts.metadata.update_version > version
    assert fetch(parts) == 0, "the back-off has not elapsed yet"
    clock.advance(100)
    fetch(parts)
    assert nodes_asked(parts) == [1, 0]
    assert collect(parts) == {A0: [0, 1]}


@pytest.mark.kafka(
    "FetcherTest.testHandleFetchResponseError",
    "FetchCollectorTest.testFetchWithUnknownLeaderEpoch",
    "FetchCollectorTest.testFetchWithUnknownServerError",
)
@pytest.mark.parametrize("error", [UnknownLeaderEpochError, UnknownError])
def test_errors_of_a_broker_that_is_not_ready_are_waited_for(make_fetcher, clock, error):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 2))})
    parts.cluster.errors["fetch", A0].append(error.errno)
    fetch(parts)
    assert collect(parts) == {}
    assert fetch(parts) == 0
    clock.advance(100)
    fetch(parts)
    assert collect(parts) == {A0: [0, 1]}


@pytest.mark.kafka(
    "FetcherTest.testCorruptMessageError",
    "FetchCollectorTest.testFetchWithCorruptMessage",
)
def test_log_that_its_broker_calls_corrupt_is_raised_with_its_place(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 2))})
    parts.cluster.errors["fetch", A0].append(CorruptRecordError.errno)
    fetch(parts)
    with pytest.raises(CorruptRecordError) as raised:
        collect(parts)
    assert (raised.value.topic_partition, raised.value.offset) == (A0, 0)
    assert parts.subscriptions.position(A0).offset == 0


@pytest.mark.kafka(
    "FetcherTest.testFetchRequestInternalError",
    "FetchCollectorTest.testErrorInInitialize",
)
@pytest.mark.behaviour(
    "Fetcher",
    "earlier records come first; then every poll raises the corrupt batch with its offset until a seek",
)
@pytest.mark.behaviour(
    "Fetcher",
    "a response without a whole batch is an error (before Fetch 3: a record larger than the limit)",
)
@pytest.mark.parametrize("shape", ["half", "a few bytes", "a length of 2 GiB"])
def test_response_without_a_whole_batch_is_an_error_until_a_seek(make_fetcher, monkeypatch, shape):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 50))})
    log = parts.cluster.logs[A0]
    whole = log.read(0)
    wrong = {
        "half": whole[: len(whole) // 2],
        "a few bytes": whole[:7],
        "a length of 2 GiB": struct.pack(">qi", 0, 2**31 - 1) + whole[12:],
    }[shape]
    monkeypatch.setattr(log, "read", lambda offset, max_bytes: wrong)
    fetch(parts)
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match=f"{len(wrong)} bytes but no complete batch") as raised:
            collect(parts)
        assert (raised.value.topic_partition, raised.value.offset) == (A0, 0)
        assert fetch(parts) == 0
    monkeypatch.undo()
    parts.subscriptions.seek(A0, FetchPosition(10))
    collect(parts)
    fetch(parts)
    assert collect(parts)[A0][0] == 10


@pytest.mark.kafka(
    "FetcherTest.testUnauthorizedTopic",
    "FetcherTest.testCompletedFetchRemoval",
    "FetchCollectorTest.testErrorInInitialize",
    "FetchCollectorTest.testFetchWithTopicAuthorizationFailed",
)
@pytest.mark.behaviour("Fetcher", "an error in one partition loses no records of others")
def test_error_without_records_is_raised_once_and_those_with_records_come_round_it(make_fetcher):
    """Follow Kafka's testCompletedFetchRemoval."""
    parts = make_fetcher({tp: FetchLog(simple_batch(0, 3)) for tp in (A1, A0, A2, A3)}, reset=NONE)
    parts.cluster.errors["fetch", A0].append(OffsetOutOfRangeError.errno)
    parts.cluster.errors["fetch", A2].append(TopicAuthorizationFailedError.errno)
    fetch(parts)
    assert collect(parts) == {A1: [0, 1, 2]}
    with pytest.raises(OffsetOutOfRangeError) as raised:
        collect(parts)
    assert raised.value.partitions == {A0: 0}
    with pytest.raises(TopicAuthorizationFailedError, match="'a'"):
        collect(parts)
    assert collect(parts) == {A3: [0, 1, 2]}
    assert collect(parts) == {}


@pytest.mark.kafka("FetcherTest.testSeekBeforeException")
def test_error_behind_records_comes_with_the_next_collect_unless_a_seek_makes_it_stale(make_fetcher):
    """Follow Kafka's testSeekBeforeException."""
    parts = make_fetcher({tp: FetchLog(simple_batch(0, 3)) for tp in (A0, A1)}, reset=NONE)
    parts.cluster.errors["fetch", A1].append(OffsetOutOfRangeError.errno)
    fetch(parts)
    assert collect(parts, 2) == {A0: [0, 1]}
    assert collect(parts, 2) == {A0: [2]}
    parts.subscriptions.seek(A1, FetchPosition(1))
    assert collect(parts) == {}
    fetch(parts)
    assert collect(parts) == {A1: [1, 2]}


@pytest.mark.behaviour("ConsumerNetworkClient", "a node whose authentication failed is not retried at once")
def test_authentication_that_failed_is_raised_and_not_passed_over(make_fetcher, monkeypatch):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 3))})
    parts.cluster.down.add(0)
    parts.network.failed.add(0)
    assert parts.fetcher.send_fetches() == 0
    error = SaslAuthenticationFailedError("no")
    monkeypatch.setattr(parts.network, "authentication_error", lambda node: error)
    with pytest.raises(SaslAuthenticationFailedError):
        parts.fetcher.send_fetches()


# ---- Preferred replicas (KIP-392) --------------------------------------------------------------------------
@pytest.mark.kafka("FetcherTest.testPreferredReadReplica")
@pytest.mark.behaviour(
    "Fetcher",
    "the preferred replica is used until an error, a disconnect, its expiry or a new leader",
)
def test_preferred_replica_is_given_back_after_its_time(make_fetcher, clock):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 2))}, node_count=2, metadata_max_age_ms=5000)
    parts.cluster.preferred = {A0: 1}
    for _ in range(2):
        fetch(parts)
        collect(parts)
    clock.advance(4000)
    parts.cluster.logs[A0].append(simple_batch(2, 1))
    fetch(parts)
    collect(parts)
    clock.advance(1001)
    fetch(parts)
    assert nodes_asked(parts) == [0, 1, 1, 0]


@pytest.mark.kafka("SubscriptionStateTest.testPreferredReadReplicaLease")
def test_naming_the_same_replica_again_does_not_prolong_its_time(make_fetcher, clock):
    parts = make_fetcher({A0: FetchLog()}, node_count=2)
    prefer(parts, 1, lease_ms=1000)
    clock.advance(900)
    prefer(parts, 1, lease_ms=1000)
    clock.advance(200)
    assert preferred(parts) is None


@pytest.mark.behaviour(
    "Fetcher",
    "the preferred replica is used until an error, a disconnect, its expiry or a new leader",
)
@pytest.mark.parametrize("reason", ["unknown", "offline"])
def test_replica_that_is_not_there_is_not_asked_but_the_leader(make_fetcher, reason):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 2))}, node_count=2)
    if reason == "offline":
        parts.cluster.offline[A0].add(1)
    prefer(parts, 1 if reason == "offline" else 7)
    before = parts.metadata.update_requests
    fetch(parts)
    assert nodes_asked(parts) == [0]
    assert preferred(parts) is None
    assert parts.metadata.update_requests > before or parts.metadata.update_version > 1


@pytest.mark.behaviour(
    "Fetcher",
    "the preferred replica is used until an error, a disconnect, its expiry or a new leader",
)
def test_new_leader_has_its_own_say_about_replicas(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 2))}, node_count=2)
    parts.subscriptions.maybe_validate_position(A0, 0)
    prefer(parts, 1)
    parts.subscriptions.maybe_validate_position(A0, 0)
    assert preferred(parts) == 1
    parts.subscriptions.maybe_validate_position(A0, 1)
    assert preferred(parts) is None


@pytest.mark.kafka(
    "FetcherTest.testFetchDisconnectedShouldNotClearPreferredReadReplicaIfUnassigned",
    "FetchCollectorTest.testCollectFetchInitializationWithUpdatePreferredReplicaOnNotAssignedPartition",
    "SubscriptionStateTest.testTryUpdatingPreferredReadReplica",
)
def test_lost_fetch_of_a_partition_given_up_meanwhile_is_nobodys(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 2))}, node_count=2)
    prefer(parts, 1)
    parts.cluster.held = {FetchRequest}
    fetch(parts)
    parts.subscriptions.assign_from_user([A1])
    parts.cluster.down = {1}
    parts.client.poll_no_wakeup()
    assert preferred(parts) is None


# ---- Stale responses ---------------------------------------------------------------------------------------
@pytest.mark.kafka(
    "FetcherTest.testFetchDuringEagerRebalance",
    "FetcherTest.testFetchDuringCooperativeRebalance",
)
@pytest.mark.parametrize("kept", [set(), {A1}])
def test_answer_from_before_a_rebalance_is_dropped_for_what_was_taken_away(make_fetcher, kept):
    parts = make_fetcher({tp: FetchLog(simple_batch(0, 3)) for tp in (A0, A1)})
    parts.subscriptions.unsubscribe()
    parts.subscriptions.subscribe(["a"])
    parts.subscriptions.assign_from_subscribed([A0, A1])
    for tp in (A0, A1):
        parts.subscriptions.seek(tp, FetchPosition(0))
    parts.fetcher.send_fetches()
    parts.subscriptions.assign_from_subscribed(kept)
    parts.subscriptions.assign_from_subscribed([A0, A1])
    parts.client.poll_no_wakeup()
    parts.client.poll_no_wakeup()
    assert set(collect(parts)) == kept


@pytest.mark.kafka(
    "FetchCollectorTest.testCollectFetchInitializationWithNullPosition",
    "FetchCollectorTest.testCollectFetchInitializationOffsetOutOfRangeErrorWithNullPosition",
    "FetchCollectorTest.testCollectFetchInitializationOffsetOutOfRangeErrorWithOffsetReset",
    "SubscriptionStateTest.testRequestOffsetResetIfPartitionAssigned",
)
@pytest.mark.parametrize("error", [UnknownError, NotLeaderForPartitionError, OffsetOutOfRangeError])
def test_error_of_a_partition_without_position_moves_nobody(make_fetcher, error):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 3))}, reset=NONE)
    parts.cluster.errors["fetch", A0].append(error.errno)
    fetch(parts)
    parts.subscriptions.request_offset_reset(A0, OffsetResetStrategy.EARLIEST)
    assert collect(parts) == {}
    assert parts.subscriptions.is_offset_reset_needed(A0)


@pytest.mark.kafka(
    "FetcherTest.testFetchOnCompletedFetchesForSomePausedPartitions",
    "FetcherTest.testFetchOnCompletedFetchesForAllPausedPartitions",
)
def test_paused_partitions_wait_while_others_are_served_and_fetched(make_fetcher):
    parts = make_fetcher({tp: FetchLog(simple_batch(0, 3)) for tp in (A0, A1)})
    fetch(parts)
    parts.subscriptions.pause(A0)
    parts.subscriptions.pause(A1)
    assert not parts.fetcher.has_available_fetches()
    assert collect(parts) == {}
    parts.subscriptions.resume(A1)
    assert parts.fetcher.has_available_fetches()
    assert collect(parts) == {A1: [0, 1, 2]}
    parts.cluster.logs[A1].append(simple_batch(3, 1))
    assert fetch(parts) == 1
    ((topic,),) = [request.topics for request in fetch_requests(parts)[1:]]
    assert [(each.partition, each.fetch_offset) for each in topic.partitions] == [(1, 3)]
    parts.subscriptions.resume(A0)
    assert collect(parts) == {A0: [0, 1, 2], A1: [3]}


@pytest.mark.kafka("FetcherTest.testPartialFetchWithPausedPartitions")
def test_partition_paused_in_the_middle_keeps_what_is_left_of_its_answer(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 3))})
    fetch(parts)
    assert collect(parts, 1) == {A0: [0]}
    parts.subscriptions.pause(A0)
    assert collect(parts) == {}
    assert fetch(parts) == 0
    parts.subscriptions.resume(A0)
    assert fetch(parts) == 0
    assert collect(parts) == {A0: [1, 2]}
    assert len(fetch_requests(parts)) == 1


@pytest.mark.kafka("FetcherTest.testFetchDiscardedAfterPausedPartitionResumedAndSoughtToNewOffset")
@pytest.mark.behaviour(
    "Fetcher",
    "a response is dropped if the position has changed, or the partition is paused, revoked or reset",
)
def test_what_waits_of_a_paused_partition_is_dropped_after_a_seek(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 3))})
    fetch(parts)
    parts.subscriptions.pause(A0)
    parts.subscriptions.seek(A0, FetchPosition(1))
    parts.subscriptions.resume(A0)
    assert collect(parts) == {}
    fetch(parts)
    assert collect(parts) == {A0: [1, 2]}


# ---- Recreated topics (KIP-516) ----------------------------------------------------------------------------
def test_topic_made_anew_has_its_position_checked_though_its_epoch_is_lower(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 3, leader_epoch=5))})
    parts.subscriptions.maybe_validate_position(A0, 5)
    parts.subscriptions.seek(A0, FetchPosition(3, 5))
    assert not parts.subscriptions.maybe_validate_position(A0, 5)
    assert parts.subscriptions.maybe_validate_position(A0, 0)


@pytest.mark.kafka("FetcherTest.testFetchForgetTopicIdWhenReplaced")
@pytest.mark.behaviour(
    "FetchSessionHandler",
    "another topic id replaces the old one; a change between ids and names closes the session",
)
def test_fetch_goes_by_the_new_id_and_gives_the_old_one_up(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 3))})
    fetch(parts)
    collect(parts)
    old, new = parts.cluster.topic_id("a"), parts.cluster.topic_id("other")
    parts.metadata.topic_id = lambda topic: new
    parts.cluster.topic_of = lambda topic, topic_id: "a"
    parts.cluster.topic_id = lambda topic: new
    parts.cluster.logs[A0].append(simple_batch(3, 1))
    fetch(parts)
    request = fetch_requests(parts)[-1]
    assert [topic.topic_id for topic in request.topics] == [new]
    assert [(topic.topic_id, topic.partitions) for topic in request.forgotten_topics_data] == [(old, [0])]


# ---- Repeated errors ---------------------------------------------------------------------------------------
class Always(list):
    """A queue of errors that returns the same error forever."""

    def __init__(self, error):
        super().__init__([error.errno])

    def popleft(self):
        return self[0]


SPAN_MS, BACKOFF_MS = 10_000, 100


def fetches_of_a_tight_loop(parts, offsets=None):
    """Poll every millisecond for ``SPAN_MS`` and return the number of fetch requests."""
    before = len(fetch_requests(parts))
    for _ in range(SPAN_MS):
        parts.clock.advance(1)
        if offsets is not None:
            offsets.reset_positions_if_needed()
        fetch(parts)
        collect(parts)
    return len(fetch_requests(parts)) - before


def offsets_of(parts):
    level = IsolationLevel.READ_UNCOMMITTED
    return OffsetFetcher(parts.client, parts.metadata, parts.subscriptions, parts.clock, level, "kafka:9092")


def test_offset_that_is_always_out_of_range_backs_off(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 5))}, reset=EARLIEST)
    parts.cluster.errors["fetch", A0] = Always(OffsetOutOfRangeError)
    count = fetches_of_a_tight_loop(parts, offsets_of(parts))
    assert 10 < count <= SPAN_MS / BACKOFF_MS + 2


def test_offset_out_of_range_once_is_reset_at_once(make_fetcher):
    """Reset without a back-off, also a second time after a successful fetch."""
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 5))}, reset=EARLIEST)
    offsets = offsets_of(parts)
    for _ in range(2):
        parts.subscriptions.seek(A0, FetchPosition(99))
        for _ in range(3):
            offsets.reset_positions_if_needed()
            fetch(parts)
            collect(parts)
        assert parts.subscriptions.position(A0).offset == 5


def test_replicas_that_send_each_other_the_reader_back_off(make_fetcher):
    """The leader prefers a follower, on which every offset is out of range."""
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 5))}, node_count=2)
    parts.cluster.preferred[A0] = 1
    answer = parts.cluster._fetch_one

    def out_of_range_on_the_follower(node_id, tp, asked):
        parts.cluster.errors["fetch", A0] = Always(OffsetOutOfRangeError) if node_id == 1 else []
        return answer(node_id, tp, asked)

    parts.cluster._fetch_one = out_of_range_on_the_follower
    assert 10 < fetches_of_a_tight_loop(parts) <= 2 * SPAN_MS / BACKOFF_MS + 4


def test_leader_that_hints_at_itself_for_ever_backs_off(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 5))})
    parts.cluster.errors["fetch", A0] = Always(NotLeaderForPartitionError)
    parts.cluster.hints[A0] = (0, 5)
    assert 10 < fetches_of_a_tight_loop(parts) <= SPAN_MS / BACKOFF_MS + 2


@pytest.mark.parametrize("error_code", [FetchSessionIdNotFoundError.errno, UnknownError.errno, 0])
def test_fetch_that_always_fails_as_a_whole_backs_off(make_fetcher, error_code):
    """Back off when the response has an error code or omits all partitions."""
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 5))})
    parts.cluster._fetch = lambda node_id, request, age_ms: FetchResponse(error_code=error_code)
    assert 10 < fetches_of_a_tight_loop(parts) <= SPAN_MS / BACKOFF_MS + 2


def test_fetch_session_that_is_lost_once_begins_again_at_once(make_fetcher):
    parts = make_fetcher({A0: FetchLog(simple_batch(0, 5))})
    answer = parts.cluster._fetch
    parts.cluster._fetch = lambda *_: FetchResponse(error_code=FetchSessionIdNotFoundError.errno)
    fetch(parts)
    parts.cluster._fetch = answer
    assert fetch(parts) == 1
    assert collect(parts) == {A0: [0, 1, 2, 3, 4]}
