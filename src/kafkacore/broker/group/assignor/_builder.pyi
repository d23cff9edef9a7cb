from collections.abc import Mapping

from kafkacore.broker.group.assignor.interfaces import Assignment, MemberSubscription
from kafkacore.wire import Uuid

def assign_homogeneous(
    members: Mapping[str, MemberSubscription], partition_counts: Mapping[Uuid, int]
) -> dict[str, Assignment]: ...
def assign_heterogeneous(
    members: Mapping[str, MemberSubscription], partition_counts: Mapping[Uuid, int]
) -> dict[str, Assignment]: ...
def assign_ranges(
    members: Mapping[str, MemberSubscription], partition_counts: Mapping[Uuid, int]
) -> dict[str, Assignment]: ...
