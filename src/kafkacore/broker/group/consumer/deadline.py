"""The tasks that a member of a consumer group must complete in time."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum


class Deadline(Enum):
    """The tasks that a member must complete in time. The values are the reasons in log messages."""

    #: Send a heartbeat.
    SESSION = "the member session expired"
    #: Revoke the partitions that the member must give up.
    REVOCATION = "it failed to revoke its partitions in time"
    #: Send JoinGroup after the start of a rebalance, in the classic protocol.
    JOIN = "the classic member failed to join within the rebalance timeout"
    #: Send SyncGroup after JoinGroup, in the classic protocol.
    SYNC = "the member failed to sync within timeout"

    # Enum.__hash__ is a Python method, and each heartbeat looks up a deadline.
    __hash__ = object.__hash__


#: Function that is called with the ids of the group and the member and with the missed deadline.
OnMissed = Callable[[str, str, Deadline], None]
