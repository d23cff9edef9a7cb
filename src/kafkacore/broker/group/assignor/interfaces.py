"""The input and the result of an assignor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from kafkacore.wire import Uuid

#: Partitions of a member by topic id, in ascending order. A topic without partitions is absent.
Assignment = Mapping[Uuid, tuple[int, ...]]


class PartitionAssignorError(Exception):
    """An assignor cannot assign the partitions of a group; Kafka's ``PartitionAssignorException``."""


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """A member as an assignor sees it.

    Parameters
    ----------
    instance_id:
        Group instance id of a static member, or ``None``.
    topic_ids:
        Topics that the member subscribes to and that exist.
    assigned:
        Current target assignment of the member.
    """

    instance_id: str | None
    topic_ids: frozenset[Uuid]
    assigned: Assignment


class Assignor(Protocol):
    """Distributes the partitions of topics over the members of a group."""

    name: str

    def assign(
        self,
        members: Mapping[str, MemberSubscription],
        partition_counts: Mapping[Uuid, int],
        *,
        is_homogeneous: bool,
    ) -> dict[str, Assignment]:
        """Return the new target assignment of each member.

        If the assignment of a member does not change, the result has the same object, so that the caller
        finds the changes without a comparison.

        Parameters
        ----------
        members:
            The members by id.
        partition_counts:
            Number of partitions of each topic that a member subscribes to.
        is_homogeneous:
            Whether all members subscribe to the same topics.

        Raises
        ------
        PartitionAssignorError
            ``partition_counts`` does not contain a topic that a member subscribes to.
        """
