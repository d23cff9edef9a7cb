"""The assignor ``range``: each member gets consecutive partitions of each topic.

Topics with the same number of partitions and the same members are assigned in the same way, so that one
member receives all records with the same key. The behaviour is that of Kafka's ``RangeAssignor``.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from kafkacore.broker.group.assignor._builder import assign_ranges
from kafkacore.broker.group.assignor.interfaces import Assignment, MemberSubscription


class RangeAssignor:
    """Implements :class:`~kafkacore.broker.group.assignor.interfaces.Assignor`."""

    name = "range"

    def assign(
        self,
        members: Mapping[str, MemberSubscription],
        partition_counts: Mapping[UUID, int],
        *,
        is_homogeneous: bool,
    ) -> dict[str, Assignment]:
        return assign_ranges(members, _in_order(members), partition_counts)


def _in_order(members: Mapping[str, MemberSubscription]) -> list[str]:
    """Return the ids of static members by instance id, then the ids of other members by member id."""
    static = {one.instance_id: name for name, one in members.items() if one.instance_id is not None}
    others = [name for name, one in members.items() if one.instance_id is None]
    return [static[name] for name in _sorted(list(static))] + _sorted(others)


def _sorted(names: list[str]) -> list[str]:
    # Java compares strings by UTF-16 code units. For ASCII strings, this is the order of code points.
    if all(map(str.isascii, names)):
        return sorted(names)
    return sorted(names, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
