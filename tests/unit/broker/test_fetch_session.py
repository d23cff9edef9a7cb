"""Fetch sessions: incremental responses, eviction of sessions, and the cost of idle partitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model.broker_harness import BrokerHarness, batch
from model.fetch_client import FINAL, FetchClient
from model.topic_changes import delete_topic

from kafkacore.broker.handlers.services import RequestContext
from kafkacore.broker.replica import fetch_session
from kafkacore.broker.replica.fetch_partition import FetchPartition, FetchPartitionResult
from kafkacore.broker.replica.fetch_session import FetchAsk, FetchManager, next_epoch
from kafkacore.errors import (
    FetchSessionIdNotFoundError,
    FetchSessionTopicIdError,
    InconsistentTopicIdError,
    InvalidFetchSessionEpochError,
    OffsetOutOfRangeError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol import ZERO_UUID
from kafkacore.structs import INT32_MAX, TopicPartition

NOBODY = UUID(int=77)


@pytest.fixture
def broker(tmp_path: Path) -> BrokerHarness:
    return a_broker(tmp_path)


def a_broker(tmp_path: Path, **config: Any) -> BrokerHarness:
    made = BrokerHarness(tmp_path, **config)
    made.topics.create("t", 3, {})
    return made


def append(broker: BrokerHarness, partition: int, *values: bytes, topic: str = "t") -> None:
    broker.replica_manager.append(
        TopicPartition(topic, partition), memoryview(batch(*values)), broker.config.node_id
    )


def a_client(broker: BrokerHarness, *partitions: int, by_id: bool = True) -> FetchClient:
    client = FetchClient(broker, by_id=by_id)
    for partition in partitions or (0, 1, 2):
        client.want("t", partition, 0)
    return client


# ---- One session ---------------------------------------------------------------------------------------


def test_epochs_count_up_and_never_come_back_to_those_of_a_full_fetch() -> None:
    assert [next_epoch(epoch) for epoch in (-1, 0, 1, INT32_MAX)] == [-1, 1, 2, 1]


@pytest.mark.kafka("FetchSessionTest.testNewSessionId", "FetchSessionTest.testFetchRequests")
@pytest.mark.parametrize("by_id", [True, False])
def test_full_fetch_tells_all_and_the_next_what_has_changed(broker: BrokerHarness, by_id: bool) -> None:
    client = a_client(broker, by_id=by_id)
    assert client.fetch().session_id > 0
    assert len(client.last) == 3
    client.fetch()
    assert client.last == []
    append(broker, 1, b"a")
    client.fetch()
    assert client.last == [client.key("t", 1)]
    assert client.view[client.key("t", 1)].values == (b"a",)


def test_records_come_again_until_the_client_has_moved_on(broker: BrokerHarness) -> None:
    client = a_client(broker)
    client.fetch()
    append(broker, 1, b"a")
    for _ in range(2):
        client.fetch()
        assert client.view[client.key("t", 1)].values == (b"a",)
    client.want("t", 1, 1)
    client.fetch()
    assert client.last == []


def test_high_watermark_that_moves_behind_the_offset_is_told_once(broker: BrokerHarness) -> None:
    client = a_client(broker, 0)
    broker.log("t").sync_at_once = False
    append(broker, 0, b"a")
    client.want("t", 0, 1)
    client.fetch()
    assert client.view[client.key("t", 0)].high_watermark == 0
    broker.log("t").sync()
    broker.replica_manager.on_high_watermark(TopicPartition("t", 0), 1)
    client.fetch()
    assert client.view[client.key("t", 0)].high_watermark == 1
    client.fetch()
    assert client.last == []


def test_error_is_told_every_time_and_its_end_once(broker: BrokerHarness) -> None:
    client = a_client(broker)
    client.want("t", 1, 99)
    for _ in range(3):
        client.fetch()
        assert client.view[client.key("t", 1)].error == OffsetOutOfRangeError.errno
        assert client.key("t", 1) in client.last
    client.want("t", 1, 0)
    client.fetch()
    assert client.last == [client.key("t", 1)]
    assert client.view[client.key("t", 1)].error == 0
    client.fetch()
    assert client.last == []


@pytest.mark.kafka(
    "FetchSessionTest.testResizeCachedSessions",
    "FetchSessionTest.testIncrementalFetchSession",
    "FetchSessionTest.testToForgetPartitions",
)
def test_partitions_are_added_and_forgotten(broker: BrokerHarness) -> None:
    client = a_client(broker, 0)
    client.fetch()
    client.want("t", 2, 0)
    client.fetch()
    assert client.last == [client.key("t", 2)]
    del client.wanted[client.key("t", 0)]
    client.fetch()
    append(broker, 0, b"unseen")
    append(broker, 2, b"seen")
    client.fetch()
    assert client.last == [client.key("t", 2)]
    assert broker.fetch_sessions.partition_count == 1


@pytest.mark.kafka("FetchSessionTest.testZeroSizeFetchSession")
def test_session_that_asks_for_nothing_any_more_is_over(broker: BrokerHarness) -> None:
    client = a_client(broker, 0)
    client.fetch()
    client.wanted.clear()
    response = client.fetch()
    assert (response.error_code, response.session_id, list(response.responses)) == (0, 0, [])
    assert len(broker.fetch_sessions) == 0


def test_full_fetch_ends_the_session_that_it_names(broker: BrokerHarness) -> None:
    client = a_client(broker)
    first = client.fetch().session_id
    client.epoch = 0
    second = client.fetch().session_id
    assert second not in (0, first)
    assert len(broker.fetch_sessions) == 1
    client.epoch = FINAL
    assert client.fetch().session_id == 0
    assert len(broker.fetch_sessions) == 0
    assert broker.fetch_sessions.partition_count == 0


@pytest.mark.kafka("FetchSessionTest.testFetchRequests")
def test_fetch_without_session_gets_none(broker: BrokerHarness) -> None:
    client = a_client(broker)
    client.epoch = FINAL
    response = client.fetch()
    assert (response.error_code, response.session_id, len(client.last)) == (0, 0, 3)
    assert len(broker.fetch_sessions) == 0


@pytest.mark.kafka("FetchSessionTest.testFetchRequests")
def test_unknown_session_and_wrong_epoch_are_refused(broker: BrokerHarness) -> None:
    client = a_client(broker)
    client.session_id, client.epoch = 5, 1
    refused = client.fetch()
    assert (refused.error_code, refused.session_id) == (FetchSessionIdNotFoundError.errno, 0)
    assert list(refused.responses) == []
    client.fetch()
    for wrong in (2, 5):
        session_id = client.session_id
        client.epoch = wrong
        assert client.fetch().error_code == InvalidFetchSessionEpochError.errno
        client.session_id, client.epoch = session_id, 1
    assert client.fetch().error_code == 0


@pytest.mark.kafka(
    "FetchSessionTest.testFetchSessionWithUnknownIdOldRequestVersion",
    "FetchSessionTest.testIncrementalFetchSessionWithIdsWhenSessionDoesNotUseIds",
    "FetchSessionTest.testIncrementalFetchSessionWithoutIdsWhenSessionUsesIds",
)
def test_session_does_not_change_between_names_and_ids(broker: BrokerHarness) -> None:
    for by_id in (True, False):
        client = a_client(broker, 0, by_id=by_id)
        client.fetch()
        client.version = 12 if by_id else 18
        client.wanted.clear()
        client._sent.clear()
        assert client.fetch().error_code == FetchSessionTopicIdError.errno


def test_session_of_another_node_is_not_found(broker: BrokerHarness) -> None:
    client = a_client(broker)
    client.fetch()
    broker.context = RequestContext("other", 2)
    assert client.fetch().error_code == FetchSessionIdNotFoundError.errno


def test_stopped_node_begins_again_without_sessions(broker: BrokerHarness) -> None:
    client = a_client(broker)
    client.fetch()
    broker.fetch_sessions.remove_node(2)
    assert len(broker.fetch_sessions) == 1
    broker.cluster.stop_node(broker.config.node_id)
    broker.cluster.start_node(broker.config.node_id)
    assert client.fetch().error_code == FetchSessionIdNotFoundError.errno
    append(broker, 0, b"no session to notify")
    broker.settle()


# ---- Topics that come and go ---------------------------------------------------------------------------


@pytest.mark.kafka(
    "FetchSessionTest.testFetchSessionWithUnknownId",
    "FetchSessionTest.testResolveUnknownPartitions",
    "FetchSessionTest.testMaybeResolveUnknownName",
)
def test_id_that_no_topic_has_stays_in_the_session_until_one_has(
    broker: BrokerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = a_client(broker)
    client.wanted[NOBODY, 0] = 0
    for _ in range(2):
        client.fetch()
        assert client.view[NOBODY, 0].error == UnknownTopicIdError.errno
    monkeypatch.setattr(broker.topics, "_new_id", lambda: NOBODY)
    broker.topics.create("late", 1, {})
    append(broker, 0, b"a", topic="late")
    client.fetch()
    assert client.view[NOBODY, 0].values == (b"a",)
    client.wanted[NOBODY, 0] = 1
    client.fetch()
    append(broker, 0, b"b", topic="late")
    client.fetch()
    assert client.view[NOBODY, 0].values == (b"b",)


@pytest.mark.kafka("FetchSessionTest.testFetchSessionUpdateTopicIdsBrokerSide")
@pytest.mark.parametrize("by_id", [True, False])
def test_deleted_topic_is_told_and_what_is_made_anew_under_its_name(
    broker: BrokerHarness, by_id: bool
) -> None:
    client = a_client(broker, 0, by_id=by_id)
    client.fetch()
    key = client.key("t", 0)
    delete_topic(broker.topics, "t")
    client.fetch()
    assert client.view[key].error == UnknownTopicOrPartitionError.errno
    broker.topics.create("t", 1, {})
    client.fetch()
    assert client.view[key].error == (InconsistentTopicIdError.errno if by_id else 0)
    if by_id:
        del client.wanted[key]
        client.want("t", 0, 0)
        client.fetch()
        assert client.last == [client.key("t", 0)]
        assert client.view[client.key("t", 0)].error == 0


# ---- Waiting -------------------------------------------------------------------------------------------


def test_waiting_session_wakes_by_any_of_its_partitions(broker: BrokerHarness) -> None:
    client = a_client(broker)
    client.fetch()
    for partition in (2, 0):
        answer = client.send(max_wait_ms=1000)
        broker.settle()
        assert answer.count == 0
        append(broker, partition, b"a")
        broker.settle()
        client.take(answer.message)
        assert client.last == [client.key("t", partition)]
        client.want("t", partition, 1)


def test_waiting_session_is_answered_empty_when_its_wait_is_over(broker: BrokerHarness) -> None:
    client = a_client(broker)
    client.fetch()
    answer = client.send(max_wait_ms=500)
    broker.clock.advance(500)
    broker.settle()
    client.take(answer.message)
    assert client.last == []


def test_waiting_session_counts_the_bytes_of_all_its_partitions(broker: BrokerHarness) -> None:
    client = a_client(broker)
    client.fetch()
    answer = client.send(max_wait_ms=500, min_bytes=3 * len(batch(b"a")))
    for partition in range(3):
        assert answer.count == 0
        append(broker, partition, b"a")
        broker.settle()
    client.take(answer.message)
    assert len(client.last) == 3


def test_request_that_comes_twice_is_answered_once(broker: BrokerHarness) -> None:
    client = a_client(broker)
    client.fetch()
    first = client.send(max_wait_ms=500)
    client.epoch += 1
    second = client.send(max_wait_ms=500)
    append(broker, 0, b"a")
    broker.settle()
    assert first.message.error_code == InvalidFetchSessionEpochError.errno
    assert first.message.session_id == client.session_id
    assert second.message.error_code == 0
    assert len(second.message.responses) == 1


def test_what_happened_before_a_fetch_is_in_its_answer(broker: BrokerHarness) -> None:
    client = a_client(broker)
    client.fetch()
    append(broker, 0, b"a")
    # The event has not been processed yet.
    assert client.send(max_wait_ms=500).count == 1


def test_event_between_two_looks_at_the_same_partition_is_not_lost(broker: BrokerHarness) -> None:
    client = a_client(broker, 0)
    client.fetch()
    append(broker, 0, b"a")
    client.want("t", 0, 1)
    client.fetch()
    append(broker, 0, b"b")
    client.fetch()
    assert client.view[client.key("t", 0)].values == (b"b",)


# ---- Fairness and cost ---------------------------------------------------------------------------------


@pytest.mark.kafka("FetchSessionTest.testDeprioritizesPartitionsWithRecordsOnly")
def test_partition_that_gave_records_comes_after_those_that_did_not(broker: BrokerHarness) -> None:
    client = a_client(broker)
    client.fetch()
    for _ in range(20):
        for partition in range(3):
            append(broker, partition, b"x" * 100)
    served = []
    for _ in range(9):
        client.fetch(max_bytes=1)
        (key,) = [key for key in client.last if client.view[key].values]
        served.append(key[1])
        client.wanted[key] += 1
    assert all(set(served[i : i + 3]) == {0, 1, 2} for i in range(0, 9, 3))


def test_fetch_of_a_large_session_looks_at_what_has_changed_and_a_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = BrokerHarness(tmp_path)
    broker.topics.create("t", 1000, {})
    client = a_client(broker, *range(1000))
    client.fetch()
    assert len(client.last) == 1000
    looked_at: list[int] = []
    led_log = broker.cluster.led_log

    def counted(*arguments: Any) -> Any:
        looked_at.append(arguments[0].partition)
        return led_log(*arguments)

    monkeypatch.setattr(broker.cluster, "led_log", counted)
    append(broker, 7, b"a")
    append(broker, 11, b"b")
    looked_at.clear()
    client.fetch()
    assert {key[1] for key in client.last} == {7, 11}
    assert {7, 11} <= set(looked_at)
    assert len(looked_at) <= 2 + fetch_session.CHECKED_IN_TURN


def test_log_that_loses_its_beginning_is_told_of_in_turn(broker: BrokerHarness) -> None:
    client = a_client(broker)
    append(broker, 2, b"a", b"b")
    client.want("t", 2, 2)
    client.fetch()
    broker.log("t", 2).delete_records(1)
    client.fetch()
    assert client.last == [client.key("t", 2)]
    assert client.view[client.key("t", 2)].log_start_offset == 1


# ---- The cache -----------------------------------------------------------------------------------------


class Cache:
    """A fetch manager, and sessions created as by a full fetch."""

    def __init__(self, broker: BrokerHarness, slots: int) -> None:
        self.clock = broker.clock
        self.manager = FetchManager(broker.replica_manager, lambda _: None, broker.clock, slots)

    def begin(self, size: int, *, is_replica: bool = False) -> int:
        partitions = {("t", i): FetchPartition("t", ZERO_UUID, i, 0, 1) for i in range(size)}
        ask = FetchAsk(1, 0, 0, partitions, (), False, is_replica)
        return self.manager.begin(ask, [(p, FetchPartitionResult()) for p in partitions.values()])

    def use(self, session_id: int, epoch: int, **arguments: Any) -> None:
        self.manager.new_context(FetchAsk(1, session_id, epoch, {}, uses_topic_ids=False, **arguments))

    def has(self, session_id: int) -> bool:
        return session_id in self.manager._sessions


@pytest.mark.kafka("FetchSessionTest.testSessionCache")
def test_full_cache_gives_no_session_and_evicts_nobody_who_is_young(broker: BrokerHarness) -> None:
    cache = Cache(broker, 2)
    first, second = cache.begin(1), cache.begin(1)
    assert cache.begin(100) == 0
    assert cache.has(first)
    assert cache.has(second)
    assert cache.manager.eviction_count == 0


@pytest.mark.kafka("FetchSessionTest.testSessionCache", "FetchSessionTest.testFetchSessionExpiration")
def test_session_that_nobody_has_used_for_long_makes_way_for_any(broker: BrokerHarness) -> None:
    cache = Cache(broker, 2)
    first = cache.begin(50)
    cache.clock.advance(1)
    second = cache.begin(50)
    cache.clock.advance(120_000)
    assert cache.begin(1) > 0
    assert not cache.has(first)
    assert cache.has(second)
    assert cache.manager.eviction_count == 1
    assert cache.manager.partition_count == 51


@pytest.mark.kafka(
    "FetchSessionTest.testResizeCachedSessions",
    "FetchSessionTest.testFetchSessionExpiration",
)
def test_larger_session_takes_the_place_of_a_smaller_that_is_not_young(broker: BrokerHarness) -> None:
    cache = Cache(broker, 2)
    small, large = cache.begin(5), cache.begin(9)
    for epoch in range(1, 4):
        cache.clock.advance(50_000)
        cache.use(small, epoch)
        cache.use(large, epoch)
    assert cache.begin(4) == 0
    assert cache.begin(6) > 0
    assert not cache.has(small)
    assert cache.has(large)


@pytest.mark.kafka("FetchSessionTest.testPrivilegedSessionHandling")
def test_session_of_a_replica_takes_a_clients_place_and_not_the_other_way_round(
    broker: BrokerHarness,
) -> None:
    cache = Cache(broker, 1)
    client = cache.begin(5)
    replica = cache.begin(1, is_replica=True)
    assert replica > 0
    assert not cache.has(client)
    for epoch in range(1, 4):
        cache.clock.advance(50_000)
        cache.use(replica, epoch)
    assert cache.begin(100) == 0
    assert cache.begin(2, is_replica=True) > 0


def test_more_partitions_than_are_remembered_get_no_session_and_take_nobodys(
    broker: BrokerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_session, "MAX_PARTITIONS", 100)
    cache = Cache(broker, 10)
    first, second = cache.begin(50), cache.begin(50)
    assert cache.begin(1) == 0
    cache.clock.advance(70_000)
    cache.use(second, 1)
    cache.clock.advance(50_001)
    assert cache.begin(51) == 0, "a session in use is not evicted"
    assert not cache.has(first)
    assert cache.begin(50) > 0
    assert cache.has(second)
    assert cache.manager.partition_count == 100


def test_session_that_grows_beyond_what_is_remembered_is_over(
    broker: BrokerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_session, "MAX_PARTITIONS", 4)
    clients = [a_client(broker, 0), a_client(broker, 0, 1)]
    for client in clients:
        client.fetch()
    clients[0].want("t", 1, 0)
    clients[0].fetch()
    assert broker.fetch_sessions.partition_count == 4
    clients[0].want("t", 1, 1)
    assert not clients[0].fetch().error_code, "the offset of a known partition may change"
    clients[0].want("t", 2, 0)
    assert clients[0].fetch().error_code == FetchSessionIdNotFoundError.errno
    assert broker.fetch_sessions.partition_count == 2
    assert not clients[1].fetch().error_code


def test_no_slots_mean_no_sessions(tmp_path: Path) -> None:
    broker = a_broker(tmp_path, max_incremental_fetch_session_cache_slots=0)
    client = a_client(broker)
    for _ in range(2):
        assert client.fetch().session_id == 0
        assert len(client.last) == 3


# ---- Random operations ---------------------------------------------------------------------------------

PARTITIONS = st.integers(0, 2)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), PARTITIONS, st.integers(1, 3)),
        st.tuples(st.just("unsafe"), PARTITIONS, st.just(0)),
        st.tuples(st.just("sync"), PARTITIONS, st.just(0)),
        st.tuples(st.just("delete_records"), PARTITIONS, st.integers(0, 4)),
        st.tuples(st.just("new_topic"), st.just(0), st.just(0)),
        st.tuples(st.just("want"), PARTITIONS, st.integers(0, 6)),
        st.tuples(st.just("seek_to_end"), PARTITIONS, st.just(0)),
        st.tuples(st.just("forget"), PARTITIONS, st.just(0)),
        st.tuples(st.just("fetch"), st.just(0), st.just(0)),
        st.tuples(st.just("wait"), st.just(0), st.integers(1, 300)),
        st.tuples(st.just("lose_session"), st.just(0), st.just(0)),
    ),
    max_size=40,
)


class Simulation:
    """A client with a session, and its broker. Each step is a method."""

    def __init__(self, tmp_path: Path, *, by_id: bool) -> None:
        self.broker = a_broker(tmp_path)
        self.client = a_client(self.broker, by_id=by_id)
        self.waiting: Any = None

    def append(self, partition: int, count: int) -> None:
        append(self.broker, partition, *[b"v"] * count)

    def unsafe(self, partition: int, _: int) -> None:
        self.broker.log("t", partition).sync_at_once = False

    def sync(self, partition: int, _: int) -> None:
        log = self.broker.log("t", partition)
        log.sync()
        self.broker.replica_manager.on_high_watermark(TopicPartition("t", partition), log.high_watermark)

    def delete_records(self, partition: int, before: int) -> None:
        log = self.broker.log("t", partition)
        log.delete_records(min(before, log.high_watermark))
        self.broker.replica_manager.partition_changed(TopicPartition("t", partition))

    def new_topic(self, _: int, __: int) -> None:
        delete_topic(self.broker.topics, "t")
        self.broker.topics.create("t", 3, {})

    def lose_session(self, _: int, __: int) -> None:
        self.broker.fetch_sessions.remove_node(self.broker.config.node_id)

    def want(self, partition: int, offset: int) -> None:
        self.end_wait()
        self.client.want("t", partition, offset)

    def seek_to_end(self, partition: int, _: int) -> None:
        self.want(partition, self.broker.log("t", partition).log_end_offset)

    def forget(self, partition: int, _: int) -> None:
        self.end_wait()
        self.client.wanted.pop(self.client.key("t", partition), None)

    def wait(self, _: int, min_bytes: int) -> None:
        self.end_wait()
        self.waiting = self.client.send(max_wait_ms=1000, min_bytes=min_bytes)

    def end_wait(self) -> None:
        if self.waiting is not None:
            self.broker.clock.advance(1000)
            self.broker.settle()
            self.client.take(self.waiting.message)
            self.waiting = None

    def fetch(self, _: int, __: int) -> None:
        self.end_wait()
        if self.client.fetch().error_code:
            self.client.fetch()
        assert_knows_all(self.client)


@pytest.mark.kafka(
    "FetchSessionTest.testToForgetPartitions",
    "FetchSessionTest.testUpdateAndGenerateResponseData",
)
@settings(max_examples=200, deadline=None)
@given(STEPS, st.booleans())
def test_client_of_a_session_knows_what_one_without_is_told(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]], by_id: bool
) -> None:
    simulation = Simulation(tmp_path_factory.mktemp("broker"), by_id=by_id)
    for step, partition, number in [*steps, ("fetch", 0, 0)]:
        getattr(simulation, step)(partition, number)


def assert_knows_all(client: FetchClient) -> None:
    other = FetchClient(client.broker, by_id=client.by_id)
    other.epoch, other.wanted = FINAL, client.wanted
    other.fetch()
    assert set(other.view) == set(client.wanted)
    for key, expected in other.view.items():
        if key in client.last:
            known = client.view[key]
            if known.error == InconsistentTopicIdError.errno:
                # Only a session can know that the id belonged to another topic of the same name.
                known = known._replace(error=UnknownTopicIdError.errno)
            assert known == expected
        else:
            assert (expected.error, expected.values) == (0, ())
            assert client.view[key][:3] == expected[:3]
