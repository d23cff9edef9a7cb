"""Commits, reads, deletes and expires the offsets of groups.

The behaviour is that of Kafka's ``OffsetMetadataManager`` and ``OffsetExpirationConditionImpl``. Only the
network thread uses this module.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kafkacore.broker.coordinator.interfaces import CoordinatorRecord, Producer
from kafkacore.broker.error_answer import error_code
from kafkacore.broker.group import records
from kafkacore.broker.group.offset_store import CommittedOffset, PartitionOffsets, Place, TopicOffsets
from kafkacore.broker.group.records import NO_TIMESTAMP
from kafkacore.broker.log_lines import NameLogger
from kafkacore.errors import (
    BrokerResponseError,
    GroupSubscribedToTopicError,
    IllegalGenerationError,
    OffsetMetadataTooLargeError,
    StaleMemberEpochError,
)
from kafkacore.protocol.generated.group_records import OffsetCommitValue
from kafkacore.wire import Uuid

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig
    from kafkacore.broker.coordinator.coordinator_log import CoordinatorLog
    from kafkacore.broker.group.coordinator_state import GroupCoordinatorState
    from kafkacore.broker.group.interfaces import PartitionCheck
    from kafkacore.broker.group.replay import LoadedPartition
    from kafkacore.clock import Clock

logger = NameLogger(__name__)

#: ``retention_ms`` of a commit that does not set a retention time.
DEFAULT_RETENTION_MS = -1
#: Member epoch of a client that is not a member of a consumer group.
NO_MEMBER_EPOCH = -1
NO_OFFSETS: Mapping[str, TopicOffsets] = {}

#: Function that is called with the error code of a fetch, the committed offsets of the group by topic and
#: partition, and the partitions that have a pending offset. The function must not modify these arguments.
OnFetched = Callable[[int, Mapping[str, TopicOffsets], Collection[Place]], None]


class Committer(NamedTuple):
    """The member or client that commits offsets."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    #: Version of the OffsetCommit request.
    version: int
    #: Milliseconds to keep the offsets, in OffsetCommit versions 2 to 4; -1 for the broker's setting.
    retention_ms: int = DEFAULT_RETENTION_MS


class OffsetToCommit(NamedTuple):
    """Offset of one partition in a commit. The partition exists."""

    topic: str
    topic_id: Uuid
    partition: int
    offset: int
    leader_epoch: int
    metadata: str | None


