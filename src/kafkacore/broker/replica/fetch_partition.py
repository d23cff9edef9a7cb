"""What a Fetch asks of partitions and what each answers, between handler, sessions and replica manager.

Does not know: requests' formats, logs, what a session is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from kafkacore.structs import TopicPartition

NO_RECORDS = memoryview(b"")
NO_EPOCH = -1
NO_OFFSET = -1


class FetchParams(NamedTuple):
    """What a Fetch asks of all its partitions together."""

    node_id: int
    max_wait_ms: float
    min_bytes: int
    max_bytes: int
    read_committed: bool = False
    #: Whether the asker may read a topic; everybody may where there is nothing to ask.
    may_read: Callable[[str], bool] | None = None


class FetchPartition:
    """What a Fetch asks of one partition.

    Parameters
    ----------
    name:
        Of the topic; ``None`` if it is asked for by an id that no topic has.
    topic_id:
        As the request has it; zero in versions that name topics.
    current_leader_epoch, last_fetched_epoch:
        What the client knows; -1 if it does not say.
    """

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "max_bytes",
        "partition",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        name: str | None,
        topic_id: UUID,
        partition: int,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int = NO_EPOCH,
        last_fetched_epoch: int = NO_EPOCH,
    ) -> None:
        self.topic_id = topic_id
        self.partition = partition
        self.topic_partition = None if name is None else TopicPartition(name, partition)
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch

    @property
    def name(self) -> str:
        """Of the topic, as far as it is known."""
        return "" if self.topic_partition is None else self.topic_partition.topic


class FetchPartitionResult(NamedTuple):
    """What one partition answers. ``records`` are whole batches as they lie in the log."""

    error: int = 0
    high_watermark: int = NO_OFFSET
    last_stable_offset: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    #: Bytes, or what the network can send in their place; it has a length.
    records: Any = NO_RECORDS
    #: Epoch and its end offset, where the log and what the client has read part.
    diverging_epoch: tuple[int, int] | None = None
    #: There is something to read at the offset, whether or not the limits let any of it through.
    is_readable: bool = False
    #: The log that was read; it counts the bytes sent.
    log: Any = None
    #: The offset behind the records; the offset asked for if there are none.
    next_offset: int = NO_OFFSET


PartitionResults = list[tuple[FetchPartition, FetchPartitionResult]]


class FetchContext(Protocol):
    """Which partitions a Fetch is for."""

    def partitions(self) -> Iterable[FetchPartition]:
        """Those to look at, in the order in which they are to be served."""
        ...

    def keys(self) -> Iterable[Hashable]:
        """What something has to happen to before there is a point in looking again."""
        ...
