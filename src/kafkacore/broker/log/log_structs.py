"""Results of a log's methods, and the interface of its background thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from kafkacore.broker.log.transaction_index import AbortedTransaction
    from kafkacore.record import RecordBatch

LogT = TypeVar("LogT", contravariant=True)

#: A valid batch, its bytes, its largest timestamp, and whether the time of the append replaces the
#: timestamps.
ValidatedBatch: TypeAlias = "tuple[RecordBatch, memoryview, int, bool]"


class LogAppendInfo(NamedTuple):
    """Result of an append."""

    first_offset: int
    last_offset: int
    #: Time of the append in milliseconds since the epoch, or -1 if records keep the producer's timestamps.
    log_append_time_ms: int
    log_start_offset: int
    #: Whether the batch was already in the log. If so, the offsets are those of the first append.
    duplicate: bool


class FetchDataInfo(NamedTuple):
    """Whole batches as stored in the log. The first batch may begin before the requested offset."""

    #: A ``memoryview``, or a :class:`~kafkacore.wire.FileSlice` if the caller allows it.
    records: Any
    #: Offset after the last batch, or the requested offset if there are no batches.
    next_offset: int
    #: Aborted transactions with records among the batches, if the caller asked for them.
    aborted_transactions: Sequence[AbortedTransaction] = ()


class TimestampAndOffset(NamedTuple):
    """A record found by timestamp. The leader epoch is -1 if it is not known."""

    timestamp: int
    offset: int
    leader_epoch: int


class RecordError(NamedTuple):
    """A record that was rejected."""

    #: Index of the record in its batch.
    batch_index: int
    #: Reason of the rejection.
    message: str


class OffsetPosition(NamedTuple):
    """An entry of an offset index."""

    offset: int
    position: int


class TimestampOffset(NamedTuple):
    """An entry of a time index."""

    timestamp: int
    offset: int


class BackgroundWork(Protocol[LogT]):
    """The flusher's thread, to which a log passes its background work."""

    def mark_dirty(self, log: LogT) -> None:
        """Call ``flush_dirty`` of ``log`` soon on the flusher's thread."""

    def schedule(self, task: Callable[[], None]) -> None:
        """Run ``task`` soon on the flusher's thread."""
