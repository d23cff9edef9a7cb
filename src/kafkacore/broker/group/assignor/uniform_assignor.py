"""The assignor ``uniform``: all members get about the same number of partitions, and few partitions move.

The behaviour is that of Kafka's ``UniformAssignor``.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from uuid import UUID

from kafkacore.broker.group.assignor.heterogeneous import HeterogeneousAssignment
from kafkacore.broker.group.assignor.homogeneous import assign_homogeneous
from kafkacore.broker.group.assignor.interfaces import Assignment, MemberSubscription, PartitionAssignorError


class UniformAssignor:
    """Implements :class:`~kafkacore.broker.group.assignor.interfaces.Assignor`."""

    name = "uniform"

    def assign(
        self,
        members: Mapping[str, MemberSubscription],
        partition_counts: Mapping[UUID, int],
        *,
        is_homogeneous: bool,
    ) -> dict[str, Assignment]:
        for topic_ids in {member.topic_ids for member in members.values()}:
            for topic_id in topic_ids - partition_counts.keys():
                name = urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
                raise PartitionAssignorError(
                    f"Members are subscribed to topic {name} which doesn't exist in the topic metadata."
                )
        if is_homogeneous:
            return assign_homogeneous(members, partition_counts)
        return HeterogeneousAssignment(members, partition_counts).build()
