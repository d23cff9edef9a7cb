"""``NetworkClient.wait`` leaves its results in the selector, for the caller or for the next poll."""

from __future__ import annotations

import pytest

from kafkacore.client import ClientResponse
from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kafkacore.testing.mock_client import MockClient


@pytest.fixture
def mock() -> MockClient:
    mock = MockClient(max_in_flight_requests_per_connection=5)
    mock.connect()
    return mock


def now(mock: MockClient) -> float:
    return mock.clock.monotonic_ms()


def wait_for_response(mock: MockClient) -> list[ClientResponse]:
    """Send a request, let a wait receive the response, and return the list of completed responses."""
    responses = mock.send(0, ListOffsetsRequest())
    mock.poll()
    mock.respond(ListOffsetsResponse(throttle_time_ms=0))
    assert mock.client.wait(0, now(mock))
    assert (responses, len(mock.selector.completed_receives)) == ([], 1)
    return responses


def test_next_poll_handles_the_results(mock: MockClient) -> None:
    responses = wait_for_response(mock)
    mock.client.poll(0, now(mock))
    mock.client.poll(0, now(mock))
    assert len(responses) == 1


def test_next_wait_handles_the_results_and_asks_for_a_poll(mock: MockClient) -> None:
    responses = wait_for_response(mock)
    assert not mock.client.wait(0, now(mock))
    assert responses == [], "callbacks must run inside poll"
    assert not mock.client.wait(0, now(mock)), "the callback has not run yet"
    mock.client.poll(0, now(mock))
    assert len(responses) == 1
    assert mock.client.wait(0, now(mock))


def test_flush_does_not_drop_the_results(mock: MockClient) -> None:
    responses = wait_for_response(mock)
    mock.client.flush(now(mock))
    mock.client.poll(0, now(mock))
    assert len(responses) == 1


def test_results_that_the_caller_has_handled_are_not_handled_again(mock: MockClient) -> None:
    responses = wait_for_response(mock)
    mock.client.in_flight.complete_next(0)
    mock.client.handled_receives = mock.selector.completed_receives
    mock.client.count_wait(now(mock))
    assert mock.client.wait(0, now(mock))
    mock.client.poll(0, now(mock))
    assert responses == []
    assert mock.client.in_flight_request_count() == 0


class OtherPoll:
    """An ``event_wait`` during whose wait other code polls the client."""

    def __init__(self, mock: MockClient) -> None:
        self._mock = mock
        self._is_waiting = self.is_closed = False

    def poll(self, timeout_ms: float, return_on_completed_sends: bool = True) -> None:
        self._mock.selector.poll(0, return_on_completed_sends)
        if timeout_ms > 0 and not self._is_waiting:
            self._is_waiting = True
            self._mock.client.poll(0, now(self._mock))

    def close(self) -> None:
        self.is_closed = True


def test_results_that_other_code_handled_during_the_wait_are_not_handled_again(mock: MockClient) -> None:
    responses = mock.send(0, ListOffsetsRequest())
    mock.poll()
    mock.client.event_wait = event_wait = OtherPoll(mock)
    mock.respond(ListOffsetsResponse(throttle_time_ms=0))
    assert not mock.client.wait(100, now(mock))
    mock.client.poll(0, now(mock))
    assert len(responses) == 1
    mock.client.close()
    assert event_wait.is_closed
