"""Calls of the rebalance listener, which both group protocols make in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from kafkacore.clock import Clock
from kafkacore.consumer.group_metrics import GroupMetrics
from kafkacore.consumer.listener import call_listener
from kafkacore.consumer.subscription_state import SubscriptionState
from kafkacore.errors import WakeupError
from kafkacore.logs import logger_of
from kafkacore.structs import TopicPartition, partition_name

logger = logger_of(__name__)


class ListenerCalls:
    """Calls the methods of the rebalance listener, and records which call is running.

    Parameters
    ----------
    group_id:
        Name of the group, for the log.
    subscriptions:
        Subscription with the listener.
    released:
        Context manager that releases the consumer's lock while the listener runs.
    clock, metrics:
        Clock and metrics for the time that the listener's methods take.
    """

    def __init__(
        self,
        group_id: str,
        subscriptions: SubscriptionState,
        released: Callable[[], AbstractContextManager[None]],
        clock: Clock,
        metrics: GroupMetrics,
    ) -> None:
        self._group_id = group_id
        self._subscriptions = subscriptions
        self._released = released
        self._clock = clock
        #: Method of the listener → function that records its latency.
        self._latencies = {
            "on_partitions_assigned": metrics.assigned,
            "on_partitions_revoked": metrics.revoked,
            "on_partitions_lost": metrics.lost,
        }
        #: Whether a rebalance listener is running. The listener may use the consumer, but the consumer does
        #: not rebalance during the call.
        self.is_running = False
        #: Partitions for which ``on_partitions_revoked`` or ``on_partitions_lost`` is running. If the
        #: listener causes another revocation, these partitions are not reported again.
        self.being_revoked: set[TopicPartition] = set()

    def invoke(self, method: str, partitions: set[TopicPartition]) -> Exception | None:
        """Call a method of the listener. Return its exception, so that the rebalance completes.

        If the listener raises :class:`WakeupError`, this method raises it instead of returning it.
        """
        listener = self._subscriptions.listener
        if listener is None:
            return None
        began_ms = self._clock.monotonic_ms()
        outer = self.is_running, self.being_revoked
        try:
            self.is_running = True
            if method != "on_partitions_assigned":
                self.being_revoked = self.being_revoked | partitions
            with self._released():
                call_listener(listener, method, partitions)
        except WakeupError:
            raise
        except Exception as error:
            logger.exception(
                "group %r: %s() of the rebalance listener raised an exception", self._group_id, method
            )
            return error
        finally:
            self.is_running, self.being_revoked = outer
            now_ms = self._clock.monotonic_ms()
            self._latencies[method](now_ms - began_ms, now_ms)
        return None


def listed(partitions: Iterable[TopicPartition]) -> str:
    """Return partitions as text for the log."""
    return ", ".join(map(partition_name, sorted(partitions))) or "nothing"
