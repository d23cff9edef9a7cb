"""Heartbeats that do not need the GIL, sent natively on the coordinator's connection.

While the connection is not ready, or cannot carry native heartbeats, heartbeats are sent like other requests.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from kafkacore.client import new_native_heartbeat
from kafkacore.clock import Clock
from kafkacore.consumer.consumer_network_client import ConsumerNetworkClient
from kafkacore.consumer.group.heartbeat import InBandHeartbeatSender, OnHeartbeat
from kafkacore.consumer.group_metrics import GroupMetrics, NoGroupMetrics
from kafkacore.structs import Node

if TYPE_CHECKING:
    from kafkacore.client.native_heartbeats import HeartbeatMessage

#: Milliseconds from sending a heartbeat to reading its response, if the application does not poll.
READ_DELAY_MS = 50.0


class NativeHeartbeatSender:
    """The :class:`HeartbeatSender` for real sockets, not for the simulated network of tests.

    Parameters
    ----------
    client, clock:
        Objects that all parts of the consumer share. The clock must be the system clock.
    retry_backoff_ms:
        Pause after a failed heartbeat that was not sent natively, in milliseconds.
    metrics:
        Metrics of the group, updated when responses are read.
    """

    def __init__(
        self,
        client: ConsumerNetworkClient,
        clock: Clock,
        retry_backoff_ms: float,
        metrics: GroupMetrics | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._metrics: GroupMetrics = metrics or NoGroupMetrics()
        self._heartbeat = new_native_heartbeat()
        self._in_band = InBandHeartbeatSender(client, clock, retry_backoff_ms, metrics)
        #: Arguments of :meth:`begin`; ``None`` once native heartbeats have started.
        self._begun: tuple[Node, HeartbeatMessage, float, float, OnHeartbeat] | None = None
        #: Counts the calls of :meth:`begin` and :meth:`end`. Responses to heartbeats that an earlier call
        #: started are not reported.
        self._round = 0
        self._interval_ms = math.inf
        self._next_read_ms = math.inf
        #: Number of native heartbeats that were answered, or whose connection was lost before the response.
        self._accounted = 0
        self.has_dropped_answer = False

    @property
    def is_native(self) -> bool:
        """See :class:`HeartbeatSender`."""
        return self._begun is None

    def begin(
        self,
        node: Node,
        request: HeartbeatMessage,
        interval_ms: float,
        session_timeout_ms: float,
        on_answer: OnHeartbeat,
    ) -> None:
        """See :class:`HeartbeatSender`."""
        self.end()
        self._begun = (node, request, interval_ms, session_timeout_ms, on_answer)
        if not self._begin_native():
            of_round = self._round
            self._in_band.begin(
                node,
                request,
                interval_ms,
                session_timeout_ms,
                lambda answer: self._on_in_band(of_round, on_answer, answer),
            )
            if not self._client.is_ready(node):
                # Send a heartbeat at once, because the coordinator was lost, and the remaining session time
                # is unknown.
                self._in_band.beat_now()

    def _begin_native(self) -> bool:
        assert self._begun is not None
        node, request, interval_ms, session_timeout_ms, on_answer = self._begun
        of_round = self._round

        def report(answer: Any) -> None:
            if not isinstance(answer, BaseException):
                sent_ms, now_ms = self._heartbeat.last_sent_ms, self._clock.monotonic_ms()
                self._metrics.heartbeat_sent(sent_ms)
                self._metrics.heartbeat_answered(now_ms - sent_ms, now_ms)
                if of_round == self._round:
                    self._accounted += 1
                    self._next_read_ms = sent_ms + self._interval_ms + READ_DELAY_MS
            if of_round == self._round:
                on_answer(answer)

        # This limit detects a silent coordinator, because a native heartbeat has no request timeout. The
        # limit does not exceed the session timeout, so that another coordinator can continue the session.
        silence_ms = min(session_timeout_ms, self._client.request_timeout_ms + interval_ms)
        if not self._client.begin_heartbeats(node, self._heartbeat, request, interval_ms, silence_ms, report):
            return False
        self._begun = None
        self._interval_ms = interval_ms
        self._accounted = self._heartbeat.sent_count
        self._next_read_ms = self._clock.monotonic_ms() + interval_ms + READ_DELAY_MS
        return True

    def _on_in_band(self, of_round: int, on_answer: OnHeartbeat, answer: Any) -> None:
        on_answer(answer)
        if of_round == self._round and not isinstance(answer, BaseException) and self._begin_native():
            self._in_band.end()

    def polled(self, deadline_ms: float) -> None:
        """See :class:`HeartbeatSender`."""
        self._heartbeat.polled(deadline_ms)
        self._in_band.polled(deadline_ms)

    def end(self) -> None:
        """See :class:`HeartbeatSender`."""
        self._round += 1
        was_native, self._begun = self.is_native, None
        self._next_read_ms = math.inf
        self._heartbeat.end()
        self.has_dropped_answer = was_native and self._heartbeat.sent_count > self._accounted
        self._accounted = self._heartbeat.sent_count
        self._in_band.end()

    def due_ms(self, now_ms: float) -> float:
        """See :class:`HeartbeatSender`."""
        return math.inf if self._begun is None else self._in_band.due_ms(now_ms)

    def read_due_ms(self, now_ms: float) -> float:
        """See :class:`HeartbeatSender`."""
        if self._begun is not None or self._next_read_ms == math.inf:
            return math.inf
        if self._heartbeat.sent_count > self._accounted:
            return READ_DELAY_MS
        return max(self._next_read_ms - now_ms, READ_DELAY_MS)

    def turn(self, now_ms: float) -> None:
        """See :class:`HeartbeatSender`."""
        if self._begun is not None:
            self._in_band.turn(now_ms)

    def session_expired(self, now_ms: float) -> bool:
        """See :class:`HeartbeatSender`.

        While heartbeats are native, a response counts even before it is read. The session also expires if a
        heartbeat is not answered within the request timeout, or if the connection was closed and a Ctrl-C
        discarded the notification.
        """
        if self._begun is not None:
            return self._in_band.session_expired(now_ms)
        is_cut = self._next_read_ms != math.inf and not self._heartbeat.is_attached
        return is_cut or self._heartbeat.is_silent

    def wait(self, timeout_ms: float) -> None:
        """See :class:`HeartbeatSender`."""
        self._heartbeat.run(timeout_ms)

    def wakeup(self) -> None:
        """See :class:`HeartbeatSender`."""
        self._heartbeat.wakeup()

    def close(self) -> None:
        """See :class:`HeartbeatSender`."""
        self._heartbeat.close()
