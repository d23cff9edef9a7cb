import asyncio
from array import array
from collections.abc import Callable, Generator
from contextvars import Context
from types import GenericAlias
from typing import Any, Generic, Never, Self, TypeVar, final

from kafkacore.producer._batch_future import BatchFuture
from kafkacore.producer._future import FutureRecordMetadata
from kafkacore.producer.record_metadata import RecordMetadata

_T = TypeVar("_T")

@final
class LoopFutures:
    """The futures of one event loop.

    Parameters
    ----------
    loop
        The running event loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None: ...
    def of_record(self, record: FutureRecordMetadata) -> ProduceFuture[RecordMetadata]:
        """Return a future with the outcome of a record."""
    def of_rows(self, rows: BatchFuture) -> ProduceFuture[array[int]]:
        """Return a future whose result is the offsets of many rows."""
    def of_batch(self, rows: BatchFuture) -> ProduceFuture[RecordMetadata]:
        """Return a future that is done when all rows are, and whose result is that of the first row."""

@final
class ProduceFuture(Generic[_T]):
    """The outcome of a send as a future of asyncio, with the methods of :class:`asyncio.Future`.

    The producer creates this object. To cancel it ends the waits for it, but the producer continues to send
    the record.
    """

    _asyncio_future_blocking: bool
    def __class_getitem__(cls, item: object, /) -> GenericAlias: ...
    def __init__(self, *args: Never, **kwargs: Never) -> None: ...
    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop of the future."""
    def done(self) -> bool:
        """Return whether the outcome is known, or the future was cancelled."""
    def cancelled(self) -> bool:
        """Return whether the future was cancelled."""
    def cancel(self, msg: str | None = None) -> bool:
        """End the waits for this future. The producer continues to send.

        Returns
        -------
        bool
            ``False`` if the future is done already.
        """
    def result(self) -> _T:
        """Return the ``RecordMetadata`` of the record, or the offsets of the rows.

        Raises
        ------
        KafkaError
            The record has failed. ``error.possibly_persisted`` is true if it may be in the log anyway.
        asyncio.CancelledError
            The future was cancelled.
        asyncio.InvalidStateError
            The outcome is not known yet.
        """
    def exception(self) -> BaseException | None:
        """Return the error with which the record has failed, or ``None``. See :meth:`result`."""
    def add_done_callback(self, fn: Callable[[Self], object], *, context: Context | None = None) -> None:
        """Let the event loop call ``fn(future)`` when the outcome is known."""
    def remove_done_callback(self, fn: Callable[[Self], object]) -> int:
        """Remove all callbacks ``fn``, and return how many there were."""
    def __await__(self) -> Generator[Any, None, _T]: ...
    def __iter__(self) -> Generator[Any, None, _T]: ...
    def __next__(self) -> Self: ...

def iterator_of(source: FutureRecordMetadata | BatchFuture) -> ProduceFuture[Any]:
    """Return an iterator with which a task of the running event loop awaits ``source``."""
