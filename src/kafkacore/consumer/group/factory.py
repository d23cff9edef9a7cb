"""Creates the group membership of a consumer. No other module depends on the group protocol."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from kafkacore.client import Metadata
from kafkacore.clock import Clock
from kafkacore.consumer.consumer_network_client import ConsumerNetworkClient
from kafkacore.consumer.group.classic import ClassicMembership
from kafkacore.consumer.group.consumer_membership import ConsumerMembership
from kafkacore.consumer.group.heartbeat import HeartbeatSender
from kafkacore.consumer.group.membership import GroupMembership
from kafkacore.consumer.group.rebalance import Rebalance
from kafkacore.consumer.group.settings import GroupSettings
from kafkacore.consumer.group_metrics import GroupMetrics
from kafkacore.consumer.subscription_state import SubscriptionState
from kafkacore.coordinator.assignors import assignors_for
from kafkacore.settings import Config
from kafkacore.structs import TopicPartition


def new_membership(
    config: Config,
    client: ConsumerNetworkClient,
    metadata: Metadata,
    subscriptions: SubscriptionState,
    clock: Clock,
    *,
    released: Callable[[], AbstractContextManager[None]],
    on_assignment_changed: Callable[[], None],
    on_partitions_removed: Callable[[set[TopicPartition], bool], None] | None = None,
    heartbeats: HeartbeatSender,
    metrics: GroupMetrics,
) -> GroupMembership | None:
    """Return the membership for ``group_id`` and ``group_protocol``, or ``None`` without a group.

    Parameters
    ----------
    config:
        The consumer's settings, already checked.
    client, metadata, subscriptions, clock:
        Objects that are shared with the other parts of the consumer.
    released:
        Context manager that releases the consumer's lock while a rebalance runs the user's callbacks.
    on_assignment_changed:
        Function that is called after the assignment has changed.
    on_partitions_removed:
        Function that is called before partitions are revoked or lost, with the partitions and whether they
        are lost.
    heartbeats:
        Sender of the heartbeats.
    metrics:
        Metrics of the group.

    Raises
    ------
    KafkaConfigurationError
        If an assignor is unknown, or the assignors cannot be combined.
    """
    if config["group_id"] is None:
        return None
    settings = GroupSettings.of(config)
    if config["group_protocol"] == "consumer":
        return ConsumerMembership(
            settings,
            client,
            metadata,
            subscriptions,
            clock,
            released,
            on_assignment_changed,
            on_partitions_removed or _ignore,
            heartbeats,
            metrics,
        )
    rebalance = Rebalance(
        settings,
        assignors_for(config["partition_assignment_strategy"]),
        metadata,
        subscriptions,
        released,
        on_assignment_changed,
        clock,
        metrics,
    )
    rebalance.on_partitions_removed = on_partitions_removed or _ignore
    return ClassicMembership(
        settings,
        client,
        metadata,
        subscriptions,
        clock,
        rebalance,
        heartbeats,
        metrics,
    )


def _ignore(partitions: set[TopicPartition], is_lost: bool) -> None:
    """Do nothing."""