class OffsetManager:
    """Implements :class:`~kafkacore.broker.group.interfaces.Offsets`.

    Parameters
    ----------
    config:
        Configuration of the broker: retention of offsets and maximum size of their metadata.
    clock:
        Source of the commit timestamps.
    log:
        Log of the group coordinator, to which the offsets are written.
    state:
        State of the group coordinator, which has the groups and the offsets.
    """

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        log: CoordinatorLog[LoadedPartition],
        state: GroupCoordinatorState,
    ) -> None:
        self._config = config
        self._clock = clock
        self._log = log
        self._state = state

    # ---- Commit ---------------------------------------------------------------------------------------

    def commit(
        self,
        committer: Committer,
        node_id: int,
        offsets: Sequence[OffsetToCommit],
        on_done: Callable[[Sequence[int]], None],
    ) -> None:
        """Commit offsets of a group.

        Parameters
        ----------
        committer:
            The member or client that commits.
        node_id:
            The node that received the request.
        offsets:
            Offsets to commit.
        on_done:
            Called with the error code of each offset when the committed offsets are durable, or at once if
            no offset was accepted.
        """
        try:
            self._log.check(committer.group_id, node_id)
            check = self._state.groups.validate_commit(
                committer.group_id,
                committer.member_id,
                committer.instance_id,
                committer.generation,
                committer.version,
            )
            self._check_partitions(offsets, check)
        except BrokerResponseError as error:
            on_done([error_code(error)] * len(offsets))
            return
        now_ms = self._clock.wall_ms()
        has_retention = committer.retention_ms != DEFAULT_RETENTION_MS
        expires_ms = now_ms + committer.retention_ms if has_retention else NO_TIMESTAMP
        self._append(committer.group_id, offsets, on_done, now_ms, expires_ms)

    def commit_transactional(
        self,
        committer: Committer,
        producer: Producer,
        node_id: int,
        offsets: Sequence[OffsetToCommit],
        on_done: Callable[[Sequence[int]], None],
    ) -> None:
        """Write offsets in a transaction of a producer. They take effect when the transaction is committed.

        The caller has verified that the group's partition of ``__consumer_offsets`` is part of the
        transaction. The other parameters are those of :meth:`commit`.
        """
        try:
            self._log.check(committer.group_id, node_id)
            check = self._state.groups.validate_transactional_commit(
                committer.group_id, committer.member_id, committer.instance_id, committer.generation
            )
            self._check_partitions(offsets, check)
        except StaleMemberEpochError:
            # Return ILLEGAL_GENERATION as Kafka does, because producers do not know STALE_MEMBER_EPOCH.
            on_done([IllegalGenerationError.errno] * len(offsets))
            return
        except BrokerResponseError as error:
            on_done([error_code(error)] * len(offsets))
            return
        self._append(committer.group_id, offsets, on_done, self._clock.wall_ms(), producer=producer)

    def _check_partitions(self, offsets: Sequence[OffsetToCommit], check: PartitionCheck | None) -> None:
        """Raise an error for the whole commit if the member may not commit one of the offsets."""
        if check is not None:
            for one in offsets:
                if self._may_keep(one.metadata):
                    check(one.topic, one.topic_id, one.partition)

    def _append(
        self,
        group_id: str,
        offsets: Sequence[OffsetToCommit],
        on_done: Callable[[Sequence[int]], None],
        now_ms: int,
        expires_ms: int = NO_TIMESTAMP,
        producer: Producer | None = None,
    ) -> None:
        codes = [0 if self._may_keep(one.metadata) else OffsetMetadataTooLargeError.errno for one in offsets]
        kept = [one for one, code in zip(offsets, codes, strict=True) if not code]
        if not kept:
            on_done(codes)
            return
        batch = [_record(group_id, one, now_ms, expires_ms) for one in kept]
        self._log.append(
            group_id, batch, lambda failure: on_done([code or failure for code in codes]), producer
        )

    def _may_keep(self, metadata: str | None) -> bool:
        # Kafka counts UTF-16 code units. A character has at most two, so short metadata need not be encoded.
        limit = self._config.offset_metadata_max_bytes
        if metadata is None or 2 * len(metadata) <= limit:
            return True
        return len(metadata.encode("utf-16-le", "surrogatepass")) // 2 <= limit

    # ---- Read -----------------------------------------------------------------------------------------

    def fetch(
        self,
        group_id: str,
        node_id: int,
        on_done: OnFetched,
        member_id: str | None = None,
        member_epoch: int = NO_MEMBER_EPOCH,
    ) -> None:
        """Read all committed offsets of a group, and the partitions that have pending offsets.

        For a member of a consumer group, pass its id and its epoch. When the offsets are durable, ``on_done``
        is called with an error code and a mapping of the offsets. ``on_done`` must not modify the mapping.
        """
        try:
            self._log.check(group_id, node_id)
            self._state.groups.validate_fetch(group_id, member_id, member_epoch)
        except BrokerResponseError as error:
            on_done(error_code(error), NO_OFFSETS, ())
            return
        now = {topic: dict(offsets) for topic, offsets in self.of_group(group_id).items()}
        pending = frozenset(self.pending_of_group(group_id))

        def on_safe(code: int) -> None:
            if code:
                on_done(code, NO_OFFSETS, ())
            else:
                on_done(code, now, pending)

        self._log.when_safe(group_id, on_safe)

    def of_group(self, group_id: str) -> Mapping[str, TopicOffsets]:
        """Return the current offsets of a group, including offsets that are not durable yet."""
        offsets = self._offsets_with(group_id)
        return NO_OFFSETS if offsets is None else offsets.of_group(group_id)

    def pending_of_group(self, group_id: str) -> Mapping[Place, Mapping[int, CommittedOffset]]:
        """Return the pending offsets of a group as they are now, by partition and producer id."""
        offsets = self._offsets_with(group_id)
        return {} if offsets is None else offsets.pending.of_group(group_id)

    def _offsets_with(self, group_id: str) -> PartitionOffsets | None:
        return self._state.offsets_of(self._log.partition_for(group_id))

    # ---- Delete ---------------------------------------------------------------------------------------

    def delete(
        self,
        group_id: str,
        node_id: int,
        partitions: Sequence[tuple[str, int]],
        on_done: Callable[[int, Sequence[int]], None],
    ) -> None:
        """Delete committed offsets of topics to which the group does not subscribe.

        Parameters
        ----------
        group_id:
            Id of the group.
        node_id:
            The node that received the request.
        partitions:
            Topic name and partition of each offset.
        on_done:
            Called with the error code of the request and the code of each partition. If the whole request
            fails, the codes of the partitions may be missing.
        """
        groups = self._state.groups
        try:
            self._log.check(group_id, node_id)
            groups.validate_offset_delete(group_id)
        except BrokerResponseError as error:
            on_done(error_code(error), ())
            return
        codes = [
            GroupSubscribedToTopicError.errno if groups.is_subscribed(group_id, topic) else 0
            for topic, _ in partitions
        ]
        now, pending = self.of_group(group_id), self.pending_of_group(group_id)
        batch = [
            records.offset_commit_tombstone(group_id, topic, partition)
            for (topic, partition), code in zip(partitions, codes, strict=True)
            if not code and (partition in now.get(topic, ()) or (topic, partition) in pending)
        ]
        if batch:
            self._log.append(group_id, batch, lambda code: on_done(code, codes))
        else:
            self._log.when_safe(group_id, lambda code: on_done(code, codes))

    def removal(self, group_id: str) -> Sequence[CoordinatorRecord]:
        """Return the tombstones of all offsets of a group that is being deleted.

        A transaction that commits later does not bring its pending offsets back.
        """
        now = self.of_group(group_id)
        committed = [(topic, partition) for topic, offsets in now.items() for partition in offsets]
        places = dict.fromkeys([*committed, *self.pending_of_group(group_id)])
        return [records.offset_commit_tombstone(group_id, *place) for place in places]

    # ---- Expiry ---------------------------------------------------------------------------------------

    def expired(self, group_id: str) -> list[CoordinatorRecord]:
        """Return tombstones of the expired offsets of a group, and of the group if it has no other offsets.

        Offsets of topics to which a member subscribes do not expire. Other offsets expire after
        ``offsets.retention.minutes``. This retention time starts when the group becomes empty, or at the
        commit if the group has members or never had members. An offset that was committed with its own
        retention time expires after that time instead. An offset does not expire while a transaction has a
        pending offset of the same partition. A group with pending offsets is not removed.
        """
        groups = self._state.groups
        expiry = groups.offset_expiry(group_id)
        now, pending = self.of_group(group_id), self.pending_of_group(group_id)
        if expiry is None and now:
            return []
        batch: list[CoordinatorRecord] = []
        count = 0
        now_ms = self._clock.wall_ms()
        for topic, offsets in now.items():
            count += len(offsets)
            if groups.is_subscribed(group_id, topic):
                continue
            batch.extend(
                records.offset_commit_tombstone(group_id, topic, partition)
                for partition, offset in offsets.items()
                if expiry is not None
                and (topic, partition) not in pending
                and self._has_expired(offset, expiry.since_ms, now_ms)
            )
        if batch:
            logger.info("group %s: %d of %d committed offsets have expired", group_id, len(batch), count)
        if len(batch) == count and not pending:
            batch.extend(groups.removal(group_id))
        return batch

    def _has_expired(self, offset: CommittedOffset, since_ms: int | None, now_ms: int) -> bool:
        if offset.expire_timestamp != NO_TIMESTAMP:
            return now_ms >= offset.expire_timestamp
        base_ms = offset.commit_timestamp if since_ms is None else since_ms
        return now_ms - base_ms >= self._config.offsets_retention_minutes * 60_000

    def of_topics(self, group_id: str, is_orphan: Callable[[str, Uuid], bool]) -> list[CoordinatorRecord]:
        """Return tombstones of the committed and pending offsets of a group for topics that were deleted.

        Parameters
        ----------
        group_id:
            Id of the group.
        is_orphan:
            Returns whether the topic with this name and the id stored in the commit has been deleted.
        """
        orphans = [
            (topic, partition)
            for topic, offsets in self.of_group(group_id).items()
            for partition, offset in offsets.items()
            if is_orphan(topic, offset.topic_id)
        ]
        orphans += [
            place
            for place, offsets in self.pending_of_group(group_id).items()
            if any(is_orphan(place[0], offset.topic_id) for offset in offsets.values())
        ]
        return [records.offset_commit_tombstone(group_id, *place) for place in dict.fromkeys(orphans)]


def _record(group_id: str, one: OffsetToCommit, now_ms: int, expires_ms: int) -> CoordinatorRecord:
    value = OffsetCommitValue(
        offset=one.offset,
        leader_epoch=one.leader_epoch,
        metadata=one.metadata or "",
        commit_timestamp=now_ms,
        expire_timestamp=expires_ms,
        topic_id=one.topic_id,
    )
    return records.offset_commit(group_id, one.topic, one.partition, value)
