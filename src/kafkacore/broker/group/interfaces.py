"""Interfaces between the parts of the group coordinator: the log, the committed offsets and the groups.

Offsets and groups decide which records to write. The log appends them to ``__consumer_offsets`` and then
applies them to offsets and groups, which do not change in any other way. All parts run on the network thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kafkacore.broker.coordinator.interfaces import CoordinatorRecord, OnSafe
from kafkacore.protocol.generated.group_records import GroupMetadataValue
from kafkacore.wire import Uuid

if TYPE_CHECKING:
    from kafkacore.broker.group.consumer.consumer_group import ConsumerGroup
    from kafkacore.broker.group.records import ConsumerKey


class CoordinatorLog(Protocol):
    """The log of the group coordinator: the interface that the groups and the offsets use."""

    def partition_for(self, group_id: str) -> int:
        """Return the partition of ``__consumer_offsets`` that stores a group."""

    def check(self, group_id: str, node_id: int) -> None:
        """Check that ``node_id`` coordinates the group now.

        Raises
        ------
        NotCoordinatorError
            Another node leads the group's partition, its log has failed, or the topic does not exist.
        CoordinatorLoadInProgressError
            The partition is being loaded.
        """

    @property
    def is_loading(self) -> bool:
        """Whether any partition is still being loaded."""

    def append(self, group_id: str, records: Sequence[CoordinatorRecord], on_safe: OnSafe) -> None:
        """Append one batch to the group's partition and apply it.

        See :meth:`kafkacore.broker.coordinator.coordinator_log.CoordinatorLog.append`.
        """

    def is_safe_now(self, group_id: str, node_id: int) -> bool:
        """Return whether :meth:`check` would pass, and :meth:`when_safe` would call its function at once."""

    def when_safe(self, group_id: str, on_safe: OnSafe) -> None:
        """Call ``on_safe`` when the high watermark has passed all records applied to the partition so far.

        The call may happen before this method returns. The error codes are those of :meth:`append`. A
        response that contains offsets or group state waits for the call of ``on_safe``, so that clients never
        see state that a crash could undo.
        """


#: Function that raises an error if a member may not commit the offset of a partition. Its arguments are
#: the name of the topic, the id of the topic, and the partition.
PartitionCheck = Callable[[str, Uuid, int], None]


class OffsetExpiry(NamedTuple):
    """Start of the retention time ``offsets.retention.minutes`` of a group's offsets."""

    #: Wall-clock time in milliseconds, or ``None`` if the time of each offset starts at its commit.
    since_ms: int | None


class Groups(Protocol):
    """The groups: the interface that the log and the offsets use.

    Every ``group_id`` must have passed :meth:`CoordinatorLog.check`, unless a method states otherwise.
    """

    # ---- Used by the log ------------------------------------------------------------------------------

    def apply_group(self, group_id: str, value: GroupMetadataValue | None) -> None:
        """Apply the record of a classic group that has been appended; ``None`` is a tombstone.

        A group that exists is left unchanged, because it already has the state of the record. While a
        partition is being loaded, this method gets only the last record of each group.
        """

    def apply_consumer_record(self, group_id: str, key: ConsumerKey, value: Any) -> None:
        """Apply a record of a consumer group that has been appended; ``None`` as the value is a tombstone."""

    def add_loaded(self, group: ConsumerGroup) -> None:
        """Add a consumer group whose records have been read while its partition is being loaded."""

    def load(self, group_ids: Sequence[str]) -> None:
        """Begin to coordinate groups whose records have all been applied.

        A group that only has offsets is created as a simple group: it is empty and has no protocol type.
        """

    def unload(self, partition: int) -> None:
        """Stop coordinating the groups of a partition, without writing records.

        Waiting requests fail with ``NOT_COORDINATOR``.
        """

    # ---- Used by the offsets --------------------------------------------------------------------------

    def group_ids(self, partition: int) -> Sequence[str]:
        """Return the ids of the groups of a partition."""

    def exists(self, group_id: str) -> bool:
        """Return whether the group exists, including empty and simple groups."""

    def ensure_simple(self, group_id: str) -> None:
        """Create a simple group, which is empty and has no protocol type, if the group does not exist."""

    def validate_commit(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int, version: int
    ) -> PartitionCheck | None:
        """Check that a member may commit offsets, and extend its session as a heartbeat does.

        A commit does not extend the session of a member of a consumer group.

        Parameters
        ----------
        group_id:
            Id of the group.
        member_id, instance_id, generation:
            The committing member, as in the request.
        version:
            OffsetCommit version. From version 9 on, the error for an unknown group is ``GROUP_ID_NOT_FOUND``.

        Returns
        -------
        PartitionCheck | None
            Function that must accept each partition of the commit; ``None`` if all are accepted.

        Raises
        ------
        GroupIdNotFoundError, UnknownMemberIdError, FencedInstanceIdError, IllegalGenerationError,
        RebalanceInProgressError, StaleMemberEpochError, UnsupportedVersionError
            In the same cases as in ``validateOffsetCommit`` of Kafka's ``OffsetMetadataManager`` and
            ``ClassicGroup``.
        """

    def validate_transactional_commit(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int
    ) -> PartitionCheck | None:
        """Check that a member may commit offsets in a transaction. The session of the member is not extended.

        The parameters and the result are those of :meth:`validate_commit`.

        Raises
        ------
        UnknownMemberIdError, FencedInstanceIdError, IllegalGenerationError
            In the same cases as in ``validateTransactionalOffsetCommit`` of Kafka's
            ``OffsetMetadataManager``.
        """

    def validate_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> None:
        """Check that a client may read the offsets of a group.

        Parameters
        ----------
        group_id:
            Id of the group, which need not exist.
        member_id, member_epoch:
            The member, as in the request; ``None`` and -1 for a client that is not a member.

        Raises
        ------
        UnknownMemberIdError, StaleMemberEpochError, IllegalGenerationError
            The group is a consumer group, and the member is unknown or has another epoch.
        """

    def validate_offset_delete(self, group_id: str) -> None:
        """Check that offsets of the group may be deleted.

        Raises
        ------
        GroupIdNotFoundError
            The group does not exist.
        NonEmptyGroupError
            The group has members and is not a consumer group.
        """

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        """Return whether a member subscribes to the topic; true if the subscriptions are not known."""

    def offset_expiry(self, group_id: str) -> OffsetExpiry | None:
        """Return when the retention time of the offsets starts, or ``None`` if they cannot expire now."""

    def removal(self, group_id: str) -> Sequence[CoordinatorRecord]:
        """Return the tombstone of an empty group, or no record if the group is not empty.

        The tombstone is written in the same batch as the tombstone of the group's last offset. As in Kafka, a
        simple group gets a tombstone as well.
        """


class Offsets(Protocol):
    """The committed offsets: the interface that the groups use."""

    def removal(self, group_id: str) -> Sequence[CoordinatorRecord]:
        """Return the tombstones of all offsets of a group that is being deleted."""
