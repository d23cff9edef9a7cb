"""Sends the consumer's requests; all I/O and all callbacks happen in :meth:`ConsumerNetworkClient.poll`.

A request waits in the queue of its node until the connection is ready. Futures are completed only after the
network client has returned, so that a callback may send and poll. This is Kafka's ``ConsumerNetworkClient``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from kafkacore.client import ClientRequest, ClientResponse, Metadata, NetworkClient
from kafkacore.clock import SIGNAL_SLICE_S, Clock
from kafkacore.consumer._request_future import CallbackInterruptedError, RequestFuture
from kafkacore.consumer.timer import Timer
from kafkacore.errors import (
    IllegalStateError,
    KafkaConnectionError,
    KafkaTimeoutError,
    WakeupError,
)
from kafkacore.network import NativeHeartbeat
from kafkacore.protocol import Request
from kafkacore.structs import Node, TopicPartition, printable

if TYPE_CHECKING:
    from kafkacore.client.native_heartbeats import HeartbeatMessage

T = TypeVar("T")

#: Longest wait, in milliseconds. If a signal arrives just before the wait begins, its handler runs only after
#: the wait.
MAX_POLL_TIMEOUT_MS = SIGNAL_SLICE_S * 1000.0


class ConsumerClosingError(IllegalStateError):
    """Another thread closes the consumer, which ends the running call."""


class _Pending:
    """A future that is about to be completed, with its response or error."""

    __slots__ = ("error", "future", "response")

    def __init__(
        self,
        future: RequestFuture[ClientResponse],
        response: ClientResponse | None,
        error: BaseException | None,
    ) -> None:
        self.future = future
        self.response = response
        self.error = error

    def fire(self) -> None:
        if self.future.is_done():
            self.future.fire_rest()  # A Ctrl-C interrupted the future's callbacks, or came just after them.
            return
        if self.error is not None:
            self.future.fail(self.error)
        else:
            assert self.response is not None
            self.future.complete(self.response)


class ConsumerNetworkClient:
    """The only part of a consumer that uses the network.

    Parameters
    ----------
    client, metadata:
        The network client that the consumer uses, and its metadata.
    clock:
        Source of time for deadlines.
    retry_backoff_ms, request_timeout_ms:
        The settings of the same names, in milliseconds.
    """

    def __init__(
        self,
        client: NetworkClient,
        metadata: Metadata,
        *,
        clock: Clock,
        retry_backoff_ms: float = 100.0,
        request_timeout_ms: float = 30_000.0,
    ) -> None:
        self.client = client
        self.metadata = metadata
        self.clock = clock
        self.retry_backoff_ms = retry_backoff_ms
        self.request_timeout_ms = request_timeout_ms
        self._unsent: dict[Node, deque[tuple[ClientRequest, float, RequestFuture[ClientResponse]]]] = {}
        self._pending_completion: deque[_Pending] = deque()
        self._pending_disconnects: deque[Node] = deque()
        #: ``open_requests`` has the requests that have no response yet. ``_interrupted`` has the requests
        #: whose response a Ctrl-C may have discarded.
        self.open_requests: dict[RequestFuture[ClientResponse], ClientRequest] = {}
        self._interrupted: dict[RequestFuture[ClientResponse], ClientRequest] = {}
        #: Number of polls that a Ctrl-C has interrupted. Each of these polls may have lost the response to a
        #: heartbeat.
        self.interrupted_count = 0
        #: Whether :meth:`wakeup` and :meth:`begin_close` were called. Other threads set the two flags, so
        #: neither method changes the flag of the other.
        self._wakeup = self._is_closing = False
        self._wakeup_enabled = True

    # ---- Sending -----------------------------------------------------------------------------------------
    def send(
        self,
        node: Node,
        request: Request[Any],
        *,
        timeout_ms: float | None = None,
        max_version: int | None = None,
    ) -> RequestFuture[ClientResponse]:
        """Queue ``request`` for ``node``. The next poll sends it.

        Only one thread at a time uses this client, so no poll can be waiting during the call.

        Parameters
        ----------
        node:
            The broker to send it to.
        request:
            The request. Its version is chosen when it is sent.
        timeout_ms:
            Maximum time until the response, in milliseconds; ``request_timeout_ms`` by default.
        max_version:
            Highest version to use.

        Returns
        -------
        RequestFuture
            A future that succeeds with the response, even if the response contains error codes. The future
            fails with :class:`KafkaConnectionError`, :class:`UnsupportedVersionError`, or, if the request
            could not be sent in time, :class:`KafkaTimeoutError`.
        """
        now_ms = self.clock.monotonic_ms()
        timeout = self.request_timeout_ms if timeout_ms is None else timeout_ms
        future: RequestFuture[ClientResponse] = RequestFuture()
        client_request = self.client.new_client_request(
            node.node_id,
            request,
            now_ms,
            request_timeout_ms=timeout,
            max_version=max_version,
            callback=lambda response: self._pending_completion.append(self._completed(future, response)),
        )
        self.open_requests[future] = client_request
        self._unsent.setdefault(node, deque()).append((client_request, now_ms + timeout, future))
        return future

    @staticmethod
    def _completed(future: RequestFuture[ClientResponse], response: ClientResponse) -> _Pending:
        error: BaseException | None = None
        if response.authentication_error is not None:
            error = response.authentication_error
        elif response.disconnected:
            reason = "timed out" if response.timed_out else "failed: the connection was lost"
            error = KafkaConnectionError(f"request to node {response.request.node_id} {reason}")
        elif response.version_mismatch is not None:
            error = response.version_mismatch
        return _Pending(future, response, error)

    def pending_request_count(self, node: Node | None = None) -> int:
        """Return the number of requests queued or in flight, to ``node`` or to all nodes."""
        queues = self._unsent.values() if node is None else [self._unsent.get(node, deque())]
        in_flight = self.client.in_flight_request_count(None if node is None else node.node_id)
        return sum(map(len, queues)) + in_flight

    def has_pending_requests(self) -> bool:
        return self.client.in_flight_request_count() > 0 or any(self._unsent.values())

    def is_connected(self) -> bool:
        """Return whether the cluster's metadata are known and a connection to a broker is ready."""
        cluster, now_ms = self.metadata.fetch(), self.clock.monotonic_ms()
        return not cluster.is_bootstrap and any(self.client.is_ready(node, now_ms) for node in cluster.nodes)

    def is_unavailable(self, node: Node) -> bool:
        """Return whether the connection failed and the reconnect backoff has not passed yet."""
        return self.client.connection_failed(node) and self._backs_off(node)

    def maybe_raise_authentication_error(self, node: Node) -> None:
        """Raise the authentication error of ``node``, if there was one, because retries would fail too."""
        error = self.client.authentication_error(node)
        if error is not None:
            raise error

    def by_reachable_leader(
        self, wanted: Mapping[TopicPartition, T]
    ) -> tuple[dict[Node, dict[TopicPartition, T]], set[TopicPartition]]:
        """Return ``wanted`` grouped by leader, and the partitions whose leader is unknown or unavailable.

        Raises
        ------
        AuthenticationFailedError
            If a leader rejected the client's credentials.
        """
        cluster = self.metadata.fetch()
        by_node: dict[Node, dict[TopicPartition, T]] = {}
        unavailable = set()
        for tp, what in wanted.items():
            leader = cluster.leader_for(tp)
            if leader is None:
                unavailable.add(tp)
            elif self.is_unavailable(leader):
                self.maybe_raise_authentication_error(leader)
                unavailable.add(tp)
            else:
                by_node.setdefault(leader, {})[tp] = what
        return by_node, unavailable

    def _backs_off(self, node: Node) -> bool:
        return self.client.connection_delay(node, self.clock.monotonic_ms()) > 0

    def transmit_sends(self) -> None:
        """Send queued requests without waiting, and without running any callback of a future."""
        self._transmit(lambda now_ms: self.client.poll(0, now_ms))

    def write_requests(self) -> None:
        """Write queued requests to the sockets, without looking for responses."""
        self._transmit(self.client.flush)

    def _transmit(self, write: Callable[[float], object]) -> None:
        now_ms = self.clock.monotonic_ms()
        try:
            self._try_send(now_ms)
            write(now_ms)
        except Exception:
            raise
        except BaseException:
            self._mark_interrupted()
            raise

    def is_ready(self, node: Node) -> bool:
        """Return whether a request to ``node`` would be sent at once."""
        return self.client.is_ready(node, self.clock.monotonic_ms())

    def begin_heartbeats(
        self,
        node: Node,
        line: NativeHeartbeat,
        request: HeartbeatMessage,
        interval_ms: float,
        session_timeout_ms: float,
        on_answer: Callable[[Any], None],
    ) -> bool:
        """Call ``NetworkClient.begin_heartbeats``. Like all callbacks, ``on_answer`` is called during a poll.

        ``on_answer`` receives each response, and the error after which no more heartbeats are sent.
        """

        def completed(response: ClientResponse) -> None:
            future: RequestFuture[ClientResponse] = RequestFuture()
            future.add_callbacks(lambda answer: on_answer(answer.message), on_answer)
            self._pending_completion.append(self._completed(future, response))

        return self.client.begin_heartbeats(
            node.node_id, line, request, interval_ms, session_timeout_ms, completed
        )

    # ---- Polling -----------------------------------------------------------------------------------------
    def poll(
        self,
        timer: Timer,
        should_block: Callable[[], bool] | None = None,
        *,
        disable_wakeup: bool = False,
    ) -> None:
        """Do one round of network I/O, and run the callbacks of completed futures.

        Parameters
        ----------
        timer:
            Limit of the wait.
        should_block:
            Function that is called just before waiting. If the function returns ``False``, the poll does not
            wait.
        disable_wakeup:
            Whether to ignore a :meth:`wakeup` in this poll, so that the next poll raises its error.

        Raises
        ------
        WakeupError
            Once after each :meth:`wakeup`.
        KafkaError
            An error that new metadata cannot resolve: missing authorization, an invalid topic, or failed
            authentication.
        """
        if self._interrupted:
            self._fail_interrupted()
        try:
            self._poll(timer, should_block, disable_wakeup)
        except Exception:
            raise
        except BaseException:
            self._mark_interrupted()
            raise

    def _poll(self, timer: Timer, should_block: Callable[[], bool] | None, disable_wakeup: bool) -> None:
        self._fire_pending_completions()
        self._handle_pending_disconnects()
        now_ms = self.clock.monotonic_ms()
        delay_ms = self._try_send(now_ms)
        timeout_ms = 0.0
        if not self._pending_completion and (should_block is None or should_block()):
            timeout_ms = min(timer.remaining_ms, delay_ms)
            if self.client.in_flight_request_count() == 0:
                timeout_ms = min(timeout_ms, self.retry_backoff_ms)
            if (self._wakeup or self._is_closing) and self._wakeup_enabled and not disable_wakeup:
                timeout_ms = 0.0
        # This poll calls the callbacks of the responses, which add futures to the pending completions.
        self.client.poll(timeout_ms, now_ms, has_unsent=any(self._unsent.values()))
        now_ms = self.clock.monotonic_ms()
        self._check_disconnects(now_ms)
        if not disable_wakeup:
            self.maybe_trigger_wakeup()
        self._try_send(now_ms)
        self._fail_expired(now_ms)
        self._unsent = {node: queue for node, queue in self._unsent.items() if queue}
        self._fire_pending_completions()
        self.metadata.maybe_raise_any_error()

    def wait(self, timeout_ms: float) -> bool:
        """Wait for I/O like :meth:`poll`, but leave the results in the selector.

        Returns
        -------
        bool
            ``False`` if there is other work, so that only a :meth:`poll` may continue.
        """
        if (
            self._pending_completion
            or self._pending_disconnects
            or self._interrupted
            or self._wakeup
            or self._is_closing
            or any(self._unsent.values())
        ):
            return False
        try:
            now_ms = self.clock.monotonic_ms()
            is_ready = self.client.wait(min(timeout_ms, MAX_POLL_TIMEOUT_MS), now_ms, has_unsent=False)
            # After a wakeup, the state of the consumer may have changed during the wait.
            return is_ready and not self._wakeup and not self._is_closing
        except Exception:
            raise
        except BaseException:
            self._mark_interrupted()
            raise

    def poll_until(self, future: RequestFuture[Any], timer: Timer, *, disable_wakeup: bool = False) -> bool:
        """Poll until ``future`` is done or the time is up; return whether it is done."""
        while not future.is_done() and not timer.expired:
            self.poll(timer, lambda: not future.is_done(), disable_wakeup=disable_wakeup)
        return future.is_done()

    def poll_no_wakeup(self, timeout_ms: float = 0.0) -> None:
        self.poll(Timer(self.clock, timeout_ms), disable_wakeup=True)

    def await_metadata_update(self, timer: Timer) -> bool:
        """Request new metadata and poll until they arrive; return ``False`` if the time is up first."""
        version = self.metadata.request_update()
        while self.metadata.update_version <= version and not timer.expired:
            self.poll(timer)
        return self.metadata.update_version > version

    def wakeup(self) -> None:
        """Make the running or the next poll raise :class:`WakeupError`. Any thread may call this."""
        self._wakeup = True
        self.client.wakeup()

    def begin_close(self) -> None:
        """Make the running call raise :class:`ConsumerClosingError`, so that another thread can close.

        Any thread may call this.
        """
        self._is_closing = True
        self.client.wakeup()

    def cancel_wakeup(self) -> None:
        """Undo :meth:`wakeup` if no call has raised its error yet."""
        self._wakeup = False

    def cancel_close(self) -> None:
        """Undo :meth:`begin_close`, because the running call has not ended in time."""
        self._is_closing = False

    def maybe_trigger_wakeup(self) -> None:
        if not self._wakeup_enabled:
            return
        if self._is_closing:
            raise ConsumerClosingError("this KafkaConsumer is closed: another thread called close()")
        if self._wakeup:
            self._wakeup = False
            raise WakeupError("wakeup() was called")

    def disable_wakeups(self) -> None:
        """Ignore wakeups from now on, because the consumer is closing."""
        self._wakeup_enabled = False

    def enable_wakeups(self) -> None:
        """Undo :meth:`disable_wakeups`. A wakeup that came in between takes effect now."""
        self._wakeup_enabled = True

    def disconnect_async(self, node: Node) -> None:
        """Close the connection to ``node`` in the next poll. The requests to the node then fail."""
        self._pending_disconnects.append(node)
        self.client.wakeup()

    def complete_later(self, future: RequestFuture[ClientResponse], error: BaseException) -> None:
        """Fail ``future`` in the next poll, on the polling thread. Any thread may call this."""
        self._pending_completion.append(_Pending(future, None, error))
        self.client.wakeup()

    def _fail_interrupted(self) -> None:
        """Fail the futures whose response a Ctrl-C discarded.

        A future stays pending while its request is queued or its node has requests in flight.
        """
        queued = {id(request) for queue in self._unsent.values() for request, _, _ in queue}
        pending = {id(each.future) for each in self._pending_completion}
        interrupted, self._interrupted = self._interrupted, {}
        for future, request in interrupted.items():
            if future.is_done():
                continue
            may_complete = id(request) in queued or id(future) in pending
            if may_complete or self.client.in_flight_request_count(request.node_id):
                self._interrupted[future] = request
                continue
            error = CallbackInterruptedError("interrupted while the response was being received")
            self._pending_completion.append(_Pending(future, None, error))

    def _mark_interrupted(self) -> None:
        """After a Ctrl-C during network I/O, mark all open requests, because any response may be lost."""
        self.interrupted_count += 1
        self.open_requests = self._still_open()
        self._interrupted = dict(self.open_requests)

    def _still_open(self) -> dict[RequestFuture[ClientResponse], ClientRequest]:
        return {future: request for future, request in self.open_requests.items() if not future.is_done()}

    # ---- Steps of a poll ---------------------------------------------------------------------------------
    def _fire_pending_completions(self) -> None:
        while self._pending_completion:
            # Remove the completion only after its callbacks have run, so that a Ctrl-C in between does not
            # lose it. A callback that polls may have removed it already.
            pending = self._pending_completion[0]
            pending.fire()
            if self._pending_completion and self._pending_completion[0] is pending:
                self._pending_completion.popleft()
            self.open_requests.pop(pending.future, None)

    def _handle_pending_disconnects(self) -> None:
        while self._pending_disconnects:
            node = self._pending_disconnects.popleft()
            self._fail_unsent(node, KafkaConnectionError(f"disconnected from node {node.node_id}"))
            self.client.disconnect(node.node_id)

    def _try_send(self, now_ms: float) -> float:
        """Send queued requests to ready nodes; return the milliseconds until other requests may be sent."""
        delay_ms = MAX_POLL_TIMEOUT_MS
        self._leave_bootstrap(now_ms)
        for node, queue in self._unsent.items():
            while queue and self.client.ready(node, now_ms):
                self.client.send(queue.popleft()[0], now_ms)
            if queue:
                delay_ms = min(delay_ms, self.client.poll_delay_ms(node, now_ms))
        return delay_ms

    def _leave_bootstrap(self, now_ms: float) -> None:
        """Move requests queued for a bootstrap server to a node, once the nodes are known.

        The connection to the bootstrap server has become the connection to a node. A request to the bootstrap
        server would open a second connection.
        """
        for node in [each for each, queue in self._unsent.items() if each.node_id < 0 and queue]:
            if self.metadata.fetch().is_bootstrap:
                return
            target = self.client.least_loaded_node(now_ms)
            if target is None:
                return
            queue = self._unsent.pop(node)
            for request, _, _ in queue:
                request.node_id = target.node_id
            self._unsent.setdefault(target, deque()).extend(queue)

    def _check_disconnects(self, now_ms: float) -> None:
        for node, queue in self._unsent.items():
            if queue and self.client.connection_failed(node):
                error = self.client.authentication_error(node)
                self._fail_unsent(
                    node,
                    error or KafkaConnectionError(f"could not connect to {printable(node.host)}:{node.port}"),
                )

    def _fail_unsent(self, node: Node, error: BaseException) -> None:
        queue = self._unsent.get(node, deque())
        while queue:
            self._pending_completion.append(_Pending(queue.popleft()[2], None, error))

    def _fail_expired(self, now_ms: float) -> None:
        for node, queue in self._unsent.items():
            while queue and queue[0][1] <= now_ms:
                future = queue.popleft()[2]
                error = KafkaTimeoutError(
                    f"the request to {printable(node.host)}:{node.port} could not be sent before its timeout"
                )
                self._pending_completion.append(_Pending(future, None, error))

    def close(self) -> None:
        """Fail queued requests and close all connections."""
        for node in list(self._unsent):
            self._fail_unsent(node, KafkaConnectionError("the consumer is closed"))
        self._fire_pending_completions()
        self.client.close()
