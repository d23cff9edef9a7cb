"""The assignor ``uniform``: all members get about the same number of partitions, and few partitions move.

The behaviour is that of Kafka's ``UniformAssignor``.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkacore.broker.group.assignor._builder import assign_heterogeneous, assign_homogeneous
from kafkacore.broker.group.assignor.interfaces import Assignment, MemberSubscription
from kafkacore.wire import Uuid


class UniformAssignor:
    """Implements :class:`~kafkacore.broker.group.assignor.interfaces.Assignor`."""

    name = "uniform"

    def assign(
        self,
        members: Mapping[str, MemberSubscription],
        partition_counts: Mapping[Uuid, int],
        *,
        is_homogeneous: bool,
    ) -> dict[str, Assignment]:
        if is_homogeneous:
            return assign_homogeneous(members, partition_counts)
        return assign_heterogeneous(members, partition_counts)
