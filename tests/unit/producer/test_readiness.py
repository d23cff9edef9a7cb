"""Ready partitions: which of many are checked, in which order, and how their leaders are cached."""

from __future__ import annotations

from model.producer_cluster import TableCluster
from model.producer_harness import TP0, TP1, TP2, AccumulatorHarness

from kafkacore.client._client_request import ClientRequest
from kafkacore.client._in_flight_requests import InFlightRequests
from kafkacore.protocol.generated.api_versions import ApiVersionsRequest
from kafkacore.structs import Node, TopicPartition


class CountingCluster(TableCluster):
    """A cluster that counts the look-ups of leaders."""

    asked = 0

    def leader_for(self, partition: TopicPartition, /) -> Node | None:
        self.asked += 1
        return super().leader_for(partition)


def test_leader_is_looked_up_once_for_each_snapshot() -> None:
    harness = AccumulatorHarness(CountingCluster({"t": [1, 1, 2]}))
    assert isinstance(harness.cluster, CountingCluster)
    harness.append(0)
    for _ in range(10):
        harness.ready()
        harness.drain(2)
    assert harness.cluster.asked == 1
    harness.cluster = CountingCluster({"t": [2, 1, 2]})
    harness.clock.advance(10)
    assert harness.ready() == {2}
    assert [batch.topic_partition for batch in harness.drain(2)] == [TP0]


def test_partition_with_more_to_send_waits_behind_the_others() -> None:
    harness = AccumulatorHarness(TableCluster({"t": [1, 1, 1]}), linger_ms=0.0)
    harness.fill(0)
    harness.fill(0)
    harness.append(1)
    harness.append(2)
    order = [harness.drain(1, max_size=1)[0].topic_partition for _ in range(4)]
    assert order == [TP0, TP1, TP2, TP0]


def test_partition_without_batches_is_not_looked_at_again() -> None:
    harness = AccumulatorHarness()
    harness.append(0)
    harness.accumulator._queue(TP0).pop()
    assert harness.ready() == set()
    assert not harness.accumulator.active


def test_batch_that_comes_back_expires_at_its_own_time() -> None:
    harness = AccumulatorHarness(linger_ms=0.0, delivery_timeout_ms=100.0)
    harness.append(0)
    (batch,) = harness.drain()
    harness.clock.advance(60)
    harness.append(1)
    assert harness.accumulator.expired_batches(harness.now) == []
    harness.accumulator.reenqueue(batch, harness.now)
    assert harness.accumulator.no_expiry_before_ms == harness.now + 40
    harness.clock.advance(40)
    assert harness.accumulator.expired_batches(harness.now) == [batch]
    assert harness.accumulator.no_expiry_before_ms == harness.now + 60


def collecting() -> tuple[AccumulatorHarness, InFlightRequests]:
    """Return an accumulator whose batches wait for responses, with a request in flight to the leader of 0."""
    harness = AccumulatorHarness(TableCluster({"t": [1, 2]}), linger_ms=0.0)
    in_flight = harness.accumulator.sender_wakeup.in_flight = InFlightRequests(5)
    harness.append(0)
    harness.append(1)
    assert harness.ready() == {1, 2}
    harness.drain()
    request = ClientRequest(1, ApiVersionsRequest(), 1, harness.now, request_timeout_ms=1000)
    request.sent_ms = harness.now
    in_flight.add(request)
    harness.accumulator.sender_wakeup.sender_runs()
    harness.wakeups = 0
    return harness, in_flight


def test_batch_that_collects_waits_for_the_response_of_its_leader() -> None:
    harness, in_flight = collecting()
    harness.append(0)
    assert (harness.wakeups, harness.ready()) == (0, set())
    harness.append(1)
    assert (harness.wakeups, harness.ready()) == (1, {2})
    in_flight.complete_next(1)
    assert harness.ready() == {1, 2}


def test_full_batch_does_not_wait_for_a_response() -> None:
    harness, _ = collecting()
    harness.fill(0)
    assert (harness.wakeups, harness.ready()) == (1, {1})


def test_flush_sends_a_batch_that_collects() -> None:
    harness, _ = collecting()
    harness.append(0)
    harness.accumulator.begin_flush()
    assert (harness.wakeups, harness.ready()) == (1, {1})
