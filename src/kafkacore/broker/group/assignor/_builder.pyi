from collections.abc import Mapping
from uuid import UUID

from kafkacore.broker.group.assignor.interfaces import Assignment, MemberSubscription

def assign_homogeneous(
    members: Mapping[str, MemberSubscription], partition_counts: Mapping[UUID, int]
) -> dict[str, Assignment]: ...
def assign_heterogeneous(
    members: Mapping[str, MemberSubscription], partition_counts: Mapping[UUID, int]
) -> dict[str, Assignment]: ...
def assign_ranges(
    members: Mapping[str, MemberSubscription], partition_counts: Mapping[UUID, int]
) -> dict[str, Assignment]: ...
def java_order(topic_id: UUID) -> int: ...
