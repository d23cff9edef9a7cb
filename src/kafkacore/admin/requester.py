"""Send requests to brokers and wait for their responses, in the thread of the caller."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from threading import Condition, get_ident
from typing import Any, Final

from kafkacore.client import ClientResponse, Cluster, Metadata, NetworkClient
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
from kafkacore.logs import logger_of
from kafkacore.protocol import Request, RequestBuilder, request_class_of
from kafkacore.protocol.message import ResponseMessage, ResponseT
from kafkacore.structs import Node

logger = logger_of(__name__)

#: Destinations that are not the id of a broker: the least loaded broker, and the controller. With KRaft,
#: every broker forwards requests to the controller.
ANY: Final = -1
CONTROLLER: Final = -2
#: Maximum time of one poll, in milliseconds. After it, a waiting thread checks whether the client was closed.
_MAX_POLL_MS: Final = 100.0


class _Call:
    """A request, its destination, and finally its response or error."""

    __slots__ = (
        "deadline_ms",
        "destination",
        "failure",
        "is_resent",
        "is_sent",
        "metadata_version",
        "outcome",
        "request",
    )

    def __init__(self, destination: int, request: Request[Any], deadline_ms: float, is_resent: bool) -> None:
        self.destination = destination
        self.request = request
        self.deadline_ms = deadline_ms
        self.is_resent = is_resent
        self.is_sent = False
        self.outcome: ResponseMessage | KafkaError | None = None
        #: The exception if the request cannot be encoded. It is raised in the thread that made the call.
        self.failure: Exception | None = None
        #: Version of the metadata in which the destination was missing; ``None`` if it has been found.
        self.metadata_version: int | None = None

    @property
    def is_done(self) -> bool:
        return self.outcome is not None or self.failure is not None

    def complete(self, response: ClientResponse) -> None:
        """Store the response or the error. If the request is to be retried, store no outcome."""
        self.is_sent = False
        self.outcome = _outcome(response, self.is_resent)


class Requester:
    """Sends requests to brokers, several at the same time, and waits for their responses.

    Any thread may use it, and calls of several threads run at the same time. One of the waiting threads polls
    the network for all of them.

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
        self.client = client
        self._metadata = metadata
        self.clock = clock
        self._bootstrap_servers = bootstrap_servers
        self._request_timeout_ms = request_timeout_ms
        #: Guards ``_poller``, and notifies the waiting threads that a poll has ended.
        self._turn = Condition()
        #: The thread that polls the network, or ``None``.
        self._poller: int | None = None
        #: The calls of all threads that have no outcome yet.
        self._calls: list[_Call] = []
        self._is_closed = False
        self._pid = os.getpid()
        #: Addresses of brokers that responses have named, such as coordinators.
        self._nodes: dict[int, Node] = {}

    @property
    def is_forked(self) -> bool:
        """Whether this is a forked child. The connections belong to the parent process."""
        return os.getpid() != self._pid

    def close(self) -> None:
        """Close the connections. A call of another thread raises ``IllegalStateError``."""
        self._is_closed = True
        if self.is_forked:
            return
        self.client.wakeup()
        with self._turn:
            while self._poller not in (None, get_ident()):
                self._turn.wait(_MAX_POLL_MS / 1000)
            self.client.close()
            self._turn.notify_all()

    def await_bootstrap(self, timeout_ms: float) -> None:
        """Wait until a broker has sent the cluster's metadata.

        Raises
        ------
        NoBrokersAvailable
            No broker responded within ``timeout_ms``.
        AuthenticationFailedError
            The broker rejected the client's credentials, or the broker's certificate is not valid.
        """
        self._metadata.request_update()
        deadline_ms = self.clock.monotonic_ms() + timeout_ms
        if not self._poll_until(lambda: not self._fetched().is_bootstrap, deadline_ms):
            raise NoBrokersAvailable(
                f"none of bootstrap_servers={self._bootstrap_servers!r} answered within "
                f"bootstrap_timeout_ms={timeout_ms:.0f}: is the broker running, and reachable from "
                f"here?{self._connection_errors()}"
            )

    # ---- Nodes -------------------------------------------------------------------------------------------

    def broker_ids(self, timeout_ms: float) -> list[int]:
        """Return the ids of all brokers, from metadata that this call requests.

        Raises
        ------
        KafkaTimeoutError
            No broker responded within ``timeout_ms``.
        """
        if not self.refresh(self.clock.monotonic_ms() + timeout_ms):
            raise KafkaTimeoutError(
                f"no broker of {self._bootstrap_servers} answered MetadataRequest within "
                f"{timeout_ms:.0f} ms: is it running, and is the address right?{self._connection_errors()}"
            )
        return sorted(node.node_id for node in self._metadata.fetch().nodes)

    def learn(self, node: Node) -> None:
        """Remember the address of a broker that a response has named."""
        self._nodes[node.node_id] = node

    def refresh(self, deadline_ms: float) -> bool:
        """Fetch new metadata of the cluster, and return whether it arrived before the deadline."""
        version = self._metadata.request_update(reset_equivalent_backoff=True)

        def is_newer() -> bool:
            self._metadata.maybe_raise_any_error()
            return self._metadata.update_version > version

        return self._poll_until(is_newer, deadline_ms)

    def _fetched(self) -> Cluster:
        self._metadata.maybe_raise_any_error()
        return self._metadata.fetch()

    def pause(self, wait_ms: float) -> None:
        """Wait for ``wait_ms``, while the network is polled so that the connections stay open."""
        self._poll_until(lambda: False, self.clock.monotonic_ms() + wait_ms)

    # ---- Requests ----------------------------------------------------------------------------------------

    def send(self, request: Request[ResponseT], timeout_ms: float, destination: int = ANY) -> ResponseT:
        """Send ``request`` to a broker and return its response.

        If the connection closes before the response arrives, the request is sent again.

        Raises
        ------
        KafkaTimeoutError
            The broker did not respond within ``timeout_ms``. The broker may have executed the request
            nevertheless.
        AuthenticationFailedError
            The broker rejected the client's credentials, or the broker's certificate is not valid.
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
            The response to each request, or the error with which the request failed.
        """
        started_ms = self.clock.monotonic_ms()
        calls = [_Call(destination, request, deadline_ms, is_resent) for destination, request in requests]
        try:
            with self._turn:
                self._calls = self._calls + calls
                if self._poller is not None:
                    # Interrupt the poll of the other thread. Its next poll sends these requests.
                    self.client.wakeup()
            self._poll_until(lambda: all(call.is_done for call in calls), deadline_ms)
        finally:
            with self._turn:
                self._calls = [call for call in self._calls if call not in calls]
        for call in calls:
            if call.failure is not None:
                raise call.failure
        return [
            self._timed_out(call, deadline_ms - started_ms) if call.outcome is None else call.outcome
            for call in calls
        ]

    def _poll_until(self, is_done: Callable[[], bool], deadline_ms: float) -> bool:
        """Poll the network, or wait while another thread does. Return whether ``is_done`` returned true."""
        while True:
            self._check_open()
            if is_done():
                return True
            now_ms = self.clock.monotonic_ms()
            if now_ms >= deadline_ms:
                return False
            left_ms = min(deadline_ms - now_ms, _MAX_POLL_MS)
            with self._turn:
                # If this thread is the poller, a signal handler has called the client inside a poll.
                if self._poller not in (None, get_ident()):
                    self._turn.wait(left_ms / 1000)
                    continue
                poller, self._poller = self._poller, get_ident()
            try:
                self._poll_once(left_ms)
            finally:
                with self._turn:
                    self._poller = poller
                    self._turn.notify_all()

    def _poll_once(self, wait_ms: float) -> None:
        """Send the due requests of all threads, and handle the data that brokers have sent."""
        self._check_open()
        now_ms = self.clock.monotonic_ms()
        for call in self._calls:
            if call.is_sent or call.is_done or now_ms >= call.deadline_ms:
                continue
            try:
                wait_ms = min(wait_ms, self._try_to_send(call, now_ms))
            except Exception as error:  # noqa: BLE001 - raised in the thread that made the call
                call.failure = error
            if call.is_done:
                wait_ms = 0.0
        self.client.poll(max(wait_ms, 0.0), now_ms)

    def _try_to_send(self, call: _Call, now_ms: float) -> float:
        """Send the request if its broker is ready, and return the milliseconds until the next attempt."""
        node = self._node(call, now_ms)
        if node is None:
            return _MAX_POLL_MS
        if self.client.ready(node, now_ms):
            left_ms = max(call.deadline_ms - now_ms, 1.0)
            request = self.client.new_client_request(
                node.node_id,
                call.request,
                now_ms,
                request_timeout_ms=min(left_ms, self._request_timeout_ms),
                callback=call.complete,
                max_version=call.request.max_version if isinstance(call.request, RequestBuilder) else None,
            )
            self.client.send(request, now_ms)
            call.is_sent = True
            return _MAX_POLL_MS
        error = self.client.authentication_error(node)
        if error is not None and not isinstance(error, RetriableError):
            call.outcome = error
            return 0.0
        if not call.is_resent and self.client.connection_failed(node):
            call.outcome = KafkaConnectionError(
                f"broker {node.node_id} at {node.host}:{node.port} cannot be reached"
            )
            return 0.0
        return max(self.client.poll_delay_ms(node, now_ms), 1.0)

    def _node(self, call: _Call, now_ms: float) -> Node | None:
        if call.destination == ANY:
            return self.client.least_loaded_node(now_ms)
        cluster = self._metadata.fetch()
        if call.destination == CONTROLLER:
            return cluster.controller or self.client.least_loaded_node(now_ms)
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
        summary = self.client.connection_errors.summary()
        return f" ({summary})" if summary else ""

    def _check_open(self) -> None:
        if self.is_forked:
            raise IllegalStateError(
                "this KafkaAdminClient was created before fork(): its connections belong to the parent "
                "process; create a new one in the child"
            )
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
        what = "did not answer" if response.timed_out else "closed the connection"
        return KafkaConnectionError(f"broker {response.request.node_id} {what}")
    if response.version_mismatch is not None:
        return response.version_mismatch
    message: ResponseMessage = response.message
    return message
