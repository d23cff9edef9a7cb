"""NetworkClient on a scripted network with virtual time, with the cases of Kafka's NetworkClientTest."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacore.client import ClientResponse
from kafkacore.client.requests import HEARTBEAT_CORRELATION_IDS, MAX_CORRELATION_ID, CorrelationIds
from kafkacore.errors import CredentialsUnavailableError, IllegalStateError, SaslAuthenticationFailedError
from kafkacore.network import ConnectionPhase
from kafkacore.protocol import encode_response
from kafkacore.protocol.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kafkacore.protocol.generated.metadata import MetadataRequest, MetadataResponse
from kafkacore.protocol.generated.produce import ProduceRequest
from kafkacore.structs import Node
from kafkacore.testing.mock_client import MockClient

BOOTSTRAP = Node(-1, "node0", 9092)


def connected(**options: Any) -> MockClient:
    mock = MockClient(**options)
    mock.connect()
    return mock


def now(mock: MockClient) -> float:
    return mock.clock.monotonic_ms()


# ---- Requests and responses --------------------------------------------------------------------------------


def test_a_request_is_answered() -> None:
    mock = connected()
    ended = mock.send(0, ListOffsetsRequest())
    mock.poll()
    mock.respond(ListOffsetsResponse(throttle_time_ms=0))
    assert mock.poll() == ended
    (response,) = ended
    assert isinstance(response.message, ListOffsetsResponse)
    assert (response.disconnected, response.timed_out, response.version_mismatch) == (False, False, None)
    assert response.version == ListOffsetsRequest.MAX_VERSION
    assert mock.requests[-1].client_id == "kafkacore"
    assert mock.client.in_flight_request_count() == 0


@pytest.mark.behaviour("NetworkClient", "a send to a node that is not ready is rejected")
def test_sending_to_a_node_that_is_not_ready_is_refused() -> None:
    mock = MockClient()
    request = mock.client.new_client_request(0, ListOffsetsRequest(), now(mock))
    with pytest.raises(IllegalStateError, match="node 0 is not ready"):
        mock.client.send(request, now(mock))


def test_requests_to_one_node_are_bounded_and_written_one_by_one() -> None:
    mock = connected(max_in_flight_requests_per_connection=2)
    node = mock.nodes[0]
    mock.selector.hold_writes = True
    mock.send(0, ListOffsetsRequest())
    mock.poll()
    assert not mock.client.is_ready(node, now(mock)), "the first request is not written yet"
    mock.selector.hold_writes = False
    mock.poll()
    mock.send(0, ListOffsetsRequest())
    mock.poll()
    assert not mock.client.is_ready(node, now(mock)), "two requests are in flight"
    mock.respond(ListOffsetsResponse())
    mock.poll()
    assert mock.client.is_ready(node, now(mock))


def test_a_request_without_a_response_is_complete_when_it_is_written() -> None:
    mock = connected()
    ended = mock.send(0, ProduceRequest(acks=0), expect_response=False)
    mock.poll()
    assert [(each.message, each.disconnected) for each in ended] == [(None, False)]
    assert mock.client.in_flight_request_count(0) == 0


def test_a_flush_completes_what_expects_no_response() -> None:
    mock = connected()
    ended = mock.send(0, ProduceRequest(acks=0), expect_response=False)
    mock.client.flush(now(mock))
    assert len(ended) == 1
    ended = mock.send(0, ListOffsetsRequest())
    mock.client.flush(now(mock))
    assert ended == []


def test_a_version_that_the_broker_does_not_know_ends_the_request_unsent() -> None:
    mock = MockClient()
    mock.api_versions = ApiVersionsResponse(
        api_keys=[
            entry
            for entry in mock.api_versions.api_keys
            if entry.api_key in (MetadataRequest.API_KEY, ApiVersionsRequest.API_KEY)
        ]
    )
    mock.connect()
    ended = mock.send(0, ListOffsetsRequest())
    assert ended == [], "callbacks must run inside poll"
    assert mock.poll() == ended
    assert "does not support ListOffsets" in str(ended[0].version_mismatch)
    assert mock.requests_of(ListOffsetsRequest) == []


def test_the_version_is_the_newest_that_both_know_and_the_caller_allows() -> None:
    mock = MockClient()
    for entry in mock.api_versions.api_keys:
        if entry.api_key == ListOffsetsRequest.API_KEY:
            entry.max_version = 4
    mock.connect()
    mock.send(0, ListOffsetsRequest())
    mock.poll()
    mock.send(0, ListOffsetsRequest(), max_version=2)
    mock.poll()
    assert [each.version for each in mock.requests_of(ListOffsetsRequest)] == [4, 2]


def test_a_callback_that_raises_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    mock = connected(max_in_flight_requests_per_connection=5)

    def fail(response: ClientResponse) -> None:
        raise RuntimeError("the user's")

    failing = mock.client.new_client_request(0, ListOffsetsRequest(), now(mock), callback=fail)
    mock.client.send(failing, now(mock))
    mock.poll()
    ended = mock.send(0, ListOffsetsRequest())
    mock.poll()
    mock.respond(ListOffsetsResponse())
    mock.respond(ListOffsetsResponse())
    mock.poll()
    assert len(ended) == 1
    assert "the user's" in caplog.text


@pytest.mark.parametrize("tamper", ["correlation", "truncated", "unasked"])
def test_an_answer_that_cannot_be_paired_ends_the_connection(tamper: str) -> None:
    mock = connected()
    ended = mock.send(0, ListOffsetsRequest())
    mock.poll()
    sent = mock.requests[-1]
    payload = sent.correlation_id.to_bytes(4, "big") + b"\x00" + bytes(4) + b"\x01\x00"
    if tamper == "correlation":
        payload = (sent.correlation_id + 1).to_bytes(4, "big") + payload[4:]
    elif tamper == "truncated":
        payload = payload[:-2]
    else:
        mock.selector.receive(sent.connection_id, payload)
    mock.selector.receive(sent.connection_id, payload)
    mock.poll()
    assert [each.disconnected for each in ended] == ([False] if tamper == "unasked" else [True])
    assert sent.connection_id in mock.selector.closed
    assert mock.client.connection_failed(mock.nodes[0])


# ---- Timeouts and disconnects ------------------------------------------------------------------------------


@pytest.mark.behaviour(
    "NetworkClient",
    "a request that times out closes its connection and fails all its requests, oldest first",
)
def test_a_request_time_out_closes_the_connection_and_fails_its_requests_in_order() -> None:
    mock = connected(request_timeout_ms=1000)
    ended: list[ClientResponse] = []
    requests = [
        mock.client.new_client_request(
            0, ListOffsetsRequest(), now(mock), callback=ended.append, request_timeout_ms=timeout_ms
        )
        for timeout_ms in (5000, 1000, 3000)
    ]
    for request in requests:
        mock.client.send(request, now(mock))
        mock.poll()
    mock.clock.advance(999)
    mock.poll()
    assert ended == []
    mock.clock.advance(1)
    mock.poll()
    assert [each.request for each in ended] == requests
    assert all(each.disconnected and each.timed_out for each in ended)
    assert mock.requests[-1].connection_id in mock.selector.closed
    assert mock.client.connection_failed(mock.nodes[0])


def test_poll_waits_no_longer_than_the_next_request_may() -> None:
    mock = connected(request_timeout_ms=30_000)
    ended = mock.send(0, ListOffsetsRequest(), request_timeout_ms=700)
    mock.poll()
    before_ms = now(mock)
    while not ended:
        mock.poll(60_000)
    assert now(mock) - before_ms <= 701


def test_a_lost_connection_fails_its_requests_and_asks_for_metadata() -> None:
    mock = connected(node_count=2)
    ended = mock.send(0, ListOffsetsRequest())
    other = mock.send(1, ListOffsetsRequest())
    mock.poll()
    mock.disconnect(0)
    mock.poll()
    assert [(each.disconnected, each.timed_out) for each in ended] == [(True, False)]
    assert other == []
    assert mock.metadata.update_requested


@pytest.mark.behaviour(
    "NetworkClient",
    "a caller that sends its own metadata request is informed of a lost connection",
)
def test_the_users_metadata_request_is_not_swallowed_when_the_connection_is_lost() -> None:
    mock = connected()
    ended = mock.send(0, MetadataRequest(topics=[]))
    mock.selector.hold_writes = True
    mock.poll()
    mock.disconnect(0)
    mock.poll()
    assert [each.disconnected for each in ended] == [True]


@pytest.mark.behaviour(
    "NetworkClient",
    "a caller that sends its own metadata request is informed of a lost connection",
)
def test_a_lost_request_of_the_updater_is_asked_again_after_a_back_off_and_shown_to_nobody() -> None:
    mock = MockClient(reconnect_backoff_ms=50)
    mock.prepare_response(MetadataResponse, disconnected=True)
    responses = mock.poll_until(lambda: bool(mock.requests_of(MetadataRequest)))
    mock.poll()
    # The reconnect back-off of the node ends before the metadata back-off.
    assert 80 <= mock.metadata.time_to_next_update(now(mock)) <= 120
    responses += mock.poll_until(lambda: not mock.metadata.fetch().is_bootstrap)
    assert responses == []
    assert len(mock.requests_of(MetadataRequest)) == 2


@pytest.mark.behaviour("NetworkClient", "closing a node drops its requests; it can be connected again")
def test_closing_a_node_drops_its_requests_and_a_later_connect_works() -> None:
    mock = connected()
    ended = mock.send(0, ListOffsetsRequest())
    mock.poll()
    mock.client.close(0)
    assert mock.poll() == []
    assert ended == []
    assert mock.client.in_flight_request_count() == 0
    mock.poll_until(lambda: mock.client.ready(mock.nodes[0], now(mock)))
    again = mock.send(0, ListOffsetsRequest())
    mock.poll()
    mock.unanswered.popleft()
    mock.respond(ListOffsetsResponse())
    mock.poll()
    assert len(again) == 1


def test_disconnecting_fails_the_requests_in_the_next_poll() -> None:
    mock = connected()
    ended = mock.send(0, ListOffsetsRequest())
    mock.poll()
    mock.client.disconnect(0)
    assert ended == []
    mock.poll()
    assert [each.disconnected for each in ended] == [True]


def test_a_closed_client_refuses_to_work() -> None:
    mock = connected()
    mock.client.close()
    mock.client.close()
    with pytest.raises(IllegalStateError, match="closed"):
        mock.poll()
    assert mock.metadata.is_closed


# ---- ApiVersions -------------------------------------------------------------------------------------------


def unsupported_version(named: int | None) -> ApiVersionsResponse:
    ranges = [] if named is None else [
        ApiVersionsResponse.ApiVersion(
            api_key=ApiVersionsRequest.API_KEY, min_version=0, max_version=named
        )
    ]  # fmt: skip
    return ApiVersionsResponse(error_code=35, api_keys=ranges)


@pytest.mark.behaviour(
    "NetworkClient",
    "if the ApiVersions version is not supported, one retry uses the version that the broker names, or 0",
)
@pytest.mark.parametrize(("named", "expected"), [(2, 2), (None, 0), (9, 0)])
def test_an_unsupported_api_versions_falls_back_to_the_version_that_the_broker_names_else_0(
    named: int | None, expected: int
) -> None:
    mock = MockClient()
    first: list[Any] = []

    original = mock.selector.on_request
    assert original is not None

    def on_request(connection_id: str, header: Any, message: Any) -> None:
        if isinstance(message, ApiVersionsRequest) and not first:
            first.append(header)
            body = unsupported_version(named)
            # The response has version 0, whatever the version of the request (KIP-511).
            mock.selector.receive(connection_id, b"".join(encode_response(body, 0, header.correlation_id)))
        else:
            original(connection_id, header, message)

    mock.selector.on_request = on_request
    mock.connect()
    assert first[0].request_api_version == ApiVersionsRequest.MAX_VERSION
    assert [each.version for each in mock.requests_of(ApiVersionsRequest)] == [expected]
    assert mock.selector.closed == []


@pytest.mark.behaviour(
    "NetworkClient",
    "if the ApiVersions version is not supported, one retry uses the version that the broker names, or 0",
)
def test_an_api_versions_that_is_refused_in_version_0_too_ends_the_connection() -> None:
    mock = MockClient()
    mock.selector.on_request = None
    seen: list[int] = []

    def on_request(connection_id: str, header: Any, message: Any) -> None:
        seen.append(header.request_api_version)
        answer = encode_response(unsupported_version(None), 0, header.correlation_id)
        mock.selector.receive(connection_id, b"".join(answer))

    mock.selector.on_request = on_request
    mock.poll_until(lambda: bool(mock.selector.closed))
    assert seen == [ApiVersionsRequest.MAX_VERSION, 0]


def test_nothing_else_is_sent_before_api_versions_is_answered() -> None:
    mock = MockClient()
    mock.selector.on_request = None
    for _ in range(5):
        mock.poll(10)
    assert not mock.client.ready(BOOTSTRAP, now(mock))
    request = mock.client.new_client_request(-1, ListOffsetsRequest(), now(mock))
    with pytest.raises(IllegalStateError):
        mock.client.send(request, now(mock))


@pytest.mark.behaviour("NetworkClient", "the connection setup timeout includes the ApiVersions exchange")
def test_the_set_up_time_out_ends_a_connection_that_does_not_come() -> None:
    mock = MockClient(connection_setup_timeout_ms=1000)
    mock.selector.silent.add("ip-node0")
    mock.poll()
    before_ms = now(mock)
    mock.poll_until(lambda: bool(mock.selector.closed))
    assert 800 <= now(mock) - before_ms <= 1300


@pytest.mark.behaviour("NetworkClient", "the connection setup timeout includes the ApiVersions exchange")
def test_the_set_up_time_out_also_ends_a_channel_stuck_in_version_checking() -> None:
    mock = MockClient(connection_setup_timeout_ms=1000)
    mock.selector.on_request = None
    before_ms = now(mock)
    mock.poll_until(lambda: bool(mock.selector.closed))
    assert 800 <= now(mock) - before_ms <= 1300


# ---- Back-off and addresses --------------------------------------------------------------------------------


@pytest.mark.behaviour(
    "NetworkClient",
    "the reconnect back-off is exponential, jittered and bounded, and is reset once the node is ready",
)
def test_reconnect_back_off_grows_with_jitter_is_capped_and_resets_on_success() -> None:
    mock = MockClient(reconnect_backoff_ms=100, reconnect_backoff_max_ms=1000)
    node = mock.nodes[0]
    mock.selector.refused.add("ip-node0")
    waits = []
    for _ in range(7):
        while not mock.client.can_connect(node, now(mock)):
            mock.clock.advance(1)
        mock.client.ready(node, now(mock))
        mock.poll()
        waits.append(mock.client.connection_delay(node, now(mock)))
    for wait_ms, expected_ms in zip(waits, [100, 200, 400, 800, 1000, 1000, 1000], strict=True):
        assert expected_ms * 0.8 <= wait_ms <= min(expected_ms * 1.2, 1000)
    assert len(set(waits[:4])) == 4
    mock.selector.refused.clear()
    mock.clock.advance(1000)
    mock.poll_until(lambda: mock.client.ready(node, now(mock)))
    mock.disconnect(0)
    mock.poll()
    assert 80 <= mock.client.connection_delay(node, now(mock)) <= 120


@pytest.mark.behaviour(
    "NetworkClient",
    "the reconnect back-off is exponential, jittered and bounded, and is reset once the node is ready",
)
def test_a_second_disconnect_does_not_reset_the_back_off() -> None:
    mock = connected(reconnect_backoff_ms=100)
    node = mock.nodes[0]
    mock.client.disconnect(0)
    before_ms = mock.client.connection_delay(node, now(mock))
    mock.clock.advance(50)
    mock.client.disconnect(0)
    assert mock.client.connection_delay(node, now(mock)) == pytest.approx(before_ms - 50)
    mock.client.disconnect(77)


@pytest.mark.behaviour(
    "NetworkClient",
    "the addresses of a host are tried one by one; its name is resolved again after the last one",
)
def test_a_failed_address_tries_the_next_and_dns_is_asked_again_only_after_all() -> None:
    asked: list[str] = []

    def resolver(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["10.0.0.1", "10.0.0.2", "10.0.0.3"]

    mock = MockClient(resolver=resolver)
    mock.selector.refused |= {"10.0.0.1", "10.0.0.2", "10.0.0.3"}
    mock.poll_until(lambda: len(mock.selector.attempts) == 4)
    assert [address for _, (address, _) in mock.selector.attempts] == [
        "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.1",
    ]  # fmt: skip
    assert asked == ["node0", "node0"]


def test_dns_is_asked_again_after_a_connection_that_stood_has_ended() -> None:
    answers = iter([["10.0.0.1", "10.0.0.2"], ["10.0.0.9"]])
    mock = MockClient(resolver=lambda host, port: next(answers))
    mock.connect()
    mock.disconnect(0)
    mock.poll()
    mock.poll_until(lambda: mock.client.ready(mock.nodes[0], now(mock)))
    assert [address for _, (address, _) in mock.selector.attempts] == ["10.0.0.1", "10.0.0.9"]


def test_a_name_that_does_not_resolve_backs_off_like_a_refused_connection() -> None:
    def resolver(host: str, port: int) -> list[str]:
        raise OSError("name or service not known")

    mock = MockClient(resolver=resolver)
    mock.poll()
    assert mock.client.connection_failed(BOOTSTRAP)
    assert mock.client.connection_delay(BOOTSTRAP, now(mock)) > 0
    assert mock.selector.attempts == []


def test_a_failed_authentication_is_told_to_who_waits_for_metadata_and_to_the_node() -> None:
    mock = connected()
    ended = mock.send(0, ListOffsetsRequest())
    mock.poll()
    error = SaslAuthenticationFailedError("no such user")
    connection_id = mock.client.connection_id(0)
    mock.selector.end(connection_id, ConnectionPhase.AUTHENTICATION_FAILED, "no", error)
    mock.poll()
    assert ended[0].authentication_error is error
    assert mock.client.authentication_error(mock.nodes[0]) is error
    with pytest.raises(SaslAuthenticationFailedError):
        mock.metadata.maybe_raise_any_error()
    mock.metadata.maybe_raise_any_error()


def test_a_token_that_has_not_come_yet_is_a_connection_to_be_tried_again() -> None:
    mock = connected()
    ended = mock.send(0, ListOffsetsRequest())
    mock.poll()
    error = CredentialsUnavailableError(
        "the token did not arrive within 500 ms; the next connection attempt asks for it again"
    )
    mock.selector.end(mock.client.connection_id(0), ConnectionPhase.AUTHENTICATION_FAILED, str(error), error)
    mock.poll()
    assert (ended[0].disconnected, ended[0].authentication_error) == (True, None)
    assert mock.client.authentication_error(mock.nodes[0]) is None
    assert mock.client.connection_failed(mock.nodes[0])
    mock.metadata.maybe_raise_any_error()


# ---- Choice of a node --------------------------------------------------------------------------------------


@pytest.mark.behaviour(
    "NetworkClient",
    "the least loaded node is the ready one with the fewest requests, never a throttled one; "
    "unconnected nodes take turns",
)
def test_the_least_loaded_node_is_ready_with_the_fewest_requests() -> None:
    mock = connected(node_count=3, max_in_flight_requests_per_connection=3)
    for node_id, count in [(0, 2), (1, 1), (2, 3)]:
        for _ in range(count):
            mock.send(node_id, ListOffsetsRequest())
            mock.poll()
    for _ in range(10):
        assert mock.client.least_loaded_node(now(mock)) == mock.nodes[1]


@pytest.mark.behaviour(
    "NetworkClient",
    "the least loaded node is the ready one with the fewest requests, never a throttled one; "
    "unconnected nodes take turns",
)
def test_the_least_loaded_node_is_not_one_that_is_throttled() -> None:
    mock = connected(node_count=2)
    mock.client.states.throttle(0, now(mock) + 1000)
    for _ in range(10):
        assert mock.client.least_loaded_node(now(mock)) == mock.nodes[1]


def test_any_idle_node_can_be_the_least_loaded() -> None:
    mock = connected(node_count=3)
    assert {mock.client.least_loaded_node(now(mock)) for _ in range(100)} == set(mock.nodes)


def test_a_node_that_is_connecting_comes_before_one_that_could_be_tried() -> None:
    mock = connected(node_count=3, reconnect_backoff_ms=100)
    for node_id in range(3):
        mock.client.disconnect(node_id)
    mock.clock.advance(1000)
    mock.selector.silent.add("ip-node1")
    mock.client.initiate_connect(mock.nodes[1], now(mock))
    for _ in range(10):
        assert mock.client.least_loaded_node(now(mock)) == mock.nodes[1]


@pytest.mark.behaviour(
    "NetworkClient",
    "the least loaded node is the ready one with the fewest requests, never a throttled one; "
    "unconnected nodes take turns",
)
def test_each_disconnected_node_gets_its_turn_by_last_attempt() -> None:
    mock = connected(node_count=3, reconnect_backoff_ms=10, reconnect_backoff_max_ms=10)
    for node_id in range(3):
        mock.client.disconnect(node_id)
    turns = []
    for _ in range(9):
        mock.clock.advance(100)
        node = mock.client.least_loaded_node(now(mock))
        assert node is not None
        turns.append(node.node_id)
        mock.client.initiate_connect(node, now(mock))
        mock.client.disconnect(node.node_id)
    assert turns[:3] == turns[3:6] == turns[6:]
    assert set(turns) == {0, 1, 2}


def test_there_is_no_least_loaded_node_while_all_back_off() -> None:
    mock = connected(reconnect_backoff_ms=1000)
    mock.client.disconnect(0)
    assert mock.client.least_loaded_node(now(mock)) is None


# ---- Throttling --------------------------------------------------------------------------------------------


@pytest.mark.behaviour(
    "NetworkClient",
    "sends wait for the end of the throttle time, unless an older broker has already delayed the response",
)
def test_throttle_time_blocks_sends_until_it_ends() -> None:
    mock = connected()
    node = mock.nodes[0]
    mock.prepare_response(ListOffsetsResponse(throttle_time_ms=500))
    mock.send(0, ListOffsetsRequest())
    mock.poll()
    mock.poll()
    assert not mock.client.ready(node, now(mock))
    assert mock.client.poll_delay_ms(node, now(mock)) == 500
    mock.clock.advance(499)
    assert not mock.client.ready(node, now(mock))
    mock.clock.advance(1)
    assert mock.client.ready(node, now(mock))


@pytest.mark.behaviour(
    "NetworkClient",
    "sends wait for the end of the throttle time, unless an older broker has already delayed the response",
)
def test_throttle_time_of_an_older_broker_has_passed_already() -> None:
    mock = connected()
    mock.prepare_response(ListOffsetsResponse(throttle_time_ms=500))
    ended = mock.send(0, ListOffsetsRequest(), max_version=2)
    mock.poll()
    mock.poll()
    assert ended[0].message.throttle_time_ms == 500
    assert mock.client.ready(mock.nodes[0], now(mock))


# ---- Correlation ids ---------------------------------------------------------------------------------------


@pytest.mark.behaviour("NetworkClient", "correlation ids restart at 0 below those reserved for SASL")
def test_correlation_ids_wrap_and_never_enter_the_range_of_sasl() -> None:
    ids = CorrelationIds(start=MAX_CORRELATION_ID - 1)
    assert [ids.next() for _ in range(4)] == [MAX_CORRELATION_ID - 1, MAX_CORRELATION_ID, 0, 1]
    assert HEARTBEAT_CORRELATION_IDS.start > MAX_CORRELATION_ID
    assert HEARTBEAT_CORRELATION_IDS.stop <= 2**31 - 8


def test_wakeup_reaches_the_selector() -> None:
    mock = connected()
    mock.client.wakeup()
    before_ms = now(mock)
    mock.poll(10_000)
    assert now(mock) == before_ms
