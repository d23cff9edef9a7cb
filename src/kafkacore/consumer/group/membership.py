"""Interface of a group membership, independent of the group protocol.

``ClassicMembership`` implements the interface for the classic protocol, ``ConsumerMembership`` for the
protocol of KIP-848.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from kafkacore.consumer._request_future import RequestFuture
from kafkacore.consumer.group.generation import Generation
from kafkacore.consumer.timer import Timer
from kafkacore.structs import ConsumerGroupMetadata, Node

#: Interval at which the heartbeat thread checks for a response to a request in flight, in milliseconds.
BACKGROUND_CHECK_MS: Final = 100.0
#: Pauses of the heartbeat thread between two rounds of work in a ``consumer.hold()`` block, in milliseconds.
#: The second pause applies while the member is joining the group.
HELD_CHECK_MS: Final = 500.0
REJOIN_CHECK_MS: Final = 20.0
#: Interval at which polls check the connection to the coordinator while the member has nothing to do, in
#: milliseconds.
SETTLED_CHECK_MS: Final = 20.0


class GroupCommits(Protocol):
    """The part of :class:`OffsetCommits` that a membership uses."""

    def invoke_completed_callbacks(self) -> None:
        """Call the callbacks of completed asynchronous commits."""

    def maybe_auto_commit_async(self, now_ms: float) -> None:
        """Commit the consumed offsets if ``auto_commit_interval_ms`` has passed."""

    def auto_commit_now(self) -> RequestFuture[None] | None:
        """Commit the consumed offsets before partitions are revoked.

        Return ``None`` if nothing is to be committed.
        """

    def time_to_next_auto_commit_ms(self, now_ms: float) -> float:
        """Return the milliseconds until the next automatic commit; infinity without automatic commits."""

    def restart_auto_commit_interval(self, now_ms: float) -> None:
        """Start a new auto-commit interval, because partitions have been assigned."""


class GroupMembership(Protocol):
    """A member of a group. If the user assigned the partitions, only the coordinator lookup is used.

    One thread at a time uses a membership: the application's thread under the consumer's lock, or the
    heartbeat thread while no application thread is in the consumer.
    """

    #: Commits the offsets of the group. The engine sets this attribute after it has created the membership.
    commits: GroupCommits | None
    #: Function that makes the heartbeat thread check what is due. The code that starts the thread sets it.
    wake_background: Callable[[], None]
    #: Whether a ``consumer.hold()`` block is open.
    is_held: bool

    def poll(self) -> bool:
        """Find the coordinator, join if needed, handle new metadata, and commit what is due.

        The call does not wait: it does not poll the network, and handles only responses that have arrived.

        Returns
        -------
        bool
            Whether the member has its assignment, or needs no assignment.

        Raises
        ------
        KafkaError
            An error that is not retriable, or the first exception that the rebalance listener raised.
        """

    def time_to_next_poll_ms(self, now_ms: float) -> float:
        """Return how many milliseconds the engine may wait before it must call :meth:`poll` again."""

    def polled(self, now_ms: float) -> None:
        """Restart ``max_poll_interval_ms``, because the application has called ``poll()``."""

    def background_turn(self, now_ms: float) -> float:
        """Do the background work of a member on the heartbeat thread, under the inner lock of the consumer.

        The method neither waits nor calls any callback of the user.

        Returns
        -------
        float
            Milliseconds until the next call; infinity to wait for ``wake_background``.
        """

    def hold(self, is_held: bool, now_ms: float) -> None:
        """Start or end a hold (``consumer.hold()``).

        During a hold ``max_poll_interval_ms`` does not apply, nothing is committed automatically, and the
        heartbeat thread rejoins the group in place of ``poll()``.
        """

    def held_turn(self, now_ms: float) -> float:
        """Take part in rebalances within a ``consumer.hold()`` block.

        The heartbeat thread calls this method, and owns the consumer during the call. The method calls the
        rebalance listener. If the listener raises an exception, the next :meth:`poll` raises it. In all other
        respects the method is like :meth:`background_turn`.
        """

    def subscription_changed(self) -> None:
        """Handle a new subscription, or the end of the subscription."""

    def request_rejoin(self, reason: str) -> None:
        """Make the next poll join the group again (``enforce_rebalance``)."""

    def coordinator(self) -> Node | None:
        """Return the coordinator, or ``None`` while it is unknown or its connection has failed."""

    def ensure_coordinator(self, timer: Timer) -> bool:
        """Poll until the coordinator is known or the time is up; return whether it is known.

        Raises
        ------
        KafkaError
            An error that is not retriable, such as ``GroupAuthorizationFailedError``.
        """

    def lookup_coordinator(self) -> RequestFuture[None]:
        """Start looking up the coordinator, and return the future of the lookup.

        If a lookup is in progress, return its future. If the coordinator is known, the future is done.
        """

    def coordinator_failed(self, cause: str, *, disconnected: bool = False) -> None:
        """Forget the coordinator, which is unreachable or no longer coordinates the group, and look it up.

        Parameters
        ----------
        cause:
            Reason, for the log.
        disconnected:
            Whether the connection to the coordinator is already closed. If not, this method closes it, and
            the requests on it fail.
        """

    def request_failed(self, node: Node, error: BaseException) -> None:
        """Handle a request to ``node`` that got no response.

        If the connection failed, and the node is still the coordinator, look up the coordinator again.
        """

    def generation(self) -> Generation:
        """Return the current generation; ``NO_GENERATION`` outside of a group.

        In the protocol of KIP-848 the member epoch takes the place of the generation id.
        """

    def generation_for_fetch(self) -> Generation:
        """Return the member id and epoch for OffsetFetch; ``NO_GENERATION`` in the classic protocol."""

    def is_rebalancing(self) -> bool:
        """Return whether the member is waiting for the response to JoinGroup or SyncGroup.

        During this time nothing can be committed. In the protocol of KIP-848, the result is always false.
        """

    def reset_generation(self, error: BaseException, sent: Generation, why: str) -> None:
        """Leave the generation after a request of generation ``sent`` was rejected.

        ``why`` is the name of the request. If ``sent`` is no longer the current generation, nothing happens.
        """

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return the group metadata for a transactional producer (KIP-447). Any thread may call this."""

    def leave(self, reason: str) -> None:
        """Revoke the partitions and leave the group, without waiting for the response."""

    def close(self, timer: Timer) -> None:
        """Leave the group, unless the member is static, and wait for requests in flight.

        The wait ends at the latest when ``timer`` expires.
        """
