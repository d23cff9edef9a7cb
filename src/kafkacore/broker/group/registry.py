"""The groups that this broker coordinates, by id. Only the network thread uses this module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from kafkacore.broker.coordinator.interfaces import CoordinatorRecord
from kafkacore.broker.group.classic_group import ClassicGroup, GroupState
from kafkacore.broker.group.consumer._sessions import Sessions
from kafkacore.broker.group.consumer.consumer_group import ConsumerGroup
from kafkacore.broker.group.consumer.consumer_member import MemberState
from kafkacore.broker.group.consumer.deadline import Deadline
from kafkacore.broker.group.consumer.group_records import apply_record
from kafkacore.broker.group.consumer.removal import removal_of_group
from kafkacore.broker.group.group_record import group_of
from kafkacore.broker.group.interfaces import OffsetExpiry, PartitionCheck
from kafkacore.broker.group.rebalancer import Rebalancer
from kafkacore.broker.group.records import ConsumerKey, group_metadata_tombstone
from kafkacore.broker.log_lines import NameLogger
from kafkacore.clock import Clock
from kafkacore.errors import (
    GroupIdNotFoundError,
    IllegalGenerationError,
    NotCoordinatorError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from kafkacore.protocol.generated.group_records import ConsumerGroupMetadataKey, GroupMetadataValue

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig
    from kafkacore.broker.config.group_limits import GroupLimits

logger = NameLogger(__name__)

AnyGroup: TypeAlias = ClassicGroup | ConsumerGroup

#: First OffsetCommit version that returns GROUP_ID_NOT_FOUND for a group that does not exist.
FIRST_COMMIT_VERSION_WITH_NOT_FOUND = 9


class GroupRegistry:
    """Implements :class:`~kafkacore.broker.group.interfaces.Groups`.

    Parameters
    ----------
    rebalancer:
        Manages the sessions and rebalances of the classic groups.
    sessions:
        Deadlines of the members of consumer groups.
    partition_for:
        Returns the partition of ``__consumer_offsets`` that stores a group.
    config:
        Configuration of the broker, for ``group.max.size``.
    limits:
        Session timeouts of the consumer groups.
    clock:
        Source of the wall-clock time.
    """

    def __init__(
        self,
        rebalancer: Rebalancer,
        sessions: Sessions,
        partition_for: Callable[[str], int],
        config: BrokerConfig,
        limits: GroupLimits,
        clock: Clock,
    ) -> None:
        self._rebalancer = rebalancer
        self._sessions = sessions
        self._partition_for = partition_for
        self._config = config
        self._limits = limits
        self._clock = clock
        self._groups: dict[str, AnyGroup] = {}
        #: Returns a group of either kind, or ``None``. Each heartbeat calls it.
        self.get: Callable[[str], AnyGroup | None] = self._groups.get
        # Group ids by partition, so that unloading a partition does not have to look at all groups.
        self._of_partition: dict[int, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[AnyGroup]:
        return iter(list(self._groups.values()))

    def classic_group(self, group_id: str) -> ClassicGroup | None:
        """Return a classic group; ``None`` if it does not exist or is a consumer group."""
        group = self._groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def consumer_group(self, group_id: str) -> ConsumerGroup | None:
        """Return a consumer group; ``None`` if it does not exist or is a classic group."""
        group = self._groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def found(self, group_id: str) -> AnyGroup:
        """Return an existing group of either kind, or raise :class:`GroupIdNotFoundError`."""
        group = self._groups.get(group_id)
        if group is None:
            raise GroupIdNotFoundError(f"Group {group_id} not found.")
        return group

    def known_classic_group(self, group_id: str) -> ClassicGroup:
        """Return the classic group of a member.

        Raises
        ------
        UnknownMemberIdError
            The group does not exist, so the member does not exist either.
        """
        group = self.classic_group(group_id)
        if group is None:
            raise UnknownMemberIdError(f"Group {group_id} not found.")
        return group

    def create(self, group_id: str) -> ClassicGroup:
        """Create a classic group without members."""
        group = ClassicGroup(group_id, self._clock.wall_ms)
        self._keep(group)
        return group

    def _keep(self, group: AnyGroup) -> None:
        self._groups[group.group_id] = group
        self._of_partition.setdefault(self._partition_for(group.group_id), {})[group.group_id] = None

    def remove(self, group_id: str, error_code: int = NotCoordinatorError.errno) -> None:
        """Remove a group. Requests that wait for the group fail with ``error_code``."""
        group = self._groups.pop(group_id, None)
        if group is None:
            return
        del self._of_partition[self._partition_for(group_id)][group_id]
        if isinstance(group, ClassicGroup):
            with self._rebalancer.delayed_responses:
                self._rebalancer.transition_to_dead(group, error_code)
        else:
            self._sessions.end_group(group_id)

    # ---- Used by the log ------------------------------------------------------------------------------

    def apply_group(self, group_id: str, value: GroupMetadataValue | None) -> None:
        group = self._groups.get(group_id)
        if value is None:
            if isinstance(group, ClassicGroup):
                # If the group becomes a consumer group, the waiting requests of its members fail with this
                # error.
                self.remove(group_id, RebalanceInProgressError.errno)
        elif group is None:
            self._keep(group_of(group_id, value, self._clock.wall_ms))

    def apply_consumer_record(self, group_id: str, key: ConsumerKey, value: Any) -> None:
        group = self.consumer_group(group_id)
        if value is None:
            if group is None:
                return
            if isinstance(key, ConsumerGroupMetadataKey):
                self.remove(group_id)
                return
        elif group is None:
            # The consumer group replaces a simple group, which has only offsets.
            self.remove(group_id)
            group = ConsumerGroup(group_id)
            self._keep(group)
        apply_record(group, key, value)

    def add_loaded(self, group: ConsumerGroup) -> None:
        if group.group_id not in self._groups:
            self._keep(group)

    def load(self, group_ids: Sequence[str]) -> None:
        with self._rebalancer.delayed_responses:
            for group_id in group_ids:
                self.ensure_simple(group_id)
                group = self._groups[group_id]
                if isinstance(group, ClassicGroup):
                    self._begin(group)
                else:
                    self._begin_sessions(group)

    def _begin(self, group: ClassicGroup) -> None:
        if not len(group):
            return
        logger.info(
            "group %s: loaded generation %d with %d members", group.group_id, group.generation_id, len(group)
        )
        for member in group:
            self._rebalancer.touch(group, member)
        if len(group) > self._config.group_max_size:
            # group.max.size has been lowered: rebalance, so that only the members that rejoin first stay.
            self._rebalancer.prepare(
                group,
                f"loaded with {len(group)} members, but group.max.size is {self._config.group_max_size}",
            )

    def _begin_sessions(self, group: ConsumerGroup) -> None:
        logger.info(
            "group %s: loaded consumer group in epoch %d with %d members",
            group.group_id,
            group.epoch,
            len(group),
        )
        timeout_ms = self._limits.of(group.group_id).session_timeout_ms
        for member in group:
            self._sessions.begin(group.group_id, member.member_id, Deadline.SESSION, timeout_ms)
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                self._sessions.begin(
                    group.group_id, member.member_id, Deadline.REVOCATION, member.rebalance_timeout_ms
                )

    def unload(self, partition: int) -> None:
        for group_id in self.group_ids(partition):
            group = self._groups[group_id]
            if len(group):
                logger.info("group %s: no longer coordinated here", group_id)
            self.remove(group_id)

    # ---- Used by the offsets --------------------------------------------------------------------------

    def group_ids(self, partition: int) -> Sequence[str]:
        return list(self._of_partition.get(partition, ()))

    def exists(self, group_id: str) -> bool:
        return group_id in self._groups

    def ensure_simple(self, group_id: str) -> None:
        if group_id not in self._groups:
            self.create(group_id)

    def validate_commit(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int, version: int
    ) -> PartitionCheck | None:
        group = self._groups.get(group_id)
        if group is None:
            if generation < 0:
                return None
            if version >= FIRST_COMMIT_VERSION_WITH_NOT_FOUND:
                raise GroupIdNotFoundError(f"Group {group_id} not found.")
            raise IllegalGenerationError
        if isinstance(group, ConsumerGroup):
            return group.validate_offset_commit(member_id, instance_id, generation, version=version)
        group.validate_offset_commit(member_id, instance_id, generation)
        if group.is_in(GroupState.STABLE, GroupState.PREPARING_REBALANCE):
            self._rebalancer.touch(group, group.member(member_id))
        return None

    def validate_transactional_commit(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int
    ) -> PartitionCheck | None:
        group = self._groups.get(group_id)
        if group is None:
            if generation >= 0:
                raise IllegalGenerationError
            return None
        if isinstance(group, ConsumerGroup):
            return group.validate_offset_commit(member_id, instance_id, generation, is_transactional=True)
        group.validate_offset_commit(member_id, instance_id, generation, is_transactional=True)
        return None

    def validate_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> None:
        group = self.consumer_group(group_id)
        if group is not None:
            group.validate_offset_fetch(member_id, member_epoch)

    def validate_offset_delete(self, group_id: str) -> None:
        self.found(group_id).validate_offset_delete()

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        group = self._groups.get(group_id)
        return group is not None and group.is_subscribed_to(topic)

    def offset_expiry(self, group_id: str) -> OffsetExpiry | None:
        group = self._groups.get(group_id)
        return OffsetExpiry(None) if group is None else group.offset_expiry()

    def removal(self, group_id: str) -> Sequence[CoordinatorRecord]:
        group = self._groups.get(group_id)
        if group is None or not group.is_empty:
            return ()
        return tombstones_of(group)


def tombstones_of(group: AnyGroup) -> Sequence[CoordinatorRecord]:
    """Return the records that remove a group, without its offsets."""
    if isinstance(group, ConsumerGroup):
        return removal_of_group(group)
    return [group_metadata_tombstone(group.group_id)]
