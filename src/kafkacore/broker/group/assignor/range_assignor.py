"""The assignor ``range``: each member gets consecutive partitions of each topic.

Topics with the same number of partitions and the same members are assigned in the same way, so that one
member receives all records with the same key. The behaviour is that of Kafka's ``RangeAssignor``.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkacore.broker.group.assignor._builder import assign_ranges
from kafkacore.broker.group.assignor.interfaces import Assignment, MemberSubscription
from kafkacore.wire import Uuid


class RangeAssignor:
    """Implements :class:`~kafkacore.broker.group.assignor.interfaces.Assignor`."""

    name = "range"

    def assign(
        self,
        members: Mapping[str, MemberSubscription],
        partition_counts: Mapping[Uuid, int],
        *,
        is_homogeneous: bool,
    ) -> dict[str, Assignment]:
        return assign_ranges(members, partition_counts)
