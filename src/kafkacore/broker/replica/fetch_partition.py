"""Data structures for fetches, shared by the Fetch handler, the fetch sessions and the replica manager."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kafkacore.broker.replica._fetch_call import FetchPartition

if TYPE_CHECKING:
    from kafkacore.broker.log.transaction_index import AbortedTransaction

__all__ = [
    "NO_EPOCH",
    "NO_OFFSET",
    "NO_RECORDS",
    "FetchContext",
    "FetchParams",
    "FetchPartition",
    "FetchPartitionResult",
    "PartitionResults",
]

NO_RECORDS = memoryview(b"")
NO_EPOCH = -1
NO_OFFSET = -1


class FetchParams(NamedTuple):
    """Parameters of a Fetch that apply to all its partitions."""

    node_id: int
    max_wait_ms: float
    min_bytes: int
    max_bytes: int
    read_committed: bool = False
    #: Function that returns whether the client may read a topic; ``None`` if the client may read all topics.
    may_read: Callable[[str], bool] | None = None


class FetchPartitionResult(NamedTuple):
    """Result of a fetch from one partition. ``records`` are whole batches as stored in the log."""

    error: int = 0
    high_watermark: int = NO_OFFSET
    last_stable_offset: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    #: Bytes, or an object with a length that the network layer can send, such as a slice of a file.
    records: Any = NO_RECORDS
    #: Leader epoch and end offset up to which the log has the same records as the client. ``None`` if the log
    #: has all records of the client.
    diverging_epoch: tuple[int, int] | None = None
    #: Whether the log has records at the fetch offset, even if the size limits did not allow returning any.
    is_readable: bool = False
    #: The log that was read. It counts the bytes sent.
    log: Any = None
    #: Offset after the returned records; the fetch offset if no records are returned.
    next_offset: int = NO_OFFSET
    #: Aborted transactions with records among ``records``, for a read-committed fetch.
    aborted_transactions: Sequence[AbortedTransaction] = ()


PartitionResults = list[tuple[FetchPartition, FetchPartitionResult]]


class FetchContext(Protocol):
    """The partitions of a Fetch, with or without a fetch session."""

    def partitions(self) -> Iterable[FetchPartition]:
        """Return the partitions to read, in the order in which to serve them."""
        ...

    def keys(self) -> Iterable[Hashable]:
        """Return the purgatory keys whose events can complete the fetch."""
        ...
