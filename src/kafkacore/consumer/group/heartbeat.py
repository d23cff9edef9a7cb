"""Heartbeats of a member: when they are due, and a sender that uses the consumer's own network client.

This is Kafka's ``Heartbeat`` without the poll timer, which belongs to the membership.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from threading import Condition
from typing import TYPE_CHECKING, Any, Protocol

from kafkacore.client import ClientResponse
from kafkacore.clock import Clock
from kafkacore.consumer.consumer_network_client import ConsumerNetworkClient
from kafkacore.consumer.group_metrics import GroupMetrics, NoGroupMetrics
from kafkacore.structs import Node

if TYPE_CHECKING:
    from kafkacore.client.native_heartbeats import HeartbeatMessage

#: Function that is called with every heartbeat response, or with the error of a failed heartbeat. The type of
#: the response depends on the request that was passed to :meth:`HeartbeatSender.begin`.
OnHeartbeat = Callable[[Any], None]


class HeartbeatSender(Protocol):
    """Sends the heartbeats of one member when they are due."""

    @property
    def is_native(self) -> bool:
        """Whether a native thread sends the heartbeats.

        If so, :meth:`turn` does nothing, and :meth:`wait` returns when that thread reports an event.
        """

    def begin(
        self,
        node: Node,
        request: HeartbeatMessage,
        interval_ms: float,
        session_timeout_ms: float,
        on_answer: OnHeartbeat,
    ) -> None:
        """Start heartbeats for a generation, replacing any earlier heartbeats.

        The first heartbeat is sent after one interval.

        Parameters
        ----------
        node:
            The coordinator.
        request:
            Heartbeat request with the generation or the member epoch.
        interval_ms:
            Time between two heartbeats, in milliseconds.
        session_timeout_ms:
            Time without a response after which the session counts as expired, in milliseconds.
        on_answer:
            Function that is called with each response or error, on the thread that polls the network.
        """

    def polled(self, deadline_ms: float) -> None:
        """Send no heartbeats after ``deadline_ms`` (monotonic), unless the application polls again."""

    def end(self) -> None:
        """Stop heartbeats: the member is joining or has left, or the coordinator is unknown."""

    @property
    def has_dropped_answer(self) -> bool:
        """Whether the last call of :meth:`end` discarded the response to a heartbeat in flight."""

    def due_ms(self, now_ms: float) -> float:
        """Return the milliseconds until :meth:`turn` has something to do; infinity if it has nothing."""

    def read_due_ms(self, now_ms: float) -> float:
        """Return the milliseconds until the caller should read the next heartbeat response.

        Reading the response keeps the metrics current while the application does not poll. The result is
        infinity if the caller's polls of the network read the responses, or if no response is expected.
        """

    def turn(self, now_ms: float) -> None:
        """Send a heartbeat if one is due, without waiting."""

    def session_expired(self, now_ms: float) -> bool:
        """Return whether the coordinator has not responded for the session timeout.

        With a native sender, the session also counts as expired if a heartbeat is not answered within the
        request timeout.
        """

    def wait(self, timeout_ms: float) -> None:
        """Wait for an event, for up to ``timeout_ms``. The heartbeat thread calls this."""

    def wakeup(self) -> None:
        """End the current or the next wait. Any thread may call this."""

    def close(self) -> None:
        """Stop permanently, because the consumer is closed."""


class InBandHeartbeatSender:
    """Sends heartbeats like other requests, if the clock is virtual or native heartbeats are impossible.

    Parameters
    ----------
    client, clock:
        Objects that are shared with the other parts of the consumer.
    retry_backoff_ms:
        Pause after a failed heartbeat, in milliseconds.
    metrics:
        Metrics of the group.
    """

    def __init__(
        self,
        client: ConsumerNetworkClient,
        clock: Clock,
        retry_backoff_ms: float,
        metrics: GroupMetrics | None = None,
    ) -> None:
        self._client = client
        self._metrics: GroupMetrics = metrics or NoGroupMetrics()
        self._clock = clock
        self._retry_backoff_ms = retry_backoff_ms
        self._node: Node | None = None
        self._request: HeartbeatMessage | None = None
        self._on_answer: OnHeartbeat | None = None
        self._interval_ms = self._session_timeout_ms = 0.0
        self._next_ms = self._session_deadline_ms = self._poll_deadline_ms = math.inf
        self._in_flight = False
        self._condition = Condition()
        self._woken = False
        #: Number of calls of :meth:`begin` and :meth:`end`. A response to a heartbeat that was sent before
        #: the last call changes no deadline.
        self._round = 0

    @property
    def is_native(self) -> bool:
        """See :class:`HeartbeatSender`."""
        return False

    def begin(
        self,
        node: Node,
        request: HeartbeatMessage,
        interval_ms: float,
        session_timeout_ms: float,
        on_answer: OnHeartbeat,
    ) -> None:
        """See :class:`HeartbeatSender`."""
        now_ms = self._clock.monotonic_ms()
        self._round += 1
        self._node, self._request, self._on_answer = node, request, on_answer
        self._interval_ms, self._session_timeout_ms = interval_ms, session_timeout_ms
        self._next_ms = now_ms + interval_ms
        self._session_deadline_ms = now_ms + session_timeout_ms
        self._in_flight = False

    def beat_now(self) -> None:
        """Send the first heartbeat at once instead of after one interval."""
        self._next_ms = self._clock.monotonic_ms()

    def polled(self, deadline_ms: float) -> None:
        """See :class:`HeartbeatSender`."""
        self._poll_deadline_ms = deadline_ms

    def end(self) -> None:
        """See :class:`HeartbeatSender`. A response in flight is still passed to ``on_answer``."""
        self._round += 1
        self._node = None
        self._in_flight = False
        self._next_ms = self._session_deadline_ms = math.inf

    @property
    def has_dropped_answer(self) -> bool:
        """See :class:`HeartbeatSender`. Every response is reported."""
        return False

    def due_ms(self, now_ms: float) -> float:
        """See :class:`HeartbeatSender`."""
        if self._node is None or self._in_flight:
            return math.inf
        return max(self._next_ms - now_ms, 0.0)

    def read_due_ms(self, now_ms: float) -> float:
        """See :class:`HeartbeatSender`. Return infinity, because the caller polls the network anyway."""
        return math.inf

    def turn(self, now_ms: float) -> None:
        """See :class:`HeartbeatSender`."""
        if self.due_ms(now_ms) > 0 or now_ms >= self._poll_deadline_ms:
            return
        assert self._node is not None
        assert self._request is not None
        assert self._on_answer is not None
        self._in_flight = True
        self._next_ms = now_ms + self._interval_ms
        self._metrics.heartbeat_sent(now_ms)
        answer = self._client.send(self._node, self._request)
        answer.add_callbacks(
            partial(self._answered, self._round, self._on_answer),
            partial(self._failed, self._round, self._on_answer),
        )

    def _answered(self, of_round: int, on_answer: OnHeartbeat, response: ClientResponse) -> None:
        now_ms = self._clock.monotonic_ms()
        self._metrics.heartbeat_answered(response.latency_ms, now_ms)
        if of_round == self._round:
            self._in_flight = False
            self._session_deadline_ms = now_ms + self._session_timeout_ms
        on_answer(response.message)

    def _failed(self, of_round: int, on_answer: OnHeartbeat, error: BaseException) -> None:
        if of_round == self._round:
            self._in_flight = False
            self._next_ms = self._clock.monotonic_ms() + self._retry_backoff_ms
        on_answer(error)

    def session_expired(self, now_ms: float) -> bool:
        """See :class:`HeartbeatSender`."""
        return now_ms >= self._session_deadline_ms

    def wait(self, timeout_ms: float) -> None:
        """See :class:`HeartbeatSender`."""
        with self._condition:
            self._clock.wait_for(self._condition, lambda: self._woken, timeout_ms)
            self._woken = False

    def wakeup(self) -> None:
        """See :class:`HeartbeatSender`."""
        with self._condition:
            self._woken = True
            self._condition.notify_all()

    def close(self) -> None:
        """See :class:`HeartbeatSender`."""
        self.wakeup()
