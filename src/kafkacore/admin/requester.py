"""Send requests to brokers and wait for their responses, in the thread of the caller."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from threading import RLock
from typing import Any, Final

from kafkacore.client import ClientRequest, ClientResponse, Metadata, NetworkClient
from kafkacore.clock import Clock
from kafkacore.errors import (
    IllegalStateError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    RetriableError,
    UnknownBrokerIdError,
)
from kafkacore.protocol import Request, RequestBuilder, request_class_of
from kafkacore.protocol.message import ResponseMessage, ResponseT
from kafkacore.structs import Node

logger = logging.getLogger(__name__)

#: Destinations that are not the id of a broker: the least loaded broker, and the controller. With KRaft,
#: every broker forwards requests to the controller.
ANY: Final = -1
CONTROLLER: Final = -2
#: Maximum time of one poll, in milliseconds, so that a wait notices that another thread closes the client.
_MAX_POLL_MS: Final = 100.0


class _Call:
    """A request and its destination, until it has a response or an error."""

    __slots__ = ("destination", "metadata_version", "outcome", "request")

    def __init__(self, destination: int, request: Request[Any]) -> None:
        self.destination = destination
        self.request = request
        self.outcome: ResponseMessage | KafkaError | None = None
        #: Version of the metadata in which the destination was missing; ``None`` if it has been found.
        self.metadata_version: int | None = None


class Requester:
    """Sends requests to brokers, several at the same time, and waits for their responses.

    Any thread may use it. Calls of several threads run one after the other.

    Parameters
    ----------
    client, metadata:
        The network client and the metadata that it updates.
    clock:
        Measures the time limits.
    bootstrap_servers:
        Addresses for the message of a time-out.
    request_timeout_ms:
        Maximum time to wait for one response before the request is sent again.
    """

    def __init__(
        self,
        client: NetworkClient,
        metadata: Metadata,
        clock: Clock,
        bootstrap_servers: str,
        request_timeout_ms: float,
    ) -> None:
        self._client = client
        self._metadata = metadata
        self.clock = clock
        self._bootstrap_servers = bootstrap_servers
        self._request_timeout_ms = request_timeout_ms
        self._lock = RLock()
        self._is_closed = False
        #: Addresses of brokers that responses have named, such as coordinators.
        self._nodes: dict[int, Node] = {}

    def close(self) -> None:
        """Close the connections. A call of another thread raises ``IllegalStateError``."""
        self._is_closed = True
        self._client.wakeup()
        with self._lock:
            self._client.close()

    def await_bootstrap(self, timeout_ms: float) -> None:
        """Wait until a broker has sent the cluster's metadata.

        Raises
        ------
        NoBrokersAvailable
            No broker responded within ``timeout_ms``.
        AuthenticationFailedError
            The broker rejected the client's credentials, or its own certificate is not valid.
        """
        self._metadata.request_update()
        deadline_ms = self.clock.monotonic_ms() + timeout_ms
        with self._lock:
            while self._metadata.fetch().is_bootstrap:
                self._check_open()
                now_ms = self.clock.monotonic_ms()
                if now_ms >= deadline_ms:
                    raise NoBrokersAvailable(
                        f"none of bootstrap_servers={self._bootstrap_servers!r} answered within "
                        f"bootstrap_timeout_ms={timeout_ms:.0f}: is the broker running, and reachable from "
                        f"here?{self._connection_errors()}"
                    )
                self._client.poll(min(deadline_ms - now_ms, _MAX_POLL_MS), now_ms)
                self._metadata.maybe_raise_any_error()

    # ---- Nodes -------------------------------------------------------------------------------------------

    def broker_ids(self, timeout_ms: float) -> list[int]:
        """Return the ids of all brokers, from metadata that is as new as the call."""
        self.refresh(self.clock.monotonic_ms() + timeout_ms)
        return sorted(node.node_id for node in self._metadata.fetch().nodes)

    def learn(self, node: Node) -> None:
        """Remember the address of a broker that a response has named."""
        self._nodes[node.node_id] = node

    def refresh(self, deadline_ms: float) -> None:
        """Fetch new metadata of the cluster, or return at the deadline."""
        version = self._metadata.request_update(reset_equivalent_backoff=True)
        with self._lock:
            while self._metadata.update_version <= version:
                self._check_open()
                now_ms = self.clock.monotonic_ms()
                if now_ms >= deadline_ms:
                    return
                self._client.poll(min(deadline_ms - now_ms, _MAX_POLL_MS), now_ms)
                self._metadata.maybe_raise_any_error()

    def pause(self, wait_ms: float) -> None:
        """Wait, while the client keeps its connections."""
        until_ms = self.clock.monotonic_ms() + wait_ms
        with self._lock:
            while (now_ms := self.clock.monotonic_ms()) < until_ms:
                self._check_open()
                self._client.poll(min(until_ms - now_ms, _MAX_POLL_MS), now_ms)

    # ---- Requests ----------------------------------------------------------------------------------------

    def send(self, request: Request[ResponseT], timeout_ms: float, destination: int = ANY) -> ResponseT:
        """Send ``request`` to a broker and return its response.

        A request whose connection is closed before the response arrives is sent again.

        Raises
        ------
        KafkaTimeoutError
            The broker did not respond within ``timeout_ms``. It may have executed the request nevertheless.
        AuthenticationFailedError
            The broker rejected the client's credentials, or its own certificate is not valid.
        UnsupportedVersionError
            The broker does not support the request.
        UnknownBrokerIdError
            The cluster has no broker with this id.
        """
        deadline_ms = self.clock.monotonic_ms() + timeout_ms
        outcome = self.send_all([(destination, request)], deadline_ms)[0]
        if isinstance(outcome, KafkaError):
            raise outcome
        answer: Any = outcome
        return answer  # type: ignore[no-any-return]

    def send_all(
        self,
        requests: Sequence[tuple[int, Request[Any]]],
        deadline_ms: float,
        *,
        is_resent: bool = True,
    ) -> list[ResponseMessage | KafkaError]:
        """Send requests to their destinations at the same time, and wait for all responses.

        Parameters
        ----------
        requests:
            Destinations with a request for each: ids of brokers, :data:`ANY` or :data:`CONTROLLER`.
        deadline_ms:
            Time limit by the clock, in milliseconds.
        is_resent:
            Whether a request is sent again when its connection fails. Otherwise its outcome is a
            :class:`KafkaConnectionError`, and the caller looks up the destination again.

        Returns
        -------
        list
            The response of each request, or the error that ended it.
        """
        started_ms = self.clock.monotonic_ms()
        calls = [_Call(destination, request) for destination, request in requests]
        in_flight: dict[ClientRequest, _Call] = {}
        with self._lock:
            while any(call.outcome is None for call in calls):
                self._check_open()
                now_ms = self.clock.monotonic_ms()
                if now_ms >= deadline_ms:
                    break
                waiting = [call for call in calls if call.outcome is None and call not in in_flight.values()]
                wait_ms = min(deadline_ms - now_ms, _MAX_POLL_MS)
                for call in waiting:
                    wait_ms = min(wait_ms, self._try_to_send(call, in_flight, now_ms, deadline_ms, is_resent))
                for response in self._client.poll(max(wait_ms, 0.0), now_ms):
                    answered = in_flight.pop(response.request, None)
                    if answered is not None:
                        answered.outcome = _outcome(response, is_resent)
        return [
            self._timed_out(call, deadline_ms - started_ms) if call.outcome is None else call.outcome
            for call in calls
        ]

    def _try_to_send(
        self,
        call: _Call,
        in_flight: dict[ClientRequest, _Call],
        now_ms: float,
        deadline_ms: float,
        is_resent: bool,
    ) -> float:
        """Send the request if its broker is ready, and return the milliseconds until the next attempt."""
        node = self._node(call, now_ms)
        if node is None:
            return _MAX_POLL_MS
        if self._client.ready(node, now_ms):
            left_ms = max(deadline_ms - now_ms, 1.0)
            request = self._client.new_client_request(
                node.node_id,
                call.request,
                now_ms,
                request_timeout_ms=min(left_ms, self._request_timeout_ms),
                max_version=call.request.max_version if isinstance(call.request, RequestBuilder) else None,
            )
            in_flight[request] = call
            self._client.send(request, now_ms)
            return _MAX_POLL_MS
        error = self._client.authentication_error(node)
        if error is not None and not isinstance(error, RetriableError):
            call.outcome = error
            return 0.0
        if not is_resent and self._client.connection_failed(node):
            call.outcome = KafkaConnectionError(
                f"broker {node.node_id} at {node.host}:{node.port} cannot be reached"
            )
            return 0.0
        return max(self._client.poll_delay_ms(node, now_ms), 1.0)

    def _node(self, call: _Call, now_ms: float) -> Node | None:
        if call.destination == ANY:
            return self._client.least_loaded_node(now_ms)
        cluster = self._metadata.fetch()
        if call.destination == CONTROLLER:
            return cluster.controller or self._client.least_loaded_node(now_ms)
        node = cluster.node_by_id(call.destination) or self._nodes.get(call.destination)
        if node is not None:
            return node
        version = self._metadata.update_version
        if call.metadata_version is None:
            call.metadata_version = version
            self._metadata.request_update(reset_equivalent_backoff=True)
        elif version > call.metadata_version:
            known = ", ".join(str(node.node_id) for node in cluster.nodes)
            call.outcome = UnknownBrokerIdError(
                f"the cluster has no broker with the id {call.destination}; its brokers are {known}"
            )
        return None

    def _timed_out(self, call: _Call, timeout_ms: float) -> KafkaTimeoutError:
        name = request_class_of(call.request).NAME
        broker = (
            f"no broker of {self._bootstrap_servers} answered"
            if call.destination in (ANY, CONTROLLER)
            else f"broker {call.destination} did not answer"
        )
        return KafkaTimeoutError(
            f"{broker} {name} within {timeout_ms:.0f} ms: is it running, and is the address right?"
            + self._connection_errors()
        )

    def _connection_errors(self) -> str:
        summary = self._client.connection_errors.summary()
        return f" ({summary})" if summary else ""

    def _check_open(self) -> None:
        if self._is_closed:
            raise IllegalStateError("this KafkaAdminClient is closed; create a new one")


def _outcome(response: ClientResponse, is_resent: bool) -> ResponseMessage | KafkaError | None:
    """Return the response or the error that ends a call; ``None`` if the request is to be sent again."""
    error = response.authentication_error
    if error is not None and not isinstance(error, RetriableError):
        return error
    if response.disconnected:
        logger.debug("%r: no response", response.request)
        if is_resent:
            return None
        return KafkaConnectionError(f"broker {response.request.node_id} closed the connection")
    if response.version_mismatch is not None:
        return response.version_mismatch
    message: ResponseMessage = response.message
    return message
