"""Handle the results of a selector poll for a network client.

The order matters: completed sends, responses, closed connections, new connections and timeouts. The behaviour
is that of the ``handle…`` methods of Kafka's ``NetworkClient``.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import TYPE_CHECKING, Any

from kafkacore.client._client_request import ClientRequest
from kafkacore.client.api_versions import NodeApiVersions, should_client_throttle
from kafkacore.client.connection_errors import reason_of, speaks_tls
from kafkacore.client.requests import ClientResponse, Completion
from kafkacore.errors import (
    CorrelationIdError,
    KafkaError,
    KafkaProtocolError,
    SslAuthenticationError,
    UnsupportedVersionError,
    for_code,
)
from kafkacore.logs import logger_of
from kafkacore.network import ChannelState, ConnectionPhase, NetworkReceive
from kafkacore.protocol import ApiKey, decode_response
from kafkacore.protocol.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from kafkacore.client.network_client import NetworkClient

logger = logger_of(__name__)

#: Size of the length field before each frame.
FRAME_SIZE_BYTES = 4


def handle_results(client: NetworkClient, now_ms: float, responses: MutableSequence[Completion]) -> None:
    """Handle the results of the last selector poll, and append completed requests to ``responses``."""
    if client.in_flight.unanswered_count:
        _completed_sends(client, now_ms, responses)
    _completed_receives(client, now_ms, responses)
    if client.selector.disconnected:
        _disconnections(client, now_ms, responses)
    if client.selector.connected:
        _connections(client, now_ms)
    if client.wanted_api_versions:
        client.send_api_versions(now_ms)
    if client.states.next_setup_deadline_ms() <= now_ms:
        _timed_out_connections(client, now_ms, responses)
    if client.in_flight.next_deadline_ms() <= now_ms:
        _timed_out_requests(client, now_ms, responses)


def complete(response: Completion) -> None:
    """Complete a request. If its callback raises, log the exception so that other callbacks still run."""
    try:
        response.on_complete()
    except Exception:
        logger.exception("the callback of %r raised an exception", response)


def _completed_sends(client: NetworkClient, now_ms: float, responses: MutableSequence[Completion]) -> None:
    for send in client.selector.completed_sends:
        node_id = client.node_id(send.destination_id)
        request = None if node_id is None else client.in_flight.last_sent(node_id)
        if request is not None and request.send is send and not request.expect_response:
            client.in_flight.complete_last_sent(request.node_id)
            responses.append(ClientResponse(request, now_ms))


# ---- Responses ---------------------------------------------------------------------------------------------


def _completed_receives(client: NetworkClient, now_ms: float, responses: MutableSequence[Completion]) -> None:
    for receive in client.selector.completed_receives:
        node_id = client.node_id(receive.source_id)
        if node_id is None:
            continue
        request = client.in_flight.oldest(node_id)
        try:
            if client.native_heartbeats.by_node and _handle_heartbeat(
                client, node_id, receive, now_ms, responses
            ):
                continue
            usual = None if request is None else request.usual_response
            if usual is not None and usual.read(receive.payload):
                message: Any = None
            else:
                usual = None
                message = _decode(request, receive.payload)
        except (KafkaProtocolError, UnsupportedVersionError) as error:
            # Close the connection, because later responses can no longer be matched with their requests.
            if client.states.is_preparing(node_id):
                client.connection_errors.failed(client.states.endpoint(node_id), str(error))
            else:
                logger.warning("closing the connection to node %d: %s", node_id, error)
            client.selector.close(receive.source_id)
            end_connection(client, node_id, now_ms, responses)
            continue
        assert request is not None
        if not request.is_internal:
            # Append the response before removing the request from the requests in flight. A Ctrl-C in between
            # then completes the request twice, which is harmless. In the other order, the request would never
            # be completed.
            responses.append(usual or ClientResponse(request, now_ms, message=message))
        client.in_flight.complete_next(node_id)
        throttle_ms = _apply_throttle_time(client, node_id, request, message, now_ms)
        if client.metrics is not None:
            size = len(receive.payload) + FRAME_SIZE_BYTES
            latency_ms = now_ms - request.sent_ms
            client.metrics.requests.response_received(node_id, size, latency_ms, throttle_ms, now_ms)
        if client.connection_errors.has_early_closes and request.api_key != ApiKey.API_VERSIONS:
            client.connection_errors.answered(client.states.endpoint(node_id))
        if request.is_internal and request.api_key == ApiKey.METADATA:
            client.updater.handle_response(request, message, now_ms)
        elif request.is_internal:
            _api_versions(client, node_id, request, message, now_ms, responses)


def _decode(request: ClientRequest | None, payload: memoryview) -> Any:
    if request is None:
        raise KafkaProtocolError("received a response, but no request is in flight")
    correlation_id, message = decode_response(payload, request.request_class, request.version)
    if correlation_id != request.correlation_id:
        raise CorrelationIdError(
            f"received correlation id {correlation_id}, expected {request.correlation_id}"
        )
    return message


def _handle_heartbeat(
    client: NetworkClient,
    node_id: int,
    receive: NetworkReceive,
    now_ms: float,
    responses: MutableSequence[Completion],
) -> bool:
    """Handle a received frame if it is the response to a native heartbeat; return whether it is one."""
    response = client.native_heartbeats.take(node_id, receive, now_ms, responses)
    if response is None:
        return False
    _apply_throttle_time(client, node_id, response.request, response.message, now_ms)
    return True


def _apply_throttle_time(
    client: NetworkClient, node_id: int, request: ClientRequest, message: Any, now_ms: float
) -> int:
    throttle_ms: int = getattr(message, "throttle_time_ms", 0)
    if throttle_ms > 0 and should_client_throttle(request.api_key, request.version):
        client.states.throttle(node_id, now_ms + throttle_ms)
        logger.debug("node %d throttles this client for %d ms", node_id, throttle_ms)
    return throttle_ms


def _api_versions(
    client: NetworkClient,
    node_id: int,
    request: ClientRequest,
    response: ApiVersionsResponse,
    now_ms: float,
    responses: MutableSequence[Completion],
) -> None:
    if not response.error_code:
        client.api_versions.update(node_id, NodeApiVersions(response))
        client.states.ready(node_id)
        client.connection_errors.succeeded(client.states.endpoint(node_id))
    elif response.error_code == UnsupportedVersionError.errno and request.version > 0:
        ranges = {entry.api_key: entry.max_version for entry in response.api_keys}
        named = ranges.get(ApiKey.API_VERSIONS, 0)
        # Never retry with the rejected version, even if a faulty broker announces it.
        client.wanted_api_versions[node_id] = named if 0 <= named < request.version else 0
    else:
        reason = f"the broker rejected the ApiVersions request: {for_code(response.error_code).message}"
        client.connection_errors.failed(client.states.endpoint(node_id), reason)
        client.selector.close(client.connection_id(node_id))
        end_connection(client, node_id, now_ms, responses)


# ---- Connections -------------------------------------------------------------------------------------------


def end_connection(
    client: NetworkClient,
    node_id: int,
    now_ms: float,
    responses: MutableSequence[Completion],
    *,
    timed_out: bool = False,
    error: KafkaError | None = None,
) -> None:
    """Handle a closed connection: fail its requests, start the back-off and request a metadata update.

    Parameters
    ----------
    client:
        The network client of the connection.
    node_id:
        The node that was connected.
    now_ms:
        Current time, in milliseconds.
    responses:
        List to which the failed requests are appended.
    timed_out:
        Whether the connection was closed because a request timed out.
    error:
        Error of the authentication, if it failed.
    """
    if error is not None:
        client.states.authentication_failed(node_id, now_ms, error)
    else:
        client.states.disconnected(node_id, now_ms)
    client.cancel_in_flight(node_id, now_ms, responses, timed_out=timed_out, error=error)
    client.forget_connection(node_id)
    client.updater.handle_server_disconnect(node_id, error)


def _disconnections(client: NetworkClient, now_ms: float, responses: MutableSequence[Completion]) -> None:
    for connection_id, state in client.selector.disconnected.items():
        node_id = client.node_id(connection_id)
        if node_id is not None:
            error = _authentication_error(state)
            if client.states.is_preparing(node_id):
                endpoint = client.states.endpoint(node_id)
                if speaks_tls(state) or client.connection_errors.expects_no_tls(endpoint, state.error):
                    error = SslAuthenticationError(reason_of(state))
                reason = reason_of(state) + client.via
                client.connection_errors.failed(endpoint, reason, is_final=error is not None)
            else:
                logger.info("node %d disconnected (%s): %s", node_id, state.phase.value, state.reason)
                if node_id < 0 and state.error is None and client.in_flight.count(node_id):
                    client.connection_errors.closed_early(client.states.endpoint(node_id))
            end_connection(client, node_id, now_ms, responses, error=error)


def _authentication_error(state: ChannelState) -> KafkaError | None:
    """Return the error of a failed authentication if no retry can succeed, else ``None``.

    A retry can succeed, for example, if a token was missing.
    """
    error = state.error
    if state.phase is not ConnectionPhase.AUTHENTICATION_FAILED or not isinstance(error, KafkaError):
        return None
    return None if error.retriable else error


def _connections(client: NetworkClient, now_ms: float) -> None:
    for connection_id in client.selector.connected:
        node_id = client.node_id(connection_id)
        if node_id is not None:
            if client.metrics is not None:
                client.metrics.connection_created(now_ms)
            client.states.checking_api_versions(node_id)
            client.wanted_api_versions[node_id] = ApiVersionsRequest.MAX_VERSION


def _timed_out_connections(
    client: NetworkClient, now_ms: float, responses: MutableSequence[Completion]
) -> None:
    for node_id in client.states.nodes_with_setup_timeout(now_ms):
        reason = f"the connection setup timed out{client.via}"
        client.connection_errors.failed(client.states.endpoint(node_id), reason)
        client.selector.close(client.connection_id(node_id))
        end_connection(client, node_id, now_ms, responses)


def _timed_out_requests(client: NetworkClient, now_ms: float, responses: MutableSequence[Completion]) -> None:
    for node_id in client.in_flight.nodes_with_expired_requests(now_ms):
        logger.info("node %d did not respond within the request timeout; closing the connection", node_id)
        client.selector.close(client.connection_id(node_id))
        end_connection(client, node_id, now_ms, responses, timed_out=True)
