"""What is read and from where: topics and partitions in, positions out.

A partition is *initializing* until it has a position, *fetching* then, *awaiting reset* while its offset is
looked up and *awaiting validation* while its leader is asked whether the log still holds the position
(KIP-320). Does not know: sockets, records, metadata. Not thread-safe: the consumer's owner alone calls it.
(Kafka's ``SubscriptionState``.)
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable
from enum import Enum
from typing import NamedTuple

from kafkacore.consumer.listener import RebalanceListener
from kafkacore.consumer.offset_reset import OffsetResetStrategy as OffsetResetStrategy
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
    USER_ASSIGNED = "assigned"


#: Those whose assignment is not the user's.
_AUTO = (SubscriptionType.AUTO_TOPICS, SubscriptionType.AUTO_PATTERN)


class FetchState(Enum):
    INITIALIZING = "initializing"
    FETCHING = "fetching"
    AWAIT_RESET = "awaiting reset"
    AWAIT_VALIDATION = "awaiting validation"


class FetchPosition(NamedTuple):
    """The offset of the next record, and the leader epoch of the record before it (-1: unknown)."""

    offset: int
    offset_epoch: int = -1


def ensure_valid_topic_name(topic: str) -> None:
    """Refuse what no broker accepts, before a request is made of it."""
    if not isinstance(topic, str):
        raise TypeError(f"a topic name must be a str, not {type(topic).__name__}")
    if not is_topic_name(topic):
        raise ValueError(
            f"{topic!r} is no topic name: 1 to {MAX_TOPIC_NAME_LENGTH} of a-z, A-Z, 0-9, '.', '_', '-'"
        )


class TopicPartitionState:
    """What is known of one assigned partition."""

    __slots__ = (
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
        self.paused = False
        #: What was consumed is being committed before it goes: nothing more is handed out.
        self.pending_revocation = False
        self.high_watermark: int | None = None
        self.last_stable_offset: int | None = None
        self.log_start_offset: int | None = None
        self.reset_strategy = OffsetResetStrategy.NONE
        self.next_retry_ms = 0.0
        #: The last fetch had an error.
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
    """The consumer's subscription, its assignment, and where it stands in each partition.

    Parameters
    ----------
    default_reset_strategy:
        ``auto_offset_reset``: what to do for a partition without position.
    """

    def __init__(self, default_reset_strategy: OffsetResetStrategy = OffsetResetStrategy.LATEST) -> None:
        self.default_reset_strategy = default_reset_strategy
        self.subscription_type = SubscriptionType.NONE
        self.subscription: set[str] = set()
        #: What all members of the group subscribe to, while we are their leader.
        self.group_subscription: frozenset[str] = frozenset()
        self.pattern: re.Pattern[str] | None = None
        self.listener: RebalanceListener | None = None
        # Ordered: the front is fetched first, and a partition that gave records moves to the back.
        #: Ordered for ``move_to_end``, which a Ctrl-C does not cut in two.
        self._assignment: OrderedDict[TopicPartition, TopicPartitionState] = OrderedDict()
        # Those without a position to fetch from: every poll asks for them, and mostly there are none.
        self._unsettled: dict[TopicPartition, TopicPartitionState] = {}
        #: There are positions that have to be compared with the leaders' epochs, even if these are not new.
        self.has_unseen_positions = False

    # ---- What is subscribed ------------------------------------------------------------------------------
    def subscribe(
        self,
        topics: Iterable[str] = (),
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Follow ``topics``, or all topics that ``pattern`` matches; replaces the subscription before.

        Raises
        ------
        ValueError
            Unless exactly one of ``topics`` and ``pattern`` is given, or for an impossible topic name.
        IllegalStateError
            If partitions were assigned, or the other kind of subscription is in use.
        TypeError
            If ``listener`` is no :class:`ConsumerRebalanceListener`, nor an asynchronous one.
        """
        if isinstance(topics, str):
            raise TypeError("topics must be a list of names, not one str")
        names = set(topics)
        if bool(names) == (pattern is not None):
            raise ValueError("subscribe() takes either topics or a pattern, and one of them")
        if listener is not None and not isinstance(listener, RebalanceListener):
            raise TypeError(
                "listener must be a ConsumerRebalanceListener or an AsyncConsumerRebalanceListener"
            )
        for name in names:
            ensure_valid_topic_name(name)
        self._set_type(SubscriptionType.AUTO_TOPICS if names else SubscriptionType.AUTO_PATTERN)
        self.pattern = None if pattern is None else re.compile(pattern)
        self.subscription = names
        self.listener = listener

    def subscribe_from_pattern(self, topics: Iterable[str]) -> None:
        """The topics that the pattern matches now."""
        self.subscription = {
            topic for topic in topics if self.pattern is not None and self.pattern.match(topic)
        }

    def _set_type(self, kind: SubscriptionType) -> None:
        if self.subscription_type is SubscriptionType.NONE:
            self.subscription_type = kind
        elif self.subscription_type is not kind:
            raise IllegalStateError(
                "subscribing to topics, subscribing to a pattern and assigning partitions exclude "
                "each other; call unsubscribe() first"
            )

    def assign_from_user(self, partitions: Iterable[TopicPartition]) -> bool:
        """Read exactly ``partitions``; those assigned before keep their position. Whether anything
        changed.
        """
        self._set_type(SubscriptionType.USER_ASSIGNED)
        return self._assign(partitions)

    def assign_from_subscribed(self, partitions: Iterable[TopicPartition]) -> bool:
        """The partitions of the subscribed topics, as metadata or a group says. Whether anything changed."""
        if not self.has_auto_assigned_partitions():
            raise IllegalStateError("nothing is subscribed")
        return self._assign(partitions)

    def matches(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether all ``partitions`` are of subscribed topics, or of such as the pattern matches."""
        if self.pattern is not None:
            return all(self.pattern.match(tp.topic) for tp in partitions)
        return all(tp.topic in self.subscription for tp in partitions)

    def mark_pending_revocation(self, partitions: Iterable[TopicPartition]) -> None:
        """``partitions``, and no others, are about to go: hand out nothing more of them."""
        going = set(partitions)
        for partition, state in self._assignment.items():
            state.pending_revocation = partition in going

    def metadata_topics(self) -> set[str]:
        """Topics that metadata are needed of: our own, those of the group we lead, those still assigned."""
        return self.subscription | self.group_subscription | {tp.topic for tp in self._assignment}

    def _assign(self, partitions: Iterable[TopicPartition]) -> bool:
        before = self._assignment
        self._assignment = OrderedDict((tp, before.get(tp) or TopicPartitionState()) for tp in partitions)
        self._unsettled = {
            tp: state for tp, state in self._assignment.items() if state.state is not FetchState.FETCHING
        }
        return before.keys() != self._assignment.keys()

    def unsubscribe(self) -> None:
        self.subscription_type = SubscriptionType.NONE
        self.subscription = set()
        self.group_subscription = frozenset()
        self.pattern = None
        self.listener = None
        self._assignment = OrderedDict()
        self._unsettled = {}

    def has_auto_assigned_partitions(self) -> bool:
        return self.subscription_type in _AUTO

    def assigned_partitions(self) -> set[TopicPartition]:
        return set(self._assignment)

    def assigned_in_order(self) -> list[TopicPartition]:
        """As :meth:`assigned_partitions`, those first that are fetched first."""
        return list(self._assignment)

    def is_assigned(self, partition: TopicPartition) -> bool:
        return partition in self._assignment

    def state(self, partition: TopicPartition) -> TopicPartitionState:
        """The state of an assigned partition; :class:`IllegalStateError` for any other."""
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
        """Go to a position that was not found by reading, as a committed one: if it has an epoch, the leader
        is asked whether its log still has it before anything is fetched.
        """
        state = self.state(partition)
        self._seek(partition, state, position)
        if position.offset_epoch >= 0:
            state.validated_epoch = -1
            self.has_unseen_positions = True

    def _seek(self, partition: TopicPartition, state: TopicPartitionState, position: FetchPosition) -> None:
        state.seek(position)
        self._unsettled.pop(partition, None)

    def position(self, partition: TopicPartition) -> FetchPosition | None:
        return self.state(partition).position

    def set_position(self, partition: TopicPartition, position: FetchPosition) -> None:
        """Move a position that exists; :class:`IllegalStateError` where there is none to move."""
        state = self.state(partition)
        if state.state is not FetchState.FETCHING:
            raise IllegalStateError(
                f"cannot move the position of {partition} while it is {state.state.value}"
            )
        state.position = position

    def pause(self, partition: TopicPartition) -> None:
        self.state(partition).paused = True

    def resume(self, partition: TopicPartition) -> None:
        self.state(partition).paused = False

    def is_paused(self, partition: TopicPartition) -> bool:
        state = self._assignment.get(partition)
        return state is not None and state.paused

    def paused_partitions(self) -> set[TopicPartition]:
        return self._where(lambda state: state.paused)

    def is_fetchable(self, partition: TopicPartition) -> bool:
        state = self._assignment.get(partition)
        return state is not None and state.is_fetchable()

    def fetchable(self) -> list[tuple[TopicPartition, TopicPartitionState]]:
        """Partitions with a position that are not paused, the longest not served first, and their states."""
        fetching = FetchState.FETCHING
        return [
            (tp, state)
            for tp, state in self._assignment.items()
            if state.state is fetching and not state.paused and not state.pending_revocation
        ]

    def fetchable_partitions(self) -> list[TopicPartition]:
        """As :meth:`fetchable`, the partitions alone."""
        return [tp for tp, _ in self.fetchable()]

    def move_to_end(self, partition: TopicPartition) -> None:
        """Let the others come first next time; it has just given records."""
        if partition in self._assignment:
            self._assignment.move_to_end(partition)

    def has_all_fetch_positions(self) -> bool:
        return not self._unsettled

    def _where(self, condition: Callable[[TopicPartitionState], bool]) -> set[TopicPartition]:
        return {tp for tp, state in self._assignment.items() if condition(state)}

    def initializing_partitions(self) -> set[TopicPartition]:
        """Partitions that have had no position yet, and wait for no look-up."""
        return {tp for tp, state in self._unsettled.items() if state.state is FetchState.INITIALIZING}

    def all_consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a commit of all positions says: the next offset of each partition whose position is certain,
        and the epoch of the record before it.
        """
        return {
            tp: OffsetAndMetadata(state.position.offset, "", state.position.offset_epoch)
            for tp, state in self._assignment.items()
            if state.state is FetchState.FETCHING and state.position is not None
        }

    # ---- Reset -------------------------------------------------------------------------------------------
    def request_offset_reset(
        self, partition: TopicPartition, strategy: OffsetResetStrategy | None = None
    ) -> None:
        """Give up the position; the next poll looks up the one that ``strategy`` (default: the configured)
        names.
        """
        state = self.state(partition)
        state.reset(self.default_reset_strategy if strategy is None else strategy)
        self._unsettled[partition] = state

    def reset_initializing_positions(self) -> None:
        """Begin the reset of partitions that have no position yet.

        Raises
        ------
        NoOffsetForPartitionError
            If there are any and ``auto_offset_reset`` is ``none``.
        """
        missing = [tp for tp, state in self._unsettled.items() if state.state is FetchState.INITIALIZING]
        if missing and self.default_reset_strategy is OffsetResetStrategy.NONE:
            error = NoOffsetForPartitionError(
                f"no position for {', '.join(map(partition_name, missing))} and auto_offset_reset is 'none': "
                "call seek() first or choose 'earliest' or 'latest'"
            )
            error.partitions = frozenset(missing)
            raise error
        for partition in missing:
            self.request_offset_reset(partition)

    def partitions_needing_reset(self, now_ms: float) -> dict[TopicPartition, OffsetResetStrategy]:
        """Partitions whose look-up may start now."""
        return {
            tp: state.reset_strategy
            for tp, state in self._unsettled.items()
            if state.state is FetchState.AWAIT_RESET and state.next_retry_ms <= now_ms
        }

    def is_offset_reset_needed(self, partition: TopicPartition) -> bool:
        state = self._assignment.get(partition)
        return state is not None and state.state is FetchState.AWAIT_RESET

    def partitions_needing_validation(self, now_ms: float) -> dict[TopicPartition, FetchPosition]:
        """Partitions whose position is to be checked with the leader, and may be now."""
        return {
            tp: state.position
            for tp, state in self._unsettled.items()
            if state.state is FetchState.AWAIT_VALIDATION
            and state.position is not None
            and state.next_retry_ms <= now_ms
        }

    def set_next_retry(self, partitions: Iterable[TopicPartition], at_ms: float) -> None:
        """Neither look up nor validate ``partitions`` again before ``at_ms``."""
        for partition in partitions:
            state = self._assignment.get(partition)
            if state is not None:
                state.next_retry_ms = at_ms

    def maybe_seek_unvalidated(
        self, partition: TopicPartition, strategy: OffsetResetStrategy, position: FetchPosition
    ) -> bool:
        """Take the answer of a look-up unless the partition moved on meanwhile. Whether it was taken."""
        state = self._assignment.get(partition)
        if state is None or state.state is not FetchState.AWAIT_RESET or state.reset_strategy != strategy:
            return False
        self._seek(partition, state, position)
        return True

    # ---- Leader epochs (KIP-320) -------------------------------------------------------------------------
    def maybe_validate_position(self, partition: TopicPartition, current_leader_epoch: int) -> bool:
        """Have the position checked once for each new leader epoch. Whether a check is under way now."""
        state = self.state(partition)
        # It is lower where the topic has been deleted and made again: metadata never go back.
        if current_leader_epoch != state.seen_epoch:
            # Whom the leader before has named says nothing about the new one's followers.
            state.preferred_read_replica = None
            state.seen_epoch = current_leader_epoch
        if state.state is FetchState.AWAIT_VALIDATION:
            if current_leader_epoch != state.validated_epoch:
                # What the leader before answers, should it still do so, says nothing any more.
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
        return True

    def awaits_validation(
        self, partition: TopicPartition, position: FetchPosition, leader_epoch: int | None = None
    ) -> bool:
        """Whether it is still ``position`` that is to be validated, by the leader of ``leader_epoch``."""
        state = self._assignment.get(partition)
        return (
            state is not None
            and state.state is FetchState.AWAIT_VALIDATION
            and state.position == position
            and leader_epoch in (None, state.validated_epoch)
        )

    def complete_validation(self, partition: TopicPartition, validated: FetchPosition) -> bool:
        """Go on from ``validated`` unless the position changed meanwhile. Whether it was so."""
        if not self.awaits_validation(partition, validated):
            return False
        state = self.state(partition)
        state.state = FetchState.FETCHING
        # The time by which the leader had to answer; nothing else is to wait for it.
        state.next_retry_ms = 0.0
        del self._unsettled[partition]
        return True

    # ---- Preferred replica (KIP-392) ---------------------------------------------------------------------
    def update_preferred_read_replica(
        self, partition: TopicPartition, node_id: int, expires_ms: float
    ) -> None:
        state = self.state(partition)
        if state.preferred_read_replica != node_id:
            state.preferred_read_replica = node_id
            state.preferred_replica_expires_ms = expires_ms

    def preferred_read_replica(self, partition: TopicPartition, now_ms: float) -> int | None:
        """The replica that the leader named, until it expires."""
        state = self._assignment.get(partition)
        if state is None or state.preferred_read_replica is None:
            return None
        if state.preferred_replica_expires_ms <= now_ms:
            state.preferred_read_replica = None
        return state.preferred_read_replica

    def clear_preferred_read_replica(self, partition: TopicPartition) -> int | None:
        """Go back to the leader; the replica that was preferred."""
        state = self._assignment.get(partition)
        if state is None:
            return None
        replica, state.preferred_read_replica = state.preferred_read_replica, None
        return replica
