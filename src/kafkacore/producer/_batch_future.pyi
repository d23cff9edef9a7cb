from array import array
from collections.abc import Callable, Generator
from typing import Any, Never, Self, final

from kafkacore.producer._future import FutureRecordMetadata

@final
class BatchFuture:
    """The outcome of one :meth:`~kafkacore.KafkaProducer.send_batch` or ``send_arrow``.

    The producer creates this object. ``len()`` is the number of rows, and ``[row]`` is the
    :class:`~kafkacore.producer.FutureRecordMetadata` of one row. The object keeps a reference to the sent
    columns.
    """

    def __init__(self, *args: Never, **kwargs: Never) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, row: int, /) -> FutureRecordMetadata: ...
    @property
    def is_done(self) -> bool:
        """Whether every row was acknowledged or has failed."""
    @property
    def exception(self) -> BaseException | None:
        """The error that :meth:`get` raises: the error of the first row that failed.

        ``None`` until all rows are done, and also after success.
        """
    def done(self) -> bool:
        """Return whether every row was acknowledged or has failed."""
    def succeeded(self) -> bool:
        """Return whether all rows were acknowledged."""
    def failed(self) -> bool:
        """Return whether every row is done and at least one has failed."""
    def get(self, timeout: float | None = None) -> array[int]:
        """Wait until all rows are acknowledged.

        Parameters
        ----------
        timeout
            Seconds to wait. ``None`` sets no limit, but ``delivery_timeout_ms`` limits the wait anyway.

        Returns
        -------
        array.array of int
            Offset of each row in its partition, or -1 with ``acks=0``. The partition of a row is
            ``future[row].get().partition``.

        Raises
        ------
        KafkaTimeoutError
            Some rows are not done in time. The producer continues to send them.
        KafkaError
            A row failed. The method raises the error of the first such row, and ``error.row`` is the number
            of that row. ``future[row].exception`` is the error of any other row.
        """
    def __await__(self) -> Generator[Any, None, array[int]]:
        """Wait in an event loop, and return or raise what :meth:`get` returns or raises.

        If the waiting task is cancelled, the producer continues to send the rows.
        """
    def add_callback(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Self:
        """Call ``f(*args, future, **kwargs)`` with this object after all rows are acknowledged.

        The producer's network thread calls ``f``. If all rows are already done, this method calls ``f``.
        Exceptions of ``f`` are logged. Returns this object.
        """
    def add_errback(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Self:
        """Call ``f(*args, error, **kwargs)`` with the error of the first row that failed.

        ``f`` is called when all rows are done, as in :meth:`add_callback`. Returns this object.
        """
