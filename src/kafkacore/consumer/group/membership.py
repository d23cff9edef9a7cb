"""A consumer's membership of its group, whatever the protocol: what the rest of the consumer may ask of it.

The classic protocol is behind it today, that of KIP-848 will be. Does not know: how a group is joined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kafkacore.consumer._request_future import RequestFuture
from kafkacore.consumer.group.generation import Generation
from kafkacore.consumer.timer import Timer
from kafkacore.structs import ConsumerGroupMetadata, Node


class GroupCommits(Protocol):
    """What a membership asks of committed offsets; ``OffsetCommits`` gives it."""

    def invoke_completed_callbacks(self) -> None:
        """Call the callbacks of commits that have been answered."""

    def maybe_auto_commit_async(self, now_ms: float) -> None:
        """Commit what was consumed if it is time."""

    def auto_commit_now(self) -> RequestFuture[None] | None:
        """Send what was consumed, for partitions are about to go; ``None`` if there is nothing to wait
        for.
        """

    def time_to_next_auto_commit_ms(self, now_ms: float) -> float:
        """Milliseconds; infinity without auto-commit."""

    def restart_auto_commit_interval(self, now_ms: float) -> None:
        """There is a new assignment: the interval begins anew."""


class GroupMembership(Protocol):
    """A member of a group, or (with partitions chosen by ``assign``) one who only has its coordinator.

    One thread at a time is in it: the application's under the consumer's guard, or the heartbeat thread when
    nobody else is.
    """

    #: Set by the engine when both exist.
    commits: GroupCommits | None
    #: Called when the heartbeat thread has to look anew at what is due; set by who starts that thread.
    wake_background: Callable[[], None]
    #: Whether the program holds its records for as long as it takes (``consumer.hold()``).
    is_held: bool

    def poll(self) -> bool:
        """A turn of the wheel: know the coordinator, join if needed, follow metadata, commit what is due.
        Nothing is waited for: the network is not polled, only what has come is worked on.

        Returns
        -------
        bool
            Whether nothing stands between the member and its assignment.

        Raises
        ------
        KafkaError
            What the group will not get over by itself; and the first that a listener raised.
        """

    def time_to_next_poll_ms(self, now_ms: float) -> float:
        """How long the engine may wait before it has to call :meth:`poll` again."""

    def polled(self, now_ms: float) -> None:
        """The application has called ``poll()``: ``max_poll_interval_ms`` begins anew."""

    def background_turn(self, now_ms: float) -> float:
        """For the heartbeat thread, under the guard's inner lock: act on what has changed, without waiting
        and without any callback of the user's.

        Returns
        -------
        float
            Milliseconds until it wants to be called again; infinity until ``wake_background``.
        """

    def hold(self, is_held: bool, now_ms: float) -> None:
        """While held, ``max_poll_interval_ms`` does not count, nothing is committed automatically, and the
        heartbeat thread takes the part of ``poll()``.
        """

    def held_turn(self, now_ms: float) -> float:
        """As :meth:`background_turn`, for the heartbeat thread in the owner's place: follow what the group
        does, with the listener's callbacks. What they raise is raised by the next :meth:`poll`.
        """

    def subscription_changed(self) -> None:
        """There is another subscription, or none."""

    def request_rejoin(self, reason: str) -> None:
        """Join again with the next poll (``enforce_rebalance``)."""

    def coordinator(self) -> Node | None:
        """Whom to send the group's requests; ``None`` while it is not known, or its connection is lost."""

    def ensure_coordinator(self, timer: Timer) -> bool:
        """Poll until the coordinator is known or the time is up; whether it is known.

        Raises
        ------
        GroupAuthorizationFailedError
            And what else trying again will not cure.
        """

    def lookup_coordinator(self) -> RequestFuture[None]:
        """Begin to look for the coordinator, or join the search that goes on; done already if it is
        known.
        """

    def coordinator_failed(self, cause: str, *, disconnected: bool = False) -> None:
        """It is not the coordinator any more, or cannot be had: look for it again.

        Parameters
        ----------
        disconnected:
            Its connection has ended already; otherwise it is closed, and what is on it fails.
        """

    def request_failed(self, node: Node, error: BaseException) -> None:
        """A request to ``node`` has got no answer: if it is because of its connection, and it is still the
        coordinator, that has failed.
        """

    def generation(self) -> Generation:
        """``NO_GENERATION`` outside of a group."""

    def is_rebalancing(self) -> bool:
        """Whether JoinGroup has been sent and SyncGroup is not answered yet."""

    def reset_generation(self, error: BaseException, sent: Generation, why: str) -> None:
        """A request of generation ``sent`` was refused, for the member is unknown or fenced or late. Nothing
        happens unless that is still the current generation.
        """

    def group_metadata(self) -> ConsumerGroupMetadata:
        """For a transactional producer (KIP-447)."""

    def leave(self, reason: str) -> None:
        """Give the partitions back and leave; does not wait for the answer."""

    def close(self, timer: Timer) -> None:
        """Leave (a static member does not) and have what is on its way to the coordinator answered, in
        time.
        """
