"""What the parts of the group coordinator ask of each other: the log, the offsets and the groups.

The log (:class:`CoordinatorLog`) is the only writer of ``__consumer_offsets`` and the only one who changes
what offsets and groups remember: it appends records and, once they are in the log, applies them, at run time
as in the replay of a start. Offsets and groups decide which records there are to be. All of it belongs to the
network thread. Does not know: requests, sockets, files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from kafkacore.broker.group.records import CoordinatorRecord
from kafkacore.protocol.generated.group_records import GroupMetadataValue

#: ``on_safe`` of an append: called once with 0, or the error code of the response.
OnSafe = Callable[[int], None]


class CoordinatorLog(Protocol):
    """The log of the group coordinator, as groups and offsets see it."""

    def partition_for(self, group_id: str) -> int:
        """The partition of ``__consumer_offsets`` that a group lives on."""

    def check(self, group_id: str, node_id: int) -> None:
        """Return if ``node_id`` coordinates the group now.

        Raises
        ------
        NotCoordinatorError
            Another node leads the group's partition, its log has failed, or there is no topic yet.
        CoordinatorLoadInProgressError
            Its records are being read.
        """

    @property
    def is_loading(self) -> bool:
        """Whether groups of some partition are still to be known."""

    def append(self, group_id: str, records: Sequence[CoordinatorRecord], on_safe: OnSafe) -> None:
        """Write one batch to the group's partition, and apply it.

        When this returns, either the records are applied (:meth:`Groups.apply_group` has been called) and
        ``on_safe`` comes later or has come; or the log has refused them, nothing is applied, and ``on_safe``
        has been called with the error. ``on_safe`` is called exactly once, on the network thread, in the
        order of the appends of a partition: with 0 as soon as the records cannot be lost, else with the code
        of ``NOT_COORDINATOR`` (the log has failed or the leader has moved: the group is unloaded, see
        :meth:`Groups.unload`), ``COORDINATOR_NOT_AVAILABLE`` (not safe after ``offsets.commit.timeout.ms``;
        they may yet become so) or ``UNKNOWN_SERVER_ERROR`` (larger than a batch may be).

        ``records`` is not empty, and :meth:`check` has let the group pass in the same turn.
        """

    def when_safe(self, group_id: str, on_safe: OnSafe) -> None:
        """Call ``on_safe`` once all that has been applied to the group's partition so far cannot be lost.

        At once, if that is so; as for an append otherwise. An answer that shows offsets or a group's state
        goes through it, so that nobody sees what a crash could still take back.
        """


class OffsetExpiry(NamedTuple):
    """When a group's offsets expire: ``offsets.retention.minutes`` after ``since_ms``, or after the commit of
    each if that is ``None``.
    """

    since_ms: int | None


class Groups(Protocol):
    """The groups, as the log and the offsets see them. ``group_id`` is known to be coordinated here."""

    # ---- Asked by the log -----------------------------------------------------------------------------

    def apply_group(self, group_id: str, value: GroupMetadataValue | None) -> None:
        """A group's record is in the log; ``None`` is its tombstone.

        At run time the group is what the record says already, or becomes it. In a replay only the last record
        of each group comes here.
        """

    def load(self, group_ids: Sequence[str]) -> None:
        """A partition's records have all been applied: these groups are coordinated here from now on.

        They are those of :meth:`apply_group`, and those that only have offsets (an empty group that has no
        protocol type, which Kafka calls simple).
        """

    def unload(self, partition: int) -> None:
        """Forget the groups of a partition, which are no longer coordinated here.

        Answer whoever waits on one of them with ``NOT_COORDINATOR``; write nothing.
        """

    # ---- Asked by the offsets -------------------------------------------------------------------------

    def group_ids(self, partition: int) -> Sequence[str]:
        """The groups of a partition."""

    def exists(self, group_id: str) -> bool:
        """Whether there is such a group, empty and simple ones included."""

    def ensure_simple(self, group_id: str) -> None:
        """There are offsets of a group: let it exist, empty and without a protocol type, if it does not."""

    def validate_commit(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int, version: int
    ) -> None:
        """Whether this member may commit; a commit also is a sign of life, and keeps its session.

        Parameters
        ----------
        version:
            Of OffsetCommit: from 9 on, an unknown group is ``GROUP_ID_NOT_FOUND``.

        Raises
        ------
        GroupIdNotFoundError, UnknownMemberIdError, FencedInstanceIdError, IllegalGenerationError,
        RebalanceInProgressError
            As Kafka's ``OffsetMetadataManager.validateOffsetCommit`` and ``ClassicGroup``'s.
        """

    def validate_offset_delete(self, group_id: str) -> None:
        """Whether offsets of the group may be deleted.

        Raises
        ------
        GroupIdNotFoundError
            There is no such group.
        NonEmptyGroupError
            It has members that are no consumers.
        """

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        """Whether a member consumes the topic; true for all topics while that is not known."""

    def offset_expiry(self, group_id: str) -> OffsetExpiry | None:
        """From when on the group's offsets age; ``None``: they do not, now."""

    def removal(self, group_id: str) -> Sequence[CoordinatorRecord]:
        """The tombstone of the group, whose last offset goes in the same batch; nothing unless it is empty.

        A simple group has one, too, as in Kafka: it is applied as any other.
        """


class Offsets(Protocol):
    """The committed offsets, as the groups see them."""

    def removal(self, group_id: str) -> Sequence[CoordinatorRecord]:
        """Tombstones of all offsets of a group, for one that is deleted."""
