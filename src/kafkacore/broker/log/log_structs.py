"""What a log answers with, and what it leaves to others. Knows no log."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from kafkacore.record import RecordBatch

LogT = TypeVar("LogT", contravariant=True)

#: A batch that may be appended, its bytes, its latest timestamp, and whether it gets the time of the append.
ValidatedBatch: TypeAlias = "tuple[RecordBatch, memoryview, int, bool]"


class LogAppendInfo(NamedTuple):
    """What became of an append. ``log_append_time_ms`` is -1 if records keep the producer's time."""

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    #: The batch was in the log already; the offsets are those that it has there.
    duplicate: bool


class FetchDataInfo(NamedTuple):
    """Whole batches as they lie in the log. The first may begin before the offset that was asked for."""

    #: A ``memoryview``; a :class:`~kafkacore.wire.FileSlice` only where the reader can send one.
    records: Any
    #: The offset behind the last batch; the offset asked for if there is none.
    next_offset: int


class TimestampAndOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


class RecordError(NamedTuple):
    """What is wrong with one record of a batch."""

    batch_index: int
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
    """What a log leaves to another thread."""

    def mark_dirty(self, log: LogT) -> None:
        """The log's ``flush_dirty`` has something to do."""

    def schedule(self, task: Callable[[], None]) -> None:
        """Run ``task`` soon, on the thread that flushes."""
