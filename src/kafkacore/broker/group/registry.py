"""The groups that this broker coordinates, by id. Only the network thread uses this module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from kafkacore.broker.coordinator.interfaces import CoordinatorRecord
from kafkacore.broker.group.classic_group import ClassicGroup, GroupState
from kafkacore.broker.group.group_record import group_of
from kafkacore.broker.group.interfaces import OffsetExpiry
from kafkacore.broker.group.rebalancer import Rebalancer
from kafkacore.broker.group.records import group_metadata_tombstone
from kafkacore.broker.log_lines import NameLogger
from kafkacore.clock import Clock
from kafkacore.errors import (
    GroupIdNotFoundError,
    IllegalGenerationError,
    NotCoordinatorError,
    UnknownMemberIdError,
)

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig
    from kafkacore.protocol.generated.group_records import GroupMetadataValue

logger = NameLogger(__name__)

#: First OffsetCommit version that returns GROUP_ID_NOT_FOUND for a group that does not exist.
FIRST_COMMIT_VERSION_WITH_NOT_FOUND = 9


class GroupRegistry:
    """Implements :class:`~kafkacore.broker.group.interfaces.Groups`.

    Parameters
    ----------
    rebalancer:
        Manages the sessions and rebalances of the groups.
    partition_for:
        Returns the partition of ``__consumer_offsets`` that stores a group.
    config:
        Configuration of the broker, for ``group.max.size``.
    clock:
        Source of the wall-clock time.
    """

    def __init__(
        self,
        rebalancer: Rebalancer,
        partition_for: Callable[[str], int],
        config: BrokerConfig,
        clock: Clock,
    ) -> None:
        self._rebalancer = rebalancer
        self._partition_for = partition_for
        self._config = config
        self._clock = clock
        self._groups: dict[str, ClassicGroup] = {}
        # Group ids by partition, so that unloading a partition does not have to look at all groups.
        self._of_partition: dict[int, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[ClassicGroup]:
        return iter(list(self._groups.values()))

    def get(self, group_id: str) -> ClassicGroup | None:
        return self._groups.get(group_id)

    def known(self, group_id: str) -> ClassicGroup:
        """Return an existing group.

        Raises
        ------
        UnknownMemberIdError
            The group does not exist, and so the member does not either.
        """
        group = self._groups.get(group_id)
        if group is None:
            raise UnknownMemberIdError(f"Group {group_id} not found.")
        return group

    def create(self, group_id: str) -> ClassicGroup:
        return self._keep(ClassicGroup(group_id, self._clock.wall_ms))

    def _keep(self, group: ClassicGroup) -> ClassicGroup:
        self._groups[group.group_id] = group
        self._of_partition.setdefault(self._partition_for(group.group_id), {})[group.group_id] = None
        return group

    def remove(self, group_id: str, error_code: int = NotCoordinatorError.errno) -> None:
        """Remove a group. Requests that wait for it fail with ``error_code``."""
        group = self._groups.pop(group_id, None)
        if group is not None:
            del self._of_partition[self._partition_for(group_id)][group_id]
            with self._rebalancer.delayed_responses:
                self._rebalancer.transition_to_dead(group, error_code)

    # ---- Used by the log ------------------------------------------------------------------------------

    def apply_group(self, group_id: str, value: GroupMetadataValue | None) -> None:
        if value is None:
            self.remove(group_id)
        elif group_id not in self._groups:
            self._keep(group_of(group_id, value, self._clock.wall_ms))

    def load(self, group_ids: Sequence[str]) -> None:
        with self._rebalancer.delayed_responses:
            for group_id in group_ids:
                self.ensure_simple(group_id)
                self._begin(self._groups[group_id])

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

    def unload(self, partition: int) -> None:
        for group_id in self.group_ids(partition):
            group = self._groups[group_id]
            if len(group):
                logger.info(
                    "group %s: no longer coordinated here, generation %d", group_id, group.generation_id
                )
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
    ) -> None:
        group = self._groups.get(group_id)
        if group is None:
            if generation < 0:
                return
            if version >= FIRST_COMMIT_VERSION_WITH_NOT_FOUND:
                raise GroupIdNotFoundError(f"Group {group_id} not found.")
            raise IllegalGenerationError
        group.validate_offset_commit(member_id, instance_id, generation)
        if group.is_in(GroupState.STABLE, GroupState.PREPARING_REBALANCE):
            self._rebalancer.touch(group, group.member(member_id))

    def validate_transactional_commit(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int
    ) -> None:
        group = self._groups.get(group_id)
        if group is not None:
            group.validate_offset_commit(member_id, instance_id, generation, is_transactional=True)
        elif generation >= 0:
            raise IllegalGenerationError

    def validate_offset_delete(self, group_id: str) -> None:
        self.found(group_id).validate_offset_delete()

    def found(self, group_id: str) -> ClassicGroup:
        """Return an existing group, or raise :class:`GroupIdNotFoundError`."""
        group = self._groups.get(group_id)
        if group is None:
            raise GroupIdNotFoundError(f"Group {group_id} not found.")
        return group

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        group = self._groups.get(group_id)
        return group is not None and group.is_subscribed_to(topic)

    def offset_expiry(self, group_id: str) -> OffsetExpiry | None:
        group = self._groups.get(group_id)
        return OffsetExpiry(None) if group is None else group.offset_expiry()

    def removal(self, group_id: str) -> Sequence[CoordinatorRecord]:
        group = self._groups.get(group_id)
        if group is None or not group.is_in(GroupState.EMPTY):
            return ()
        return (group_metadata_tombstone(group_id),)
