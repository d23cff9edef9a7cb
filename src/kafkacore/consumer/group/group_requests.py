"""Requests of a group to its coordinator: whom to send them, how long to wait, what a lost one means.

Does not know: what is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from kafkacore import errors
from kafkacore.client import Metadata
from kafkacore.client.config import servers_text
from kafkacore.client.exponential_backoff import ExponentialBackoff
from kafkacore.clock import Clock
from kafkacore.consumer._request_future import RequestFuture
from kafkacore.consumer.consumer_network_client import ConsumerNetworkClient
from kafkacore.consumer.group.membership import GroupMembership
from kafkacore.consumer.group_metrics import GroupMetrics, NoGroupMetrics
from kafkacore.consumer.subscription_state import SubscriptionState
from kafkacore.consumer.timer import Timer
from kafkacore.errors import KafkaTimeoutError
from kafkacore.settings import Config
from kafkacore.structs import Node

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GroupParts:
    """What requests of a group are made with.

    Attributes
    ----------
    config:
        The consumer's settings, checked; ``group_id`` is not ``None``.
    client, metadata, subscriptions, clock:
        Shared with the rest of the consumer.
    membership:
        For the coordinator and the generation.
    metrics:
        Told how long it took.
    """

    config: Config
    client: ConsumerNetworkClient
    metadata: Metadata
    subscriptions: SubscriptionState
    membership: GroupMembership
    clock: Clock
    metrics: GroupMetrics = field(default_factory=NoGroupMetrics)


class GroupRequests:
    """What commits and committed offsets share."""

    def __init__(self, parts: GroupParts) -> None:
        self._config = config = parts.config
        self._client = parts.client
        self._metadata = parts.metadata
        self._subscriptions = parts.subscriptions
        self._membership = parts.membership
        self._clock = parts.clock
        self._metrics = parts.metrics
        self._group_id: str = config["group_id"]
        self._backoff = ExponentialBackoff(
            parts.clock, config["retry_backoff_ms"], config["retry_backoff_max_ms"]
        )

    def _no_coordinator(self) -> errors.CoordinatorNotAvailableError:
        return errors.CoordinatorNotAvailableError(f"of group {self._group_id!r}")

    def _on_lost(self, node: Node, answered: RequestFuture[T], error: BaseException) -> None:
        self._membership.request_failed(node, error)
        if isinstance(error, errors.UnsupportedVersionError):
            error = errors.UnsupportedVersionError(
                f"group_id={self._group_id!r}: the broker does not keep offsets of groups in a version that "
                f"kafkacore speaks ({error}): upgrade the broker, or leave group_id out"
            )
        answered.fail_unless_done(error)

    def _ask_until(
        self,
        send: Callable[[], RequestFuture[T]],
        timer: Timer,
        what: Callable[[], str],
        when_polled: Callable[[], None] | None = None,
    ) -> T:
        """Send, and again what may go better, until there is an answer.

        Parameters
        ----------
        send:
            Makes the request, of what is known then.
        what:
            Names it for the time-out's message.
        when_polled:
            Called when an answer has come, or the time is up, before anything is made of it.

        Raises
        ------
        KafkaTimeoutError
            When ``timer`` ends; its cause is the last failure.
        KafkaError
            Any that trying again will not cure.
        """
        attempts = 0
        last: BaseException | None = None
        while True:
            if self._membership.ensure_coordinator(timer):
                future = send()
                self._poll_until(future, timer)
                if when_polled is not None:
                    when_polled()
                if future.succeeded():
                    return future.value()
                if future.failed():
                    last = future.exception()
                    if not future.is_retriable():
                        raise last
            if timer.expired:
                raise self._timed_out(what(), timer) from last
            self._pause(attempts, timer)
            attempts += 1

    def _poll_until(self, future: RequestFuture[T], timer: Timer) -> None:
        if timer.expired and not future.is_done():
            # Without any time it is sent all the same.
            self._client.transmit_sends()
        self._client.poll_until(future, timer)

    def _pause(self, attempts: int, timer: Timer) -> None:
        pause = Timer(self._clock, min(timer.remaining_ms, self._backoff.backoff_ms(attempts)))
        while not pause.expired:
            self._client.poll(pause)

    def _timed_out(self, what: str, timer: Timer) -> KafkaTimeoutError:
        return KafkaTimeoutError(
            f"could not {what} for group {self._group_id!r} within {timer.timeout_ms:.0f} ms "
            f"(bootstrap_servers={servers_text(self._config)})"
        )
