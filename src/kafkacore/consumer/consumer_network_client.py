"""Requests in, futures out; everything happens in :meth:`ConsumerNetworkClient.poll`.

A request waits in a queue of its node until the connection is ready. Answers complete futures only after
the network client has returned, so that what listens to a future may send and poll. Does not know:
fetching, subscriptions. (Kafka's ``ConsumerNetworkClient``.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kafkacore.client import ClientRequest, ClientResponse, Metadata, NetworkClient
from kafkacore.clock import SIGNAL_SLICE_S, Clock
from kafkacore.consumer._request_future import CallbackInterruptedError, RequestFuture
from kafkacore.consumer.timer import Timer
from kafkacore.errors import (
    KafkaConnectionError,
    KafkaTimeoutError,
    WakeupError,
)
from kafkacore.network import NativeHeartbeat
from kafkacore.protocol import Request
from kafkacore.protocol.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkacore.structs import Node, TopicPartition, printable

T = TypeVar("T")

#: The longest wait, in milliseconds: the handler of a signal that comes in the moment before it begins runs
#: after it.
MAX_POLL_TIMEOUT_MS = SIGNAL_SLICE_S * 1000.0


class _Pending:
    """A future and what it will be completed with."""

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
            self.future.fire_rest()  # A Ctrl-C came when it had been fired, or in the middle of it.
            return
        if self.error is not None:
            self.future.fail(self.error)
        else:
            assert self.response is not None
            self.future.complete(self.response)


class ConsumerNetworkClient:
    """The consumer's only way to the network.

    Parameters
    ----------
    client, metadata:
        Of the layer below.
    clock:
        For deadlines.
    retry_backoff_ms, request_timeout_ms:
        As configured; milliseconds.
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
        #: What may wait for an answer, and those of which a Ctrl-C may have taken it away.
        self._open: dict[RequestFuture[ClientResponse], ClientRequest] = {}
        self._suspects: dict[RequestFuture[ClientResponse], ClientRequest] = {}
        self._wakeup = False
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
        """Queue ``request`` for ``node``.

        Parameters
        ----------
        node:
            The broker to send it to.
        request:
            Its version is chosen when it is sent.
        timeout_ms:
            Time for it to be sent and answered; ``request_timeout_ms`` by default.
        max_version:
            A bound of the version.

        Returns
        -------
        RequestFuture
            Succeeds with the response, whatever error codes are in it. Fails with
            :class:`KafkaConnectionError`, :class:`KafkaTimeoutError` (never sent) or
            :class:`UnsupportedVersionError`.
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
        self._open[future] = client_request
        self._unsent.setdefault(node, deque()).append((client_request, now_ms + timeout, future))
        # Another thread may be waiting in the selector.
        self.client.wakeup()
        return future

    @staticmethod
    def _completed(future: RequestFuture[ClientResponse], response: ClientResponse) -> _Pending:
        error: BaseException | None = None
        if response.authentication_error is not None:
            error = response.authentication_error
        elif response.disconnected:
            reason = "timed out" if response.timed_out else "was lost"
            error = KafkaConnectionError(f"the request to node {response.request.node_id} {reason}")
        elif response.version_mismatch is not None:
            error = response.version_mismatch
        return _Pending(future, response, error)

    def pending_request_count(self, node: Node | None = None) -> int:
        """Requests queued or on their way, to ``node`` or to all."""
        queues = self._unsent.values() if node is None else [self._unsent.get(node, deque())]
        in_flight = self.client.in_flight_request_count(None if node is None else node.node_id)
        return sum(map(len, queues)) + in_flight

    def has_pending_requests(self) -> bool:
        return self.pending_request_count() > 0

    def is_connected(self) -> bool:
        """Whether a broker has told about the cluster, and a connection to one is there."""
        cluster, now_ms = self.metadata.fetch(), self.clock.monotonic_ms()
        return not cluster.is_bootstrap and any(self.client.is_ready(node, now_ms) for node in cluster.nodes)

    def is_unavailable(self, node: Node) -> bool:
        """Whether the connection failed and it is too early to try again."""
        return self.client.connection_failed(node) and self._backs_off(node)

    def maybe_raise_authentication_error(self, node: Node) -> None:
        """Raise why ``node`` has refused us, if that is known: trying again is of no use."""
        error = self.client.authentication_error(node)
        if error is not None:
            raise error

    def by_reachable_leader(
        self, wanted: Mapping[TopicPartition, T]
    ) -> tuple[dict[Node, dict[TopicPartition, T]], set[TopicPartition]]:
        """Leader → what is wanted of it, and the partitions whose leader is unknown or out of reach.

        Raises
        ------
        AuthenticationFailedError
            If a leader has refused us.
        """
        cluster = self.metadata.fetch()
        by_node: dict[Node, dict[TopicPartition, T]] = {}
        homeless = set()
        for tp, what in wanted.items():
            leader = cluster.leader_for(tp)
            if leader is None:
                homeless.add(tp)
            elif self.is_unavailable(leader):
                self.maybe_raise_authentication_error(leader)
                homeless.add(tp)
            else:
                by_node.setdefault(leader, {})[tp] = what
        return by_node, homeless

    def _backs_off(self, node: Node) -> bool:
        return self.client.connection_delay(node, self.clock.monotonic_ms()) > 0

    def transmit_sends(self) -> None:
        """Push queued requests out without waiting for anything, and without calling any listener."""
        now_ms = self.clock.monotonic_ms()
        try:
            self._try_send(now_ms)
            self.client.poll(0, now_ms)
        except Exception:
            raise
        except BaseException:
            self._suspect_all()
            raise

    def is_ready(self, node: Node) -> bool:
        """Whether a request to ``node`` would be sent at once."""
        return self.client.is_ready(node, self.clock.monotonic_ms())

    def begin_heartbeats(
        self,
        node: Node,
        line: NativeHeartbeat,
        request: HeartbeatRequest,
        interval_ms: float,
        session_timeout_ms: float,
        on_answer: Callable[[HeartbeatResponse | BaseException], None],
    ) -> bool:
        """As ``NetworkClient.begin_heartbeats``; answers, and why there will be no more, are told as the
        outcomes of futures are.
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
        """One round of network I/O, and the listeners of what it completed.

        Parameters
        ----------
        timer:
            Bound of the wait.
        should_block:
            Looked at just before waiting; ``False`` means that what the caller waits for is there.
        disable_wakeup:
            Let a :meth:`wakeup` wait for the next poll.

        Raises
        ------
        WakeupError
            After :meth:`wakeup`, once.
        KafkaError
            What the metadata cannot recover from: no authorization, an invalid topic, failed authentication.
        """
        if self._suspects:
            self._fail_unanswerable()
        try:
            self._poll(timer, should_block, disable_wakeup)
        except Exception:
            raise
        except BaseException:
            self._suspect_all()
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
            if self._wakeup and not disable_wakeup:
                timeout_ms = 0.0
        # Responses reach their futures' queue by their callbacks.
        self.client.poll(timeout_ms, now_ms)
        now_ms = self.clock.monotonic_ms()
        self._check_disconnects(now_ms)
        if not disable_wakeup:
            self.maybe_trigger_wakeup()
        self._try_send(now_ms)
        self._fail_expired(now_ms)
        self._unsent = {node: queue for node, queue in self._unsent.items() if queue}
        self._fire_pending_completions()
        self.metadata.maybe_raise_any_error()

    def poll_until(self, future: RequestFuture[Any], timer: Timer, *, disable_wakeup: bool = False) -> bool:
        """Poll until ``future`` is done or the time is up; whether it is done."""
        while not future.is_done() and not timer.expired:
            self.poll(timer, lambda: not future.is_done(), disable_wakeup=disable_wakeup)
        return future.is_done()

    def poll_no_wakeup(self, timeout_ms: float = 0.0) -> None:
        self.poll(Timer(self.clock, timeout_ms), disable_wakeup=True)

    def await_metadata_update(self, timer: Timer) -> bool:
        """Ask for new metadata and poll until it is there; ``False`` when the time is up before."""
        version = self.metadata.request_update()
        while self.metadata.update_version <= version and not timer.expired:
            self.poll(timer)
        return self.metadata.update_version > version

    def wakeup(self) -> None:
        """Have the poll that runs, or the next one, raise :class:`WakeupError`. From any thread."""
        self._wakeup = True
        self.client.wakeup()

    def maybe_trigger_wakeup(self) -> None:
        if self._wakeup and self._wakeup_enabled:
            self._wakeup = False
            raise WakeupError("wakeup() was called")

    def disable_wakeups(self) -> None:
        """From now on no poll is interrupted; for closing."""
        self._wakeup_enabled = False

    def enable_wakeups(self) -> None:
        """Undo :meth:`disable_wakeups`; a wakeup that came meanwhile takes effect now."""
        self._wakeup_enabled = True

    def disconnect_async(self, node: Node) -> None:
        """Close the connection to ``node`` in the next poll; its requests fail."""
        self._pending_disconnects.append(node)
        self.client.wakeup()

    def complete_later(self, future: RequestFuture[ClientResponse], error: BaseException) -> None:
        """Fail ``future`` in the next poll, on the polling thread. From any thread."""
        self._pending_completion.append(_Pending(future, None, error))
        self.client.wakeup()

    def _fail_unanswerable(self) -> None:
        """After a Ctrl-C: who waits for an answer that got lost with it is told so, when nothing that could
        be it is on its way any more.
        """
        queued = {id(request) for queue in self._unsent.values() for request, _, _ in queue}
        coming = {id(pending.future) for pending in self._pending_completion}
        suspects, self._suspects = self._suspects, {}
        for future, request in suspects.items():
            if future.is_done():
                continue
            may_come = id(request) in queued or id(future) in coming
            if may_come or self.client.in_flight_request_count(request.node_id):
                self._suspects[future] = request
                continue
            error = CallbackInterruptedError("interrupted while its answer came")
            self._pending_completion.append(_Pending(future, None, error))

    def _suspect_all(self) -> None:
        """A Ctrl-C came in the middle of the network's work: whose answers it took, nobody knows yet."""
        self._open = self._still_open()
        self._suspects = dict(self._open)

    def _still_open(self) -> dict[RequestFuture[ClientResponse], ClientRequest]:
        return {future: request for future, request in self._open.items() if not future.is_done()}

    # ---- The parts of a poll -----------------------------------------------------------------------------
    def _fire_pending_completions(self) -> None:
        while self._pending_completion:
            # It leaves the queue when it has been fired, lest a Ctrl-C in between lose it; by then a listener
            # that polls may have taken it off.
            pending = self._pending_completion[0]
            pending.fire()
            if self._pending_completion and self._pending_completion[0] is pending:
                self._pending_completion.popleft()
            self._open.pop(pending.future, None)

    def _handle_pending_disconnects(self) -> None:
        while self._pending_disconnects:
            node = self._pending_disconnects.popleft()
            self._fail_unsent(node, KafkaConnectionError(f"disconnected from node {node.node_id}"))
            self.client.disconnect(node.node_id)

    def _try_send(self, now_ms: float) -> float:
        """Hand to the client what it takes; how long the rest may have to wait, in milliseconds."""
        delay_ms = MAX_POLL_TIMEOUT_MS
        self._leave_bootstrap(now_ms)
        for node, queue in self._unsent.items():
            while queue and self.client.ready(node, now_ms):
                self.client.send(queue.popleft()[0], now_ms)
            if queue:
                delay_ms = min(delay_ms, self.client.poll_delay_ms(node, now_ms))
        return delay_ms

    def _leave_bootstrap(self, now_ms: float) -> None:
        """What waits for a bootstrap server goes to a node, now that there are some: that server's connection
        is a node's, and would be made a second time.
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
                    error or KafkaConnectionError(f"no connection to {printable(node.host)}:{node.port}"),
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
                    f"the request could not be sent to {printable(node.host)}:{node.port} within its time"
                )
                self._pending_completion.append(_Pending(future, None, error))

    def close(self) -> None:
        """Close all connections; what was queued fails."""
        for node in list(self._unsent):
            self._fail_unsent(node, KafkaConnectionError("the consumer is closed"))
        self._fire_pending_completions()
        self.client.close()
