"""What a program may be told when its assignment changes. Partitions in, nothing out."""

from __future__ import annotations

import asyncio
import inspect
from abc import ABC, abstractmethod
from collections.abc import Collection

from kafkacore.structs import TopicPartition


class ConsumerRebalanceListener(ABC):
    """Called on the thread that polls, while it polls (kafka-python's class of the same name).

    It may use the consumer, but for ``poll()``. Heartbeats go on meanwhile, however long it takes, up to
    ``max_poll_interval_ms``. What it raises is raised by the call that polls, after everything has been put
    in order; only after :class:`~kafkacore.errors.WakeupError` the same method is called again.
    """

    @abstractmethod
    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """``revoked`` are about to be taken away, or given to another consumer."""

    @abstractmethod
    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """``assigned`` are this consumer's from now on."""

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        """``lost`` are gone already: another consumer may own them. By default the same as being revoked."""
        self.on_partitions_revoked(lost)


class AsyncConsumerRebalanceListener(ABC):
    """A listener of coroutines (kafka-python's class of the same name); each runs to its end, in a loop of
    its own, before polling goes on. Otherwise as :class:`ConsumerRebalanceListener`.
    """

    @abstractmethod
    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """See :class:`ConsumerRebalanceListener`."""

    @abstractmethod
    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """See :class:`ConsumerRebalanceListener`."""

    async def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        """See :class:`ConsumerRebalanceListener`."""
        await self.on_partitions_revoked(lost)


RebalanceListener = ConsumerRebalanceListener | AsyncConsumerRebalanceListener


def call_listener(listener: RebalanceListener, method: str, partitions: Collection[TopicPartition]) -> None:
    """Call it, and have what it left to do, if it is asynchronous, done as well."""
    outcome = getattr(listener, method)(partitions)
    if inspect.iscoroutine(outcome):
        asyncio.run(outcome)
