"""A single request of an admin client, on a scripted network with virtual time."""

from __future__ import annotations

import pytest

from kafkacore.admin.requester import Requester
from kafkacore.errors import (
    CredentialsUnavailableError,
    KafkaError,
    KafkaTimeoutError,
    SaslAuthenticationFailedError,
)
from kafkacore.network import ConnectionPhase
from kafkacore.protocol.generated.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkacore.testing.mock_client import MockClient

REFUSED = SaslAuthenticationFailedError("the broker refuses alice")


@pytest.fixture
def mock() -> MockClient:
    return MockClient()


def requester_of(mock: MockClient) -> Requester:
    return Requester(mock.client, mock.client.metadata, mock.clock, "node0:9092", 30_000)


def end_connections(mock: MockClient, errors: list[KafkaError]) -> None:
    """Make each of the next connections fail authentication with one of these errors."""
    connect = mock.selector.connect

    def ending(connection_id: str, *address: object, **how: object) -> None:
        connect(connection_id, *address, **how)
        if errors:
            mock.selector.silent.add(mock.selector.addresses[connection_id][0])
            error = errors.pop(0)
            mock.selector.end(connection_id, ConnectionPhase.AUTHENTICATION_FAILED, str(error), error)
        else:
            mock.selector.silent.clear()

    mock.selector.connect = ending


def test_request_is_answered(mock: MockClient) -> None:
    mock.prepare_response(ListGroupsResponse())
    assert requester_of(mock).send(ListGroupsRequest(), 1_000) == ListGroupsResponse()


def test_who_is_not_believed_is_told_at_once(mock: MockClient) -> None:
    end_connections(mock, [REFUSED])
    before_ms = mock.clock.monotonic_ms()
    with pytest.raises(SaslAuthenticationFailedError, match="refuses alice"):
        requester_of(mock).send(ListGroupsRequest(), 30_000)
    assert mock.clock.monotonic_ms() - before_ms < 1_000


def test_who_is_not_believed_any_more_is_told_at_once(mock: MockClient) -> None:
    mock.connect()
    answer = mock.selector.on_request

    def refuse(connection_id: str, *request: object) -> None:
        mock.selector.end(connection_id, ConnectionPhase.AUTHENTICATION_FAILED, "no", REFUSED)
        answer(connection_id, *request)

    mock.selector.on_request = refuse
    with pytest.raises(SaslAuthenticationFailedError, match="refuses alice"):
        requester_of(mock).send(ListGroupsRequest(), 30_000)


def test_ticket_that_comes_late_is_waited_for(mock: MockClient) -> None:
    end_connections(mock, [CredentialsUnavailableError("not yet")])
    mock.prepare_response(ListGroupsResponse())
    assert requester_of(mock).send(ListGroupsRequest(), 30_000) == ListGroupsResponse()


def test_broker_that_throttles_for_24_days_ends_in_a_time_out(mock: MockClient) -> None:
    """A throttled client sends nothing to the broker, as in Java, but a call must not wait that long."""
    mock.prepare_response(ListGroupsResponse(throttle_time_ms=2**31 - 1))
    requester = requester_of(mock)
    requester.send(ListGroupsRequest(), 1_000)
    before_ms = mock.clock.monotonic_ms()
    with pytest.raises(KafkaTimeoutError):
        requester.send(ListGroupsRequest(), 1_000)
    assert mock.clock.monotonic_ms() - before_ms < 2_000
