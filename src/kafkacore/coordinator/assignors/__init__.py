"""Assignors of consumer groups, by the module paths and names of kafka-python
(``kafka.coordinator.assignors``).

In: subscriptions and partitions. Out: assignments. Does not know: sockets, requests, time.
"""

from kafkacore.coordinator.assignors.abstract import PartitionAssignor, PartitionRacks, RebalanceProtocol
from kafkacore.coordinator.assignors.strategy import assignors_for, common_protocol

__all__ = ["PartitionAssignor", "PartitionRacks", "RebalanceProtocol", "assignors_for", "common_protocol"]
