"""Requests of a group to its coordinator: whom to send them, how long to wait, what a lost one means.

Does not know: what is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kafkacore import errors
from kafkacore.client import Metadata
from kafkacore.client.config import servers_text
from kafkacore.client.exponential_backoff import ExponentialBackoff
from kafkacore.clock import Clock
from kafkacore.consumer.consumer_network_client import ConsumerNetworkClient
from kafkacore.consumer.group.membership import GroupMembership
from kafkacore.consumer.group_metrics import GroupMetrics
from kafkacore.consumer.request_future import RequestFuture
from kafkacore.consumer.subscription_state import SubscriptionState
from kafkacore.consumer.timer import Timer
from kafkacore.errors import KafkaTimeoutError
from kafkacore.structs import Node


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

    config: Mapping[str, Any]
    client: ConsumerNetworkClient
    metadata: Metadata
    subscriptions: SubscriptionState
    membership: GroupMembership
    clock: Clock
    metrics: GroupMetrics = field(default_factory=GroupMetrics)


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

    def _on_lost(self, node: Node, answered: RequestFuture[Any], error: BaseException) -> None:
        if isinstance(error, errors.KafkaConnectionError) and self._membership.coordinator() == node:
            self._membership.coordinator_failed(str(error), disconnected=True)
        elif isinstance(error, errors.UnsupportedVersionError):
            error = errors.UnsupportedVersionError(
                f"group_id={self._group_id!r}: this broker keeps no offsets of groups ({error}). Apache "
                "Kafka does, kafkacore's own broker not yet: leave group_id out there"
            )
        answered.fail_unless_done(error)

    def _poll_until(self, future: RequestFuture[Any], timer: Timer) -> None:
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
