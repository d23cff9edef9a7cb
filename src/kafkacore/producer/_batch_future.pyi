from array import array
from collections.abc import Callable
from typing import Any, Never, Self, final

from kafkacore.producer._future import FutureRecordMetadata

@final
class BatchFuture:
    """The outcome of one :meth:`~kafkacore.KafkaProducer.send_batch` or ``send_arrow``, row by row.

    Made by the producer. ``len()`` is the number of rows, ``[row]`` the row's
    :class:`~kafkacore.producer.FutureRecordMetadata`. It holds the columns until it is dropped.
    """
    def __init__(self, *args: Never, **kwargs: Never) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, row: int, /) -> FutureRecordMetadata: ...
    @property
    def is_done(self) -> bool:
        """Whether the outcome of every row is known."""
    @property
    def exception(self) -> BaseException | None:
        """The error of the first row that failed, see :meth:`get`; ``None`` while any is unknown, and after
        success.
        """
    def done(self) -> bool:
        """Whether the outcome of every row is known."""
    def succeeded(self) -> bool:
        """Whether all rows have been acknowledged."""
    def failed(self) -> bool:
        """Whether all outcomes are known, and one of them is an error."""
    def get(self, timeout: float | None = None) -> array[int]:
        """Wait for the outcome of all rows.

        Parameters
        ----------
        timeout
            Seconds to wait at most; ``None`` waits for as long as it takes (``delivery_timeout_ms`` ends it).

        Returns
        -------
        array.array of int
            The offset of each row in its partition (``future[row].get().partition``), -1 where the broker
            was not asked (``acks=0``).

        Raises
        ------
        KafkaTimeoutError
            Not all outcomes are known in time; the records are still on their way.
        KafkaError
            A row failed. This is the error of the first that did, in the order of the rows; ``error.row``
            is its number, and ``future[row].exception`` tells of any other.
        """
    def add_callback(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Self:
        """Call ``f(*args, future, **kwargs)`` with this object once all rows have been acknowledged: on the
        producer's network thread, or at once. What it raises is logged. Returns this object.
        """
    def add_errback(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Self:
        """Call ``f(*args, error, **kwargs)`` with the error of the first row that failed, once the outcomes
        of all rows are known; see :meth:`add_callback`. Returns this object.
        """
