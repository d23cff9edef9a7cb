"""What a program may be told when its assignment changes. Partitions in, nothing out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection

from kafkacore.structs import TopicPartition


class ConsumerRebalanceListener(ABC):
    """Called on the thread that polls, while it polls (kafka-python's class of the same name)."""

    @abstractmethod
    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """``revoked`` are about to be taken away, or given to another consumer."""

    @abstractmethod
    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """``assigned`` are this consumer's from now on."""

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        """``lost`` are gone already: another consumer may own them. By default the same as being revoked."""
        self.on_partitions_revoked(lost)
