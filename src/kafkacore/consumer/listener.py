"""Rebalance listeners, which the application implements to handle changes of the assignment."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from types import CoroutineType

from kafkacore.structs import TopicPartition


class ConsumerRebalanceListener(ABC):
    """Base class of a listener that is called while ``poll()`` runs, on the same thread.

    The methods may call the consumer, except for ``poll()``. While a method runs, heartbeats continue for up
    to ``max_poll_interval_ms``. If a method raises an exception, ``poll()`` raises it after the rebalance
    step is complete. A method that raised :class:`~kafkacore.errors.WakeupError` is called again. This is
    kafka-python's class of the same name.
    """

    @abstractmethod
    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Handle partitions that are about to be revoked, and may be assigned to another consumer."""

    @abstractmethod
    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Handle partitions that have been assigned to this consumer."""

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        """Handle partitions that were lost: another consumer may already own them.

        By default this method calls :meth:`on_partitions_revoked`.
        """
        self.on_partitions_revoked(lost)


class AsyncConsumerRebalanceListener(ABC):
    """Base class of a listener whose methods are coroutines.

    Each coroutine runs to completion, in its own event loop, before the consumer continues. In all other
    respects the class is like :class:`ConsumerRebalanceListener`. This is kafka-python's class of the same
    name.
    """

    @abstractmethod
    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Handle partitions that are about to be revoked, and may be assigned to another consumer."""

    @abstractmethod
    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Handle partitions that have been assigned to this consumer."""

    async def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        """Handle partitions that were lost: another consumer may already own them.

        By default this method awaits :meth:`on_partitions_revoked`.
        """
        await self.on_partitions_revoked(lost)


RebalanceListener = ConsumerRebalanceListener | AsyncConsumerRebalanceListener


def call_listener(listener: RebalanceListener, method: str, partitions: Collection[TopicPartition]) -> None:
    """Call ``method`` of the listener. If the method returns a coroutine, run the coroutine."""
    outcome = getattr(listener, method)(partitions)
    if isinstance(outcome, CoroutineType):
        # The import takes 30 ms, and few listeners are asynchronous.
        import asyncio

        asyncio.run(outcome)
