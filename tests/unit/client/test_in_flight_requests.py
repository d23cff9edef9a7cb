"""InFlightRequests, with the cases of Kafka's InFlightRequestsTest."""

from __future__ import annotations

import math

import pytest

from kafkacore.client._client_request import ClientRequest
from kafkacore.client._in_flight_requests import InFlightRequests
from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest


class Requests:
    """InFlightRequests with at most three requests per node, and shortcuts to fill it."""

    def __init__(self) -> None:
        self.in_flight = InFlightRequests(3)
        self.made = 0

    def add(self, node_id: int, sent_ms: float = 0.0, timeout_ms: float = 1000.0) -> ClientRequest:
        request = ClientRequest(node_id, ListOffsetsRequest(), self.made, 0.0, request_timeout_ms=timeout_ms)
        self.made += 1
        request.sent_ms = sent_ms
        self.in_flight.add(request)
        return request


@pytest.fixture
def requests() -> Requests:
    return Requests()


@pytest.mark.behaviour("InFlightRequests", "completing the last sent request leaves the older ones in flight")
def test_completing_the_last_sent_leaves_the_older_ones(requests: Requests) -> None:
    first, second = requests.add(0), requests.add(0)
    other = requests.add(1)
    assert requests.in_flight.last_sent(0) is second
    assert requests.in_flight.complete_last_sent(0) is second
    assert requests.in_flight.last_sent(0) is requests.in_flight.oldest(0) is first
    assert (requests.in_flight.count(0), requests.in_flight.count(1), requests.in_flight.count()) == (1, 1, 2)
    assert requests.in_flight.oldest(1) is other


@pytest.mark.behaviour("InFlightRequests", "requests complete in the order in which they were sent")
def test_completing_the_next_goes_by_the_order_of_sending(requests: Requests) -> None:
    sent = [requests.add(0) for _ in range(3)]
    completed = []
    while requests.in_flight.count(0):
        oldest = requests.in_flight.oldest(0)
        completed.append(requests.in_flight.complete_next(0))
        assert completed[-1] is oldest
    assert completed == sent
    assert requests.in_flight.oldest(0) is None
    assert requests.in_flight.count() == 0


@pytest.mark.behaviour(
    "InFlightRequests", "clearing a node returns all its requests in order and leaves those of other nodes"
)
def test_clearing_a_node_gives_all_its_requests_in_order_and_leaves_other_nodes(requests: Requests) -> None:
    sent = [requests.add(0), requests.add(0)]
    other = requests.add(1)
    assert requests.in_flight.clear(0) == sent
    assert requests.in_flight.clear(0) == []
    assert (requests.in_flight.count(0), requests.in_flight.count()) == (0, 1)
    assert requests.in_flight.oldest(1) is other


@pytest.mark.behaviour("InFlightRequests", "a node has timed out if any of its requests has")
def test_a_node_with_any_late_request_has_timed_out(requests: Requests) -> None:
    assert requests.in_flight.next_deadline_ms() == math.inf
    requests.add(0, sent_ms=0, timeout_ms=1000)
    requests.add(0, sent_ms=10, timeout_ms=50)
    requests.add(1, sent_ms=10, timeout_ms=90)
    assert requests.in_flight.next_deadline_ms() == 60
    assert requests.in_flight.nodes_with_expired_requests(59) == []
    assert requests.in_flight.nodes_with_expired_requests(60) == [0]
    assert sorted(requests.in_flight.nodes_with_expired_requests(100)) == [0, 1]


@pytest.mark.behaviour("InFlightRequests", "a node accepts no request beyond the limit of requests in flight")
def test_a_node_takes_no_more_than_its_share_of_requests(requests: Requests) -> None:
    for _ in range(3):
        assert requests.in_flight.can_send_more(0)
        requests.add(0)
    assert not requests.in_flight.can_send_more(0)
    assert requests.in_flight.can_send_more(1)
    requests.in_flight.complete_next(0)
    assert requests.in_flight.can_send_more(0)


@pytest.mark.behaviour("InFlightRequests", "completing a request that is not in flight is an error")
def test_what_is_not_in_flight_cannot_be_completed(requests: Requests) -> None:
    assert requests.in_flight.oldest(0) is None
    assert requests.in_flight.last_sent(0) is None
    for complete in (requests.in_flight.complete_next, requests.in_flight.complete_last_sent):
        with pytest.raises((LookupError, AssertionError)):
            complete(0)
    assert requests.in_flight.count() == 0


def test_requests_without_an_answer_are_counted_until_they_are_over(requests: Requests) -> None:
    for _ in range(3):
        requests.add(0)
        request = ClientRequest(
            0, ListOffsetsRequest(), 9, 0.0, request_timeout_ms=1000, expect_response=False
        )
        requests.in_flight.add(request)
    assert requests.in_flight.unanswered_count == 3
    requests.in_flight.complete_last_sent(0)
    requests.in_flight.complete_next(0)
    assert requests.in_flight.unanswered_count == 2
    requests.in_flight.clear(0)
    assert requests.in_flight.unanswered_count == 0


def test_requests_follow_their_connection_to_its_new_name(requests: Requests) -> None:
    sent = [requests.add(-1), requests.add(-1)]
    requests.in_flight.rename(-1, 4)
    assert requests.in_flight.count(-1) == 0
    assert requests.in_flight.count() == 2
    assert requests.in_flight.clear(4) == sent


def test_a_written_request_matters_to_unsent_ones_while_its_node_takes_another(requests: Requests) -> None:
    assert not requests.in_flight.needs_completed_sends(has_unsent=True)
    for is_below_limit in (True, True, False):
        requests.add(0)
        assert requests.in_flight.is_below_limit(0) == is_below_limit
        assert requests.in_flight.needs_completed_sends(has_unsent=True) == is_below_limit
        assert not requests.in_flight.needs_completed_sends(has_unsent=False)
    requests.add(1)
    assert requests.in_flight.needs_completed_sends(has_unsent=True)
    requests.in_flight.complete_next(1)
    assert not requests.in_flight.needs_completed_sends(has_unsent=True)
    requests.in_flight.complete_last_sent(0)
    assert requests.in_flight.needs_completed_sends(has_unsent=True)
    requests.in_flight.clear(0)
    assert not requests.in_flight.needs_completed_sends(has_unsent=True)


def test_clearing_a_full_node_leaves_the_others_as_they_were(requests: Requests) -> None:
    for node_id in (0, 0, 0, 0, 1):
        requests.add(node_id)
    requests.in_flight.clear(0)
    assert requests.in_flight.needs_completed_sends(has_unsent=True)
    assert requests.in_flight.is_below_limit(0)


def test_a_written_request_without_an_answer_matters_always(requests: Requests) -> None:
    for _ in range(3):
        requests.add(0)
    requests.in_flight.clear(0)
    request = ClientRequest(0, ListOffsetsRequest(), 9, 0.0, request_timeout_ms=1000.0, expect_response=False)
    requests.in_flight.add(request)
    assert requests.in_flight.needs_completed_sends(has_unsent=False)
