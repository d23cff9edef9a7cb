"""Common code of requests to the coordinator of a group, such as retries and timeouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

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


class GroupParts(NamedTuple):
    """Objects that requests of a group use.

    Attributes
    ----------
    config:
        The consumer's settings, already checked, with a ``group_id``.
    client, metadata, subscriptions, clock:
        Objects that are shared with the other parts of the consumer.
    membership:
        Membership that provides the coordinator and the generation.
    metrics:
        Metrics of the group.
    """

    config: Config
    client: ConsumerNetworkClient
    metadata: Metadata
    subscriptions: SubscriptionState
    membership: GroupMembership
    clock: Clock
    metrics: GroupMetrics = NoGroupMetrics()


class GroupRequests:
    """Base class of the requests that commit offsets and that fetch committed offsets."""

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
        return errors.CoordinatorNotAvailableError(f"the coordinator of group {self._group_id!r} is unknown")

    def _on_lost(self, node: Node, answered: RequestFuture[T], error: BaseException) -> None:
        self._membership.request_failed(node, error)
        if isinstance(error, errors.UnsupportedVersionError):
            error = errors.UnsupportedVersionError(
                f"group_id={self._group_id!r}: the broker supports no version of the offset requests that "
                f"kafkacore can send ({error}): upgrade the broker, or leave group_id out"
            )
        answered.fail_unless_done(error)

    def _retry_until(
        self,
        send: Callable[[], RequestFuture[T]],
        timer: Timer,
        what: Callable[[], str],
        when_polled: Callable[[], None] | None = None,
    ) -> T:
        """Send a request until it succeeds. Retry it after retriable errors.

        Parameters
        ----------
        send:
            Function that creates and sends the request. It is called for each attempt.
        timer:
            Timer that ends the retries.
        what:
            Function that returns the name of the operation, for the message of a timeout.
        when_polled:
            Function that is called when a response has arrived or the time is up, before the result is used.

        Raises
        ------
        KafkaTimeoutError
            When ``timer`` expires; its cause is the last failure.
        KafkaError
            An error that is not retriable.
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
            # Send the request even if no time is left.
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
