"""When a member has to beat, and beating through the consumer's own network client.

A node and a request in, answers out. Does not know: what an answer means, whose thread it is on. (Kafka's
``Heartbeat``, without the poll timer, which is the membership's.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from threading import Condition
from typing import Protocol

from kafkacore.client import ClientResponse
from kafkacore.clock import Clock
from kafkacore.consumer.consumer_network_client import ConsumerNetworkClient
from kafkacore.consumer.group_metrics import GroupMetrics, NoGroupMetrics
from kafkacore.protocol.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkacore.structs import Node

#: Told of every answer: the response, or why there is none.
OnHeartbeat = Callable[[HeartbeatResponse | BaseException], None]


class HeartbeatSender(Protocol):
    """Sends heartbeats of one member at their times."""

    @property
    def beats_alone(self) -> bool:
        """Whether it needs no :meth:`turn`, and ends :meth:`wait` when there is something to act on."""

    def begin(
        self,
        node: Node,
        request: HeartbeatRequest,
        interval_ms: float,
        session_timeout_ms: float,
        on_answer: OnHeartbeat,
    ) -> None:
        """Beat for this generation from now on, the first time one interval from now; instead of what was
        begun before.

        Parameters
        ----------
        node:
            The coordinator.
        interval_ms, session_timeout_ms:
            Between beats; without an answer after which the session counts as lost.
        on_answer:
            Called on the thread that polls the network.
        """

    def polled(self, deadline_ms: float) -> None:
        """No beat after ``deadline_ms`` (the clock's): the application has to poll again before."""

    def end(self) -> None:
        """No more beats: joining anew, out of the group, or the coordinator is unknown."""

    def due_ms(self, now_ms: float) -> float:
        """Milliseconds until :meth:`turn` has something to do; infinity if it never has."""

    def turn(self, now_ms: float) -> None:
        """Send a beat if one is due. Does not wait."""

    def session_expired(self, now_ms: float) -> bool:
        """Whether the coordinator has been silent for the session timeout, or has not answered a beat in a
        request's time.
        """

    def wait(self, timeout_ms: float) -> None:
        """For the heartbeat thread between its turns: until there is something to act on, or the time is
        over.
        """

    def wakeup(self) -> None:
        """End the wait that is, or the next. From any thread."""

    def close(self) -> None:
        """The consumer is closed."""


class InBandHeartbeatSender:
    """Heartbeats as requests like any others; for a virtual clock, and where there is no line of its own.

    Parameters
    ----------
    client, clock:
        Shared with the rest of the consumer.
    retry_backoff_ms:
        Until the next beat when one has failed.
    metrics:
        Told of what is sent and answered.
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
        self._request: HeartbeatRequest | None = None
        self._on_answer: OnHeartbeat | None = None
        self._interval_ms = self._session_timeout_ms = 0.0
        self._next_ms = self._session_deadline_ms = self._poll_deadline_ms = math.inf
        self._in_flight = False
        self._condition = Condition()
        self._woken = False
        #: Which begin an answer belongs to; those of an earlier one are not counted here.
        self._round = 0

    @property
    def beats_alone(self) -> bool:
        """See :class:`HeartbeatSender`."""
        return False

    def begin(
        self,
        node: Node,
        request: HeartbeatRequest,
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
        """Do not wait for the interval before the first beat."""
        self._next_ms = self._clock.monotonic_ms()

    def polled(self, deadline_ms: float) -> None:
        """See :class:`HeartbeatSender`."""
        self._poll_deadline_ms = deadline_ms

    def end(self) -> None:
        """See :class:`HeartbeatSender`. An answer that is still to come is reported."""
        self._round += 1
        self._node = None
        self._in_flight = False
        self._next_ms = self._session_deadline_ms = math.inf

    def due_ms(self, now_ms: float) -> float:
        """See :class:`HeartbeatSender`."""
        if self._node is None or self._in_flight:
            return math.inf
        return max(self._next_ms - now_ms, 0.0)

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
