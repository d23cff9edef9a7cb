"""Changes the type of a group while it has members: from classic to consumer, and back.

``group.consumer.migration.policy`` allows each direction. The members keep their partitions and their
sessions. The behaviour is that of ``convertToConsumerGroup`` and ``convertToClassicGroup`` in Kafka's
``GroupMetadataManager``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kafkacore.broker.coordinator.interfaces import CoordinatorRecord
from kafkacore.broker.group import records
from kafkacore.broker.group.classic_group import ClassicGroup, GroupState
from kafkacore.broker.group.consumer.consumer_group import FIRST_EPOCH, ConsumerGroup
from kafkacore.broker.group.consumer.consumer_member import Assignment, ClassicMember, ConsumerGroupMember
from kafkacore.broker.group.consumer.deadline import Deadline
from kafkacore.broker.group.consumer.member_records import partitions_record, subscription_record
from kafkacore.broker.group.consumer.removal import removal_of_group
from kafkacore.broker.group.group_record import record_of
from kafkacore.broker.group.member import ClassicGroupMember
from kafkacore.broker.log_lines import NameLogger
from kafkacore.coordinator.protocol import (
    LATEST_VERSION,
    PROTOCOL_TYPE,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from kafkacore.coordinator.protocol import Assignment as EncodedAssignment
from kafkacore.errors import GroupIdNotFoundError, MalformedMessageError, UnknownError
from kafkacore.structs import TopicPartition
from kafkacore.wire import Uuid

if TYPE_CHECKING:
    from kafkacore.broker.config.broker_config import BrokerConfig
    from kafkacore.broker.group.consumer._sessions import Sessions
    from kafkacore.broker.group.consumer.group_topics import GroupTopics
    from kafkacore.broker.group.delayed_responses import DelayedResponses
    from kafkacore.broker.group.rebalancer import Rebalancer
    from kafkacore.broker.group.registry import GroupRegistry
    from kafkacore.clock import Clock

logger = NameLogger(__name__)

#: Hash of a group whose topics do not exist.
NO_HASH = 0


class Migration:
    """Changes the type of groups. Only the network thread may use it.

    Parameters
    ----------
    registry:
        The groups.
    rebalancer:
        Manages the sessions and rebalances of the classic groups.
    sessions:
        Deadlines of the members of consumer groups.
    topics:
        The topics.
    config:
        Configuration of the broker, for ``group.consumer.migration.policy`` and the maximum sizes of groups.
    clock:
        Source of the wall-clock time.
    """

    def __init__(
        self,
        registry: GroupRegistry,
        rebalancer: Rebalancer,
        sessions: Sessions,
        topics: GroupTopics,
        config: BrokerConfig,
        clock: Clock,
    ) -> None:
        self._registry = registry
        self._rebalancer = rebalancer
        self._sessions = sessions
        self._topics = topics
        self._config = config
        self._clock = clock

    @property
    def delayed_responses(self) -> DelayedResponses:
        """Queue of responses to members of classic groups, which wait until a change is complete."""
        return self._rebalancer.delayed_responses

    @property
    def is_disabled(self) -> bool:
        """Whether a group with members rejects members of the other protocol."""
        return self._config.group_consumer_migration_policy == "disabled"

    # ---- From classic to consumer ---------------------------------------------------------------------

    def upgrade(self, classic: ClassicGroup, batch: list[CoordinatorRecord]) -> ConsumerGroup:
        """Return the consumer group that replaces a classic group with members.

        The records of the change are added to ``batch``. When they are applied, requests that wait for the
        classic group fail with ``REBALANCE_IN_PROGRESS``, and their members continue in the new group.

        Raises
        ------
        GroupIdNotFoundError
            The group cannot be upgraded. The message has the reason.
        UnknownError
            The leader of the classic group has assigned a partition to two members.
        """
        reason = self._reason_not_to_upgrade(classic)
        if reason is not None:
            logger.info("group %s: no upgrade to a consumer group because %s", classic.group_id, reason)
            raise GroupIdNotFoundError(
                f"Cannot upgrade classic group {classic.group_id} to consumer group because {reason}."
            )
        # Before the first generation of a classic group, its generation id is 0, with which a member joins.
        epoch = max(classic.generation_id, FIRST_EPOCH)
        try:
            members = [self._upgraded(classic, member, epoch) for member in classic]
        except MalformedMessageError as error:
            logger.warning("group %s: no upgrade to a consumer group: %s", classic.group_id, error)
            raise GroupIdNotFoundError(
                f"Cannot upgrade classic group {classic.group_id} to consumer group because the embedded "
                "consumer protocol is malformed."
            ) from None
        group_id = classic.group_id
        group = ConsumerGroup(group_id)
        targets: dict[str, Assignment] = {}
        for member in members:
            assigned = member.assigned.items()
            if any(group.is_owned(topic_id, one) for topic_id, owned in assigned for one in owned):
                message = f"Cannot upgrade classic group {group_id}: two members own the same partition."
                logger.warning("group %s: %s", group_id, message)
                raise UnknownError(message)
            group.apply_member(member)
            targets[member.member_id] = {
                topic_id: tuple(sorted(owned)) for topic_id, owned in member.assigned.items()
            }
            group.apply_target(member.member_id, targets[member.member_id])
        names = frozenset(topic for member in members for topic in member.subscribed_topic_names)
        if classic.is_in(GroupState.STABLE) and self._are_assigned(names, members):
            metadata_hash, group.topics_version = self._topics.metadata_hash(names), self._topics.version
        else:
            # The heartbeat that upgrades the group finds that its topics have another hash. It therefore
            # computes an assignment, which the members could otherwise wait for without end, as in Kafka.
            metadata_hash = NO_HASH
        group.apply_epoch(epoch, metadata_hash)
        group.apply_target_epoch(epoch, 0)
        batch.append(records.group_metadata_tombstone(group_id))
        batch.extend(subscription_record(group_id, member) for member in members)
        batch.append(records.consumer_group_metadata(group_id, epoch, metadata_hash))
        batch.extend(records.target_assignment(group_id, *target) for target in targets.items())
        batch.append(records.target_assignment_metadata(group_id, epoch, 0))
        batch.extend(partitions_record(group_id, member) for member in members)
        for member in members:
            assert member.classic is not None
            self._sessions.begin(
                group_id, member.member_id, Deadline.SESSION, member.classic.session_timeout_ms
            )
        logger.info("group %s: the classic group becomes a consumer group", group_id)
        return group

    def _are_assigned(self, names: frozenset[str], members: Sequence[ConsumerGroupMember]) -> bool:
        """Return whether the members own all partitions of these topics."""
        counts = self._topics.partition_counts(self._topics.ids(names))
        owned = sum(
            partition < count
            for member in members
            for topic_id, count in counts.items()
            for partition in member.assigned.get(topic_id, ())
        )
        return owned == sum(counts.values())

    def _reason_not_to_upgrade(self, classic: ClassicGroup) -> str | None:
        if self._config.group_consumer_migration_policy not in ("bidirectional", "upgrade"):
            return "online upgrade is disabled"
        if classic.protocol_type != PROTOCOL_TYPE:
            return "the group does not use the consumer embedded protocol"
        if len(classic) > self._config.group_consumer_max_size:
            return "the group size exceeds the consumer group maximum size"
        return None

    def _upgraded(self, classic: ClassicGroup, member: ClassicGroupMember, epoch: int) -> ConsumerGroupMember:
        assignment = decode_assignment(member.assignment)
        if assignment.user_data:
            raise GroupIdNotFoundError(
                f"Cannot upgrade classic group {classic.group_id} to consumer group because an unsupported "
                "custom assignor is in use. Please refer to the documentation or switch to a default "
                "assignor before re-attempting the upgrade."
            )
        protocols = {protocol.name: protocol.metadata for protocol in member.protocols}
        metadata = protocols.get(classic.protocol_name or "", member.protocols[0].metadata)
        subscription = decode_subscription(metadata)
        return ConsumerGroupMember(
            member_id=member.member_id,
            member_epoch=epoch,
            previous_member_epoch=epoch,
            instance_id=member.group_instance_id,
            rack_id=subscription.rack_id or None,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=frozenset(subscription.topics),
            assigned={
                topic_id: dict.fromkeys(sorted(partitions), epoch)
                for topic_id, partitions in self.by_topic_id(assignment.partitions).items()
            },
            classic=ClassicMember(member.session_timeout_ms, member.protocols),
        )

    def by_topic_id(self, partitions: Sequence[TopicPartition]) -> dict[Uuid, list[int]]:
        """Return partitions by the ids of their topics, without topics that do not exist."""
        found: dict[Uuid, list[int]] = {}
        for name, partition in partitions:
            topic_id = self._topics.id_of(name)
            if topic_id is not None:
                found.setdefault(topic_id, []).append(partition)
        return found

    # ---- From consumer to classic ---------------------------------------------------------------------

    def may_downgrade_without(self, group: ConsumerGroup, leaving: Sequence[ConsumerGroupMember]) -> bool:
        """Return whether a group becomes a classic group when these members have left."""
        left = len(group) - len(leaving)
        left_classic = group.classic_count - sum(member.uses_classic_protocol for member in leaving)
        return left > 0 and left_classic == left and self._may_downgrade(group, left)

    def may_downgrade_with_replaced(self, group: ConsumerGroup, replaced: ConsumerGroupMember) -> bool:
        """Return whether a group downgrades when a classic member replaces this static member."""
        is_last = not replaced.uses_classic_protocol and group.classic_count == len(group) - 1
        return is_last and self._may_downgrade(group, len(group))

    def _may_downgrade(self, group: ConsumerGroup, size: int) -> bool:
        if self._config.group_consumer_migration_policy not in ("bidirectional", "downgrade"):
            logger.info("group %s: no downgrade to a classic group: the policy forbids it", group.group_id)
            return False
        if size > self._config.group_max_size:
            logger.info("group %s: no downgrade to a classic group: it is too large", group.group_id)
            return False
        return True

    def downgrade(
        self,
        group: ConsumerGroup,
        leaving: Sequence[ConsumerGroupMember],
        batch: list[CoordinatorRecord],
        joining: ConsumerGroupMember | None = None,
    ) -> None:
        """Add the records that replace a consumer group with a classic group.

        Parameters
        ----------
        group:
            The group. All members except ``leaving`` use the classic protocol.
        leaving:
            Members that leave, or that ``joining`` replaces.
        batch:
            List to which the records of the change are added.
        joining:
            Static member of the classic protocol that replaces the last member of the consumer protocol.
        """
        gone = {member.member_id for member in leaving}
        staying = [member for member in group if member.member_id not in gone]
        if joining is not None:
            staying.append(joining)
        classic = ClassicGroup(group.group_id, self._clock.wall_ms)
        for member in staying:
            assert member.classic is not None
            classic.add(
                ClassicGroupMember(
                    member.member_id,
                    member.instance_id,
                    member.client_id,
                    member.client_host,
                    member.rebalance_timeout_ms,
                    member.classic.session_timeout_ms,
                    PROTOCOL_TYPE,
                    member.classic.protocols,
                )
            )
        classic.state = GroupState.STABLE
        classic.generation_id = group.epoch
        classic.protocol_name = protocol = classic.select_protocol()
        # Unlike Kafka, not the target assignment: a member may still own other partitions, and the group may
        # become a consumer group again before the member has rejoined.
        assignments = {
            member.member_id: self.encoded(member.owned, classic.member(member.member_id).metadata(protocol))
            for member in staying
        }
        batch.extend(removal_of_group(group, joining))
        batch.append(record_of(classic, assignments))
        logger.info("group %s: the consumer group becomes a classic group", group.group_id)

    def encoded(self, partitions: Mapping[Uuid, Sequence[int]], metadata: bytes) -> bytes:
        """Return an assignment in the embedded protocol, in the version of a member's subscription.

        Topics that do not exist are left out.
        """
        version = min(max(int.from_bytes(metadata[:2], "big", signed=True), 0), LATEST_VERSION)
        names = {topic_id: self._topics.name_of(topic_id) for topic_id in partitions}
        return encode_assignment(
            EncodedAssignment(
                [
                    TopicPartition(name, partition)
                    for topic_id, name in names.items()
                    if name is not None
                    for partition in sorted(partitions[topic_id])
                ]
            ),
            version,
        )

    def begin_classic_group(self, group_id: str, reason: str | None) -> None:
        """Begin the sessions of a group that has become a classic group.

        This does nothing if the records of the classic group could not be written.

        Parameters
        ----------
        group_id:
            Id of the group.
        reason:
            Reason for a rebalance; ``None`` if the members already have their partitions.
        """
        classic = self._registry.classic_group(group_id)
        if classic is None:
            return
        with self.delayed_responses:
            for member in classic.members():
                self._rebalancer.touch(classic, member)
            if reason is not None:
                self._rebalancer.prepare(classic, reason)
