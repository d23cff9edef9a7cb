"""The subscription, the assigned partitions and their positions.

A partition is *initializing* until it has a position, and then *fetching*. A partition is *awaiting reset*
while the offset to start at is looked up. It is *awaiting validation* while the leader checks that its log
still contains the position (KIP-320). This is Kafka's ``SubscriptionState``. Only the thread that holds the
consumer's lock may use the state. The docstring of :class:`SubscriptionState` lists attributes and methods
that any thread may use.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from kafkacore.consumer.listener import (
    AsyncConsumerRebalanceListener as AsyncConsumerRebalanceListener,
)
from kafkacore.consumer.listener import ConsumerRebalanceListener as ConsumerRebalanceListener
from kafkacore.consumer.listener import RebalanceListener
from kafkacore.consumer.offset_reset import OffsetResetStrategy as OffsetResetStrategy
from kafkacore.consumer.subscription_pattern import SubscriptionPattern
from kafkacore.errors import IllegalStateError, NoOffsetForPartitionError
from kafkacore.structs import (
    MAX_TOPIC_NAME_LENGTH,
    OffsetAndMetadata,
    TopicPartition,
    is_topic_name,
    partition_name,
)


class SubscriptionType(Enum):
    NONE = "none"
    AUTO_TOPICS = "topics"
    AUTO_PATTERN = "pattern"
    AUTO_SERVER_PATTERN = "server pattern"
    USER_ASSIGNED = "assigned"


#: Subscription types for which the group or the consumer assigns the partitions, not the user.
_AUTO = (
    SubscriptionType.AUTO_TOPICS,
    SubscriptionType.AUTO_PATTERN,
    SubscriptionType.AUTO_SERVER_PATTERN,
)


class FetchState(Enum):
    INITIALIZING = "initializing"
    FETCHING = "fetching"
    AWAIT_RESET = "awaiting reset"
    AWAIT_VALIDATION = "awaiting validation"


class FetchPosition(NamedTuple):
    """Offset of the next record, and leader epoch of the record before it (-1 if unknown)."""

    offset: int
    offset_epoch: int = -1


def ensure_valid_topic_name(topic: str) -> None:
    """Raise ``TypeError`` or ``ValueError`` for a name that no broker accepts."""
    if not isinstance(topic, str):
        raise TypeError(f"a topic name must be a str, not {type(topic).__name__}")
    if not is_topic_name(topic):
        raise ValueError(
            f"{topic!r} is not a valid topic name: use 1 to {MAX_TOPIC_NAME_LENGTH} of "
            "a-z, A-Z, 0-9, '.', '_', '-'"
        )


class CommittedOffset(NamedTuple):
    """The offset that the group has committed for a partition; ``None`` if there is no such offset."""

    offset: OffsetAndMetadata | None


class TopicPartitionState:
    """State of one assigned partition.

    Each attribute is replaced as a whole, so any thread may read it.
    """

    __slots__ = (
        "committed",
        "has_failed_fetch",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "next_retry_ms",
        "paused",
        "pending_revocation",
        "position",
        "preferred_read_replica",
        "preferred_replica_expires_ms",
        "reset_strategy",
        "seen_epoch",
        "state",
        "validated_epoch",
    )

    def __init__(self) -> None:
        self.state = FetchState.INITIALIZING
        self.position: FetchPosition | None = None
        #: The last offset that was committed or that the coordinator returned; ``None`` if it is unknown.
        self.committed: CommittedOffset | None = None
        self.paused = False
        #: Whether the partition is about to be revoked. No records of the partition are returned while its
        #: offset is being committed.
        self.pending_revocation = False
        self.high_watermark: int | None = None
        self.last_stable_offset: int | None = None
        self.log_start_offset: int | None = None
        self.reset_strategy = OffsetResetStrategy.NONE
        self.next_retry_ms = 0.0
        #: Whether the last fetch returned an error.
        self.has_failed_fetch = False
        self.preferred_read_replica: int | None = None
        self.preferred_replica_expires_ms = 0.0
        self.validated_epoch = -1
        self.seen_epoch = -1

    def is_fetchable(self) -> bool:
        return self.state is FetchState.FETCHING and not self.paused and not self.pending_revocation

    def seek(self, position: FetchPosition) -> None:
        self.position = position
        self.state = FetchState.FETCHING
        self.reset_strategy = OffsetResetStrategy.NONE
        self.next_retry_ms = 0.0

    def reset(self, strategy: OffsetResetStrategy) -> None:
        self.state = FetchState.AWAIT_RESET
        self.reset_strategy = strategy
        self.position = None
        self.next_retry_ms = 0.0


class SubscriptionState:
    """The subscription of a consumer, its assignment, and the state of each partition.

    Any thread may read :attr:`states` and :attr:`subscribed` and call :meth:`state`, without a lock: the
    polling thread replaces the objects in these attributes and never modifies them.

    Parameters
    ----------
    default_reset_strategy:
        The setting ``auto_offset_reset``, used for partitions without a position.
    """

    def __init__(self, default_reset_strategy: OffsetResetStrategy = OffsetResetStrategy.LATEST) -> None:
        self.default_reset_strategy = default_reset_strategy
        self.subscription_type = SubscriptionType.NONE
        self.subscription: set[str] = set()
        #: Topics that any member subscribes to; set only while this consumer leads the group.
        self.group_subscription: frozenset[str] = frozenset()
        self.pattern: re.Pattern[str] | None = None
        #: Regular expression that the broker matches against topic names (KIP-848), in RE2 syntax.
        self.server_pattern: str | None = None
        self.listener: RebalanceListener | None = None
        # Partitions in the order in which they are fetched. A partition that returned records moves to the
        # end. An OrderedDict is used because a Ctrl-C cannot interrupt its move_to_end() halfway.
        self._assignment: OrderedDict[TopicPartition, TopicPartitionState] = OrderedDict()
        # Partitions that are not in the state *fetching*, kept separately because every poll checks them.
        # Usually there are none.
        self._unsettled: dict[TopicPartition, TopicPartitionState] = {}
        #: The assigned partitions with their states, for other threads.
        self.states: Mapping[TopicPartition, TopicPartitionState] = {}
        #: The topics subscribed to, for other threads; ``None`` without a subscription.
        self.subscribed: frozenset[str] | None = None
        #: Whether a position was set that has not been compared with the partition's leader epoch yet. Such a
        #: position needs the comparison even if the metadata are unchanged.
        self.has_unseen_positions = False
        #: Number that grows when other partitions may become fetchable, or the same ones from other nodes or
        #: from other positions. A steady fetcher moves positions without it.
        self.fetchable_version = 0

    # ---- Subscription ------------------------------------------------------------------------------------
    def subscribe(
        self,
        topics: Iterable[str] = (),
        pattern: str | re.Pattern[str] | SubscriptionPattern | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Subscribe to ``topics``, or to all topics that match ``pattern``, replacing the subscription.

        The broker resolves a :class:`SubscriptionPattern`, so :attr:`subscription` stays empty.

        Raises
        ------
        ValueError
            If not exactly one of ``topics`` and ``pattern`` is given, or if a topic name is invalid.
        IllegalStateError
            If partitions were assigned, or the other kind of subscription is in use.
        TypeError
            If ``listener`` is not a rebalance listener.
        """
        if isinstance(topics, str):
            raise TypeError("topics must be a list of topic names, not a str")
        names = set(topics)
        if bool(names) == (pattern is not None):
            raise ValueError("subscribe() needs either topics or a pattern, and not both")
        if listener is not None and not isinstance(listener, RebalanceListener):
            raise TypeError(
                "listener must be a ConsumerRebalanceListener or an AsyncConsumerRebalanceListener"
            )
        for name in names:
            ensure_valid_topic_name(name)
        if isinstance(pattern, SubscriptionPattern):
            self._set_type(SubscriptionType.AUTO_SERVER_PATTERN)
            self.pattern, self.server_pattern = None, pattern.pattern
        else:
            compiled = None if pattern is None else re.compile(pattern)
            self._set_type(SubscriptionType.AUTO_TOPICS if names else SubscriptionType.AUTO_PATTERN)
            self.pattern, self.server_pattern = compiled, None
        self.subscription = names
        self.listener = listener
        self._publish()

    def subscribe_from_pattern(self, topics: Iterable[str]) -> None:
        """Subscribe to all of the ``topics`` that match the pattern."""
        self.subscription = {
            topic for topic in topics if self.pattern is not None and self.pattern.match(topic)
        }
        self._publish()

    def _publish(self) -> None:
        """Replace :attr:`states` and :attr:`subscribed`, which other threads read."""
        self.fetchable_version += 1
        self.states = dict(self._assignment)
        self.subscribed = frozenset(self.subscription) if self.has_auto_assigned_partitions() else None

    def _set_type(self, kind: SubscriptionType) -> None:
        if self.subscription_type is SubscriptionType.NONE:
            self.subscription_type = kind
        elif self.subscription_type is not kind:
            raise IllegalStateError(
                "subscribing to topics, subscribing to a pattern and assigning partitions exclude "
                "each other; call unsubscribe() first"
            )

    def assign_from_user(self, partitions: Iterable[TopicPartition]) -> bool:
        """Assign exactly ``partitions``, and return whether the assignment changed.

        Partitions that were assigned before keep their position.
        """
        self._set_type(SubscriptionType.USER_ASSIGNED)
        return self._assign(partitions)

    def assign_from_subscribed(self, partitions: Iterable[TopicPartition]) -> bool:
        """Assign partitions of the subscribed topics, and return whether the assignment changed."""
        if not self.has_auto_assigned_partitions():
            raise IllegalStateError("the consumer is not subscribed to any topics")
        return self._assign(partitions)

    def matches(self, partitions: Iterable[TopicPartition]) -> bool:
        """Return whether the topics of all ``partitions`` are subscribed to or match the pattern."""
        if self.pattern is not None:
            return all(self.pattern.match(tp.topic) for tp in partitions)
        return all(tp.topic in self.subscription for tp in partitions)

    def mark_pending_revocation(self, partitions: Iterable[TopicPartition]) -> None:
        """Mark exactly ``partitions`` as about to be revoked, so that none of their records is returned."""
        going = set(partitions)
        for partition, state in self._assignment.items():
            state.pending_revocation = partition in going
        self.fetchable_version += 1

    def metadata_topics(self) -> set[str]:
        """Return the topics whose metadata are fetched.

        These are the subscribed topics, the topics of assigned partitions and, if this consumer leads the
        group, the topics of all members.
        """
        return self.subscription | self.group_subscription | {tp.topic for tp in self._assignment}

    def needs_all_topics(self) -> bool:
        """Return whether metadata of all topics are fetched, because any topic may match a pattern."""
        return self.subscription_type is SubscriptionType.AUTO_PATTERN or self.server_pattern is not None

    def _assign(self, partitions: Iterable[TopicPartition]) -> bool:
        before = self._assignment
        self._assignment = OrderedDict((tp, before.get(tp) or TopicPartitionState()) for tp in partitions)
        self._unsettled = {
            tp: state for tp, state in self._assignment.items() if state.state is not FetchState.FETCHING
        }
        self._publish()
        return before.keys() != self._assignment.keys()

    def unsubscribe(self) -> None:
        self.subscription_type = SubscriptionType.NONE
        self.subscription = set()
        self.group_subscription = frozenset()
        self.pattern = None
        self.server_pattern = None
        self.listener = None
        self._assignment = OrderedDict()
        self._unsettled = {}
        self._publish()

    def has_auto_assigned_partitions(self) -> bool:
        return self.subscription_type in _AUTO

    def assigned_partitions(self) -> set[TopicPartition]:
        return set(self._assignment)

    def assigned_in_order(self) -> list[TopicPartition]:
        """Return the assigned partitions in the order in which they are fetched."""
        return list(self._assignment)

    def is_assigned(self, partition: TopicPartition) -> bool:
        return partition in self._assignment

    def state(self, partition: TopicPartition) -> TopicPartitionState:
        """Return the state of an assigned partition; raise ``IllegalStateError`` if it is not assigned."""
        state = self._assignment.get(partition)
        if state is None:
            raise IllegalStateError(f"{partition} is not assigned to this consumer")
        return state

    def state_or_none(self, partition: TopicPartition) -> TopicPartitionState | None:
        return self._assignment.get(partition)

    # ---- Positions ---------------------------------------------------------------------------------------
    def seek(self, partition: TopicPartition, position: FetchPosition) -> None:
        self._seek(partition, self.state(partition), position)

    def seek_unvalidated(self, partition: TopicPartition, position: FetchPosition) -> None:
        """Set a position that may no longer exist in the log, such as a committed offset.

        If the position has an epoch, the consumer asks the leader whether its log contains the position, and
        fetches afterwards.
        """
        state = self.state(partition)
        self._seek(partition, state, position)
        if position.offset_epoch >= 0:
            state.validated_epoch = -1
            self.has_unseen_positions = True

    def _seek(self, partition: TopicPartition, state: TopicPartitionState, position: FetchPosition) -> None:
        state.seek(position)
        self._unsettled.pop(partition, None)
        self.fetchable_version += 1

    def position(self, partition: TopicPartition) -> FetchPosition | None:
        return self.state(partition).position

    def set_position(self, partition: TopicPartition, position: FetchPosition) -> None:
        """Update the position of a partition; raise ``IllegalStateError`` if it is not fetching."""
        state = self.state(partition)
        if state.state is not FetchState.FETCHING:
            raise IllegalStateError(
                f"cannot move the position of {partition} while it is {state.state.value}"
            )
        state.position = position
        self.fetchable_version += 1

    def note_committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata | None]) -> None:
        """Store the committed offsets of the partitions that are assigned."""
        for partition, offset in offsets.items():
            state = self._assignment.get(partition)
            if state is not None:
                state.committed = CommittedOffset(offset)

    def pause(self, partition: TopicPartition) -> None:
        self.state(partition).paused = True
        self.fetchable_version += 1

    def resume(self, partition: TopicPartition) -> None:
        self.state(partition).paused = False
        self.fetchable_version += 1

    def is_paused(self, partition: TopicPartition) -> bool:
        state = self._assignment.get(partition)
        return state is not None and state.paused

    def paused_partitions(self) -> set[TopicPartition]:
        return self._where(lambda state: state.paused)

    def is_fetchable(self, partition: TopicPartition) -> bool:
        state = self._assignment.get(partition)
        return state is not None and state.is_fetchable()

    def fetchable(self) -> list[tuple[TopicPartition, TopicPartitionState]]:
        """Return the partitions to fetch, with their states, in the order of fetching.

        The partition that returned records most recently is the last one.
        """
        fetching = FetchState.FETCHING
        return [
            (tp, state)
            for tp, state in self._assignment.items()
            if state.state is fetching and not state.paused and not state.pending_revocation
        ]

    def fetchable_count(self) -> int:
        """Return the number of partitions to fetch."""
        return len(self.fetchable())

    def fetchable_partitions(self) -> list[TopicPartition]:
        """Return the partitions of :meth:`fetchable` without their states."""
        return [tp for tp, _ in self.fetchable()]

    def move_to_end(self, partition: TopicPartition) -> None:
        """Move a partition to the end of the fetch order, because it has just returned records."""
        if partition in self._assignment:
            self._assignment.move_to_end(partition)

    def has_all_fetch_positions(self) -> bool:
        return not self._unsettled

    def _where(self, condition: Callable[[TopicPartitionState], bool]) -> set[TopicPartition]:
        return {tp for tp, state in self._assignment.items() if condition(state)}

    def initializing_partitions(self) -> set[TopicPartition]:
        """Return the partitions that have no position yet and no reset in progress."""
        return {tp for tp, state in self._unsettled.items() if state.state is FetchState.INITIALIZING}

    def all_consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offset and epoch to commit for each partition with a valid position."""
        return {
            tp: OffsetAndMetadata(state.position.offset, "", state.position.offset_epoch)
            for tp, state in self._assignment.items()
            if state.state is FetchState.FETCHING and state.position is not None
        }

    # ---- Reset -------------------------------------------------------------------------------------------
    def request_offset_reset(
        self, partition: TopicPartition, strategy: OffsetResetStrategy | None = None
    ) -> None:
        """Drop the position of a partition. The next poll resets it.

        Without ``strategy``, the setting ``auto_offset_reset`` applies.
        """
        state = self.state(partition)
        state.reset(self.default_reset_strategy if strategy is None else strategy)
        self._unsettled[partition] = state
        self.fetchable_version += 1

    def reset_initializing_positions(self) -> None:
        """Start the reset of partitions that have no position yet.

        Raises
        ------
        NoOffsetForPartitionError
            If there are such partitions, and ``auto_offset_reset`` is ``none``.
        """
        missing = [tp for tp, state in self._unsettled.items() if state.state is FetchState.INITIALIZING]
        if missing and self.default_reset_strategy is OffsetResetStrategy.NONE:
            error = NoOffsetForPartitionError(
                f"no position for {', '.join(map(partition_name, missing))}, and auto_offset_reset is "
                "'none': call seek() first, or set auto_offset_reset to 'earliest' or 'latest'"
            )
            error.partitions = frozenset(missing)
            raise error
        for partition in missing:
            self.request_offset_reset(partition)

    def partitions_needing_reset(self, now_ms: float) -> dict[TopicPartition, OffsetResetStrategy]:
        """Return the partitions whose offset lookup may start now."""
        return {
            tp: state.reset_strategy
            for tp, state in self._unsettled.items()
            if state.state is FetchState.AWAIT_RESET and state.next_retry_ms <= now_ms
        }

    def is_offset_reset_needed(self, partition: TopicPartition) -> bool:
        state = self._assignment.get(partition)
        return state is not None and state.state is FetchState.AWAIT_RESET

    def partitions_needing_validation(self, now_ms: float) -> dict[TopicPartition, FetchPosition]:
        """Return the partitions whose positions may be validated now, and these positions."""
        return {
            tp: state.position
            for tp, state in self._unsettled.items()
            if state.state is FetchState.AWAIT_VALIDATION
            and state.position is not None
            and state.next_retry_ms <= now_ms
        }

    def set_next_retry(self, partitions: Iterable[TopicPartition], at_ms: float) -> None:
        """Do not look up or validate ``partitions`` again before ``at_ms``."""
        for partition in partitions:
            state = self._assignment.get(partition)
            if state is not None:
                state.next_retry_ms = at_ms
        self.fetchable_version += 1

    def maybe_seek_unvalidated(
        self, partition: TopicPartition, strategy: OffsetResetStrategy, position: FetchPosition
    ) -> bool:
        """Set the position that a reset found, unless the state has changed; return whether it was set."""
        state = self._assignment.get(partition)
        if state is None or state.state is not FetchState.AWAIT_RESET or state.reset_strategy != strategy:
            return False
        self._seek(partition, state, position)
        return True

    # ---- Leader epochs (KIP-320) -------------------------------------------------------------------------
    def maybe_validate_position(self, partition: TopicPartition, current_leader_epoch: int) -> bool:
        """Start validating the position, once per leader epoch; return whether validation is in progress."""
        state = self.state(partition)
        # A lower epoch is also a new epoch. Metadata never get older, so the topic was deleted and created
        # again.
        if current_leader_epoch != state.seen_epoch:
            # Forget the preferred replica, because the previous leader chose it.
            state.preferred_read_replica = None
            state.seen_epoch = current_leader_epoch
            self.fetchable_version += 1
        if state.state is FetchState.AWAIT_VALIDATION:
            if current_leader_epoch != state.validated_epoch:
                # A late response of the previous leader is now ignored, because its epoch differs.
                state.validated_epoch = current_leader_epoch
                state.next_retry_ms = 0.0
            return True
        if state.state is not FetchState.FETCHING or state.position is None:
            return False
        if current_leader_epoch == state.validated_epoch:
            return False
        state.validated_epoch = current_leader_epoch
        if state.position.offset_epoch in (-1, current_leader_epoch):
            return False
        state.state = FetchState.AWAIT_VALIDATION
        state.next_retry_ms = 0.0
        self._unsettled[partition] = state
        self.fetchable_version += 1
        return True

    def awaits_validation(
        self, partition: TopicPartition, position: FetchPosition, leader_epoch: int | None = None
    ) -> bool:
        """Return whether ``position`` still awaits validation.

        If ``leader_epoch`` is given, the leader with this epoch must be the one that validates the position.
        """
        state = self._assignment.get(partition)
        return (
            state is not None
            and state.state is FetchState.AWAIT_VALIDATION
            and state.position == position
            and leader_epoch in (None, state.validated_epoch)
        )

    def complete_validation(self, partition: TopicPartition, validated: FetchPosition) -> bool:
        """Resume fetching at ``validated`` and return true, or return false if the position has changed."""
        if not self.awaits_validation(partition, validated):
            return False
        state = self.state(partition)
        state.state = FetchState.FETCHING
        # next_retry_ms was the deadline of the validation request. Later requests must not wait until then.
        state.next_retry_ms = 0.0
        del self._unsettled[partition]
        self.fetchable_version += 1
        return True

    # ---- Preferred replica (KIP-392) ---------------------------------------------------------------------
    def update_preferred_read_replica(
        self, partition: TopicPartition, node_id: int, expires_ms: float
    ) -> None:
        state = self.state(partition)
        if state.preferred_read_replica != node_id:
            state.preferred_read_replica = node_id
            state.preferred_replica_expires_ms = expires_ms
            self.fetchable_version += 1

    def preferred_read_replica(self, partition: TopicPartition, now_ms: float) -> int | None:
        """Return the replica that the leader prefers for fetches; ``None`` if it is unset or has expired."""
        state = self._assignment.get(partition)
        if state is None or state.preferred_read_replica is None:
            return None
        if state.preferred_replica_expires_ms <= now_ms:
            state.preferred_read_replica = None
        return state.preferred_read_replica

    def clear_preferred_read_replica(self, partition: TopicPartition) -> int | None:
        """Fetch from the leader again, and return the replica that was preferred."""
        state = self._assignment.get(partition)
        if state is None:
            return None
        replica, state.preferred_read_replica = state.preferred_read_replica, None
        self.fetchable_version += 1
        return replica
