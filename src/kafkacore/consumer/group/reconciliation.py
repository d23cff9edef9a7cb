"""Brings the assignment of a member to the target that the broker returned (KIP-848).

The steps are those of Kafka's ``AbstractMembershipManager``: resolve the topic ids, commit, call
``on_partitions_revoked``, change the assignment, and call ``on_partitions_assigned``. Partitions that do not
move keep their positions and continue to return records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from kafkacore.client import Metadata
from kafkacore.clock import Clock
from kafkacore.consumer.group.commit_before_revoke import CommitBeforeRevoke
from kafkacore.consumer.group.heartbeat_fields import NO_ASSIGNMENT, LocalAssignment, TopicPartitionsById
from kafkacore.consumer.group.listener_calls import ListenerCalls, listed
from kafkacore.consumer.group.membership import GroupCommits
from kafkacore.consumer.group.settings import GroupSettings
from kafkacore.consumer.group_metrics import GroupMetrics
from kafkacore.consumer.subscription_state import SubscriptionState
from kafkacore.logs import logger_of
from kafkacore.structs import TopicPartition
from kafkacore.wire import Uuid

logger = logger_of(__name__)


class Reconciliation:
    """The current and the target assignment of one member, and the steps from one to the other.

    Parameters
    ----------
    settings:
        Settings of the member.
    metadata, subscriptions, clock, metrics:
        Objects that all parts of the consumer share.
    calls:
        Object that calls the rebalance listener.
    on_partitions_removed:
        Function that is called with partitions before they are revoked or lost. The second argument is true
        if they are lost.
    on_assignment_changed:
        Function that is called after the assignment has changed.
    """

    def __init__(
        self,
        settings: GroupSettings,
        metadata: Metadata,
        subscriptions: SubscriptionState,
        clock: Clock,
        metrics: GroupMetrics,
        calls: ListenerCalls,
        on_partitions_removed: Callable[[set[TopicPartition], bool], None],
        on_assignment_changed: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._metadata = metadata
        self._subscriptions = subscriptions
        self._clock = clock
        self._metrics = metrics
        self.calls = calls
        self._on_partitions_removed = on_partitions_removed
        self._on_assignment_changed = on_assignment_changed
        self.commits: GroupCommits | None = None
        #: Assignment that the member has and reports to the broker.
        self.current = NO_ASSIGNMENT
        #: Newest assignment that the broker has returned.
        self.target = NO_ASSIGNMENT
        #: Names of the assigned topics. A name is still needed after the metadata of its topic have been
        #: dropped.
        self._names: dict[Uuid, str] = {}
        #: Metadata version in which topic ids were last missing.
        self._asked_version: int | None = None
        self._commit = CommitBeforeRevoke(settings.group_id, settings.retry_backoff_ms)
        #: Assignment that the running reconciliation applies; ``None`` while none is running.
        self._resolved: LocalAssignment | None = None
        self._began_ms = 0.0
        #: Partitions that were assigned, and whose ``on_partitions_assigned`` has raised an exception.
        self._undelivered: set[TopicPartition] = set()

    # ---- The assignments ---------------------------------------------------------------------------------
    def take_target(self, partitions: TopicPartitionsById) -> bool:
        """Set the assignment in a response as the target; return whether it must be reconciled."""
        if self.target == NO_ASSIGNMENT or self.target.partitions != partitions:
            self.target = LocalAssignment(self.target.number + 1, partitions)
            self._asked_version = None
        return not self.is_reconciled

    @property
    def is_reconciled(self) -> bool:
        return self.current == self.target

    def forget(self) -> None:
        """Forget both assignments, because the member has left the group or joins again.

        A running reconciliation ends at its next step.
        """
        self.current = self.target = NO_ASSIGNMENT
        self._names.clear()
        self._resolved = None
        self._commit.cancel()
        self._undelivered = set()

    # ---- Reconciling -------------------------------------------------------------------------------------
    def step(self) -> tuple[bool, Exception | None]:
        """Do all work that is possible without waiting.

        Returns
        -------
        tuple of bool and Exception or None
            Whether the member must acknowledge its assignment now, and the exception of the listener. After
            an exception, the next call repeats the call of the listener.

        Raises
        ------
        WakeupError
            If the listener raised it. The next call repeats the call of the listener.
        """
        now_ms = self._clock.monotonic_ms()
        if self._resolved is None and not self._begin(now_ms):
            return self._acknowledges_unresolved(), None
        if not self._commit.is_over(now_ms):
            return False, None
        resolved = self._resolved
        assert resolved is not None
        error = self._revoke_and_assign(resolved)
        if error is not None or self._resolved is not resolved:
            # In the meantime, the listener or the heartbeat thread has ended the membership.
            self._resolved = None
            return False, error
        self.current, self._resolved = resolved, None
        now_ms = self._clock.monotonic_ms()
        if self.commits is not None:
            self.commits.restart_auto_commit_interval(now_ms)
        self._metrics.rebalanced(now_ms - self._began_ms, now_ms)
        return True, None

    def _begin(self, now_ms: float) -> bool:
        """Resolve the topic ids of the target and start the commit; return whether there is work to do."""
        resolved = LocalAssignment(self.target.number, self._resolvable())
        is_unchanged = self.current != NO_ASSIGNMENT and resolved.partitions == self.current.partitions
        if is_unchanged and not self._undelivered:
            return False
        self._began_ms = now_ms
        revoked = self._subscriptions.assigned_partitions().difference(self._named(resolved))
        # Return no more records of these partitions, so that no position gets ahead of the committed offset.
        self._subscriptions.mark_pending_revocation(revoked)
        if self.commits is not None:
            self._commit.begin(self.commits, now_ms, self._settings.rebalance_timeout_ms)
        # Set this last, so that a Ctrl-C does not skip the commit.
        self._resolved = resolved
        return True

    def _acknowledges_unresolved(self) -> bool:
        """Accept a new target if its resolved partitions are the current ones; return whether it is new."""
        if self.current.number == self.target.number:
            return False
        self.current = LocalAssignment(self.target.number, self.current.partitions)
        return True

    def _resolvable(self) -> TopicPartitionsById:
        cluster = self._metadata.fetch()
        found: dict[Uuid, frozenset[int]] = {}
        missing: list[Uuid] = []
        for topic_id, numbers in self.target.partitions.items():
            name = cluster.topic_name(topic_id)
            if name is not None:
                self._names[topic_id] = name
            if topic_id in self._names:
                found[topic_id] = numbers
            else:
                missing.append(topic_id)
        version = self._metadata.update_version
        if missing and version != self._asked_version:
            logger.debug("group %r: metadata have no topic with id %s", self._settings.group_id, missing[0])
            self._metadata.request_update(reset_equivalent_backoff=self._asked_version is None)
            self._asked_version = version
        return found

    def _named(self, assignment: LocalAssignment) -> list[TopicPartition]:
        return [
            TopicPartition(self._names[topic_id], number)
            for topic_id, numbers in assignment.partitions.items()
            for number in sorted(numbers)
        ]

    def _revoke_and_assign(self, resolved: LocalAssignment) -> Exception | None:
        wanted = self._named(resolved)
        revoked = self._subscriptions.assigned_partitions().difference(wanted)
        if revoked:
            error = self._call_revoked(revoked)
            if error is not None or self._resolved is not resolved:
                return error
        added = set(wanted).difference(self._subscriptions.assigned_partitions()) | self._undelivered
        self._undelivered = added.intersection(wanted)
        kept = set(wanted)
        in_order = [tp for tp in self._subscriptions.assigned_in_order() if tp in kept]
        self._assign(dict.fromkeys([*in_order, *wanted]))
        self._names = {topic_id: self._names[topic_id] for topic_id in resolved.partitions}
        logger.info(
            "group %r: assigned %s; newly assigned: %s",
            self._settings.group_id,
            listed(wanted),
            listed(self._undelivered),
        )
        error = self.calls.invoke("on_partitions_assigned", set(self._undelivered))
        if error is None:
            self._undelivered = set()
        return error

    def _call_revoked(self, partitions: set[TopicPartition]) -> Exception | None:
        logger.info("group %r: revoking %s", self._settings.group_id, listed(partitions))
        self._on_partitions_removed(partitions, False)
        return self.calls.invoke("on_partitions_revoked", partitions)

    def _assign(self, partitions: Iterable[TopicPartition]) -> None:
        if self._subscriptions.has_auto_assigned_partitions():
            self._subscriptions.assign_from_subscribed(partitions)
            self._on_assignment_changed()

    def time_to_next_step_ms(self, now_ms: float) -> float:
        """Return the milliseconds until :meth:`step` can act; infinity if it waits for a response."""
        if self._resolved is not None:
            return self._commit.time_to_next_step_ms(now_ms)
        if self._asked_version is not None and self._asked_version == self._metadata.update_version:
            return math.inf
        return 0.0

    # ---- Releasing the assignment ------------------------------------------------------------------------
    def release(self, *, is_lost: bool) -> Exception | None:
        """Give up all partitions, and call ``on_partitions_revoked`` or ``on_partitions_lost``.

        Returns
        -------
        Exception or None
            The exception of the listener. The partitions are given up nevertheless.

        Raises
        ------
        WakeupError
            If the listener raised it. This method must then be called again.
        """
        gone = self._subscriptions.assigned_partitions() - self.calls.being_revoked
        error: Exception | None = None
        if gone and is_lost:
            logger.info(
                "group %r: lost %s because this consumer is not a member of the group any more",
                self._settings.group_id,
                listed(gone),
            )
            self._on_partitions_removed(gone, True)
            error = self.calls.invoke("on_partitions_lost", gone)
        elif gone:
            self._subscriptions.mark_pending_revocation(gone)
            error = self._call_revoked(gone)
        if self._subscriptions.assigned_partitions():
            self._assign([])
        return error
