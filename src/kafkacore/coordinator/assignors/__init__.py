"""Assignors of consumer groups, under the module paths and names of ``kafka.coordinator.assignors``."""

from kafkacore.coordinator.assignors.abstract import PartitionAssignor, PartitionRacks, RebalanceProtocol
from kafkacore.coordinator.assignors.strategy import assignors_for, common_protocol

__all__ = ["PartitionAssignor", "PartitionRacks", "RebalanceProtocol", "assignors_for", "common_protocol"]
