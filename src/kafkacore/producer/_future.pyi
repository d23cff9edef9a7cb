from collections.abc import Callable, Generator, Mapping
from typing import Any, final

from kafkacore.clock import Clock
from kafkacore.future import Completable
from kafkacore.producer.record_metadata import RecordMetadata as RecordMetadata
from kafkacore.structs import TopicPartition

@final
class ProduceResult:
    """The outcome of one batch: a base offset, an error or, after a split, the results of the new batches.

    Parameters
    ----------
    topic_partition
        Partition of the batch.
    clock
        Clock for the waits.
    """

    topic_partition: TopicPartition
    done: bool
    base_offset: int
    log_append_time_ms: int
    error: BaseException | None
    def __init__(self, topic_partition: TopicPartition, clock: Clock = ...) -> None: ...
    def complete(
        self,
        base_offset: int = -1,
        log_append_time_ms: int = -1,
        error: BaseException | None = None,
        record_errors: Mapping[int, BaseException] | None = None,
    ) -> None:
        """Set the outcome, wake waiting threads, then run the callbacks in the order of the records.

        Parameters
        ----------
        base_offset
            Offset of the batch's first record, or -1 with ``acks=0``.
        log_append_time_ms
            Timestamp that the broker set for the records, or -1 if the records keep their own timestamps.
        error
            Error of the batch; ``None`` for success.
        record_errors
            Index in the batch → error, for records that the broker has rejected individually (KIP-467).
        """
    def divide(self, parts: list[tuple[int, ProduceResult]]) -> None:
        """Replace this result by the results in ``parts`` after the batch has been split.

        Parameters
        ----------
        parts
            List of (index of the first record, ProduceResult).
        """
    def wait(self, timeout_ms: float | None = None) -> bool:
        """Wait until this result, with all of its parts, is done and the callbacks have run.

        Return ``False`` if the wait takes longer than ``timeout_ms``.
        """

@final
class FutureRecordMetadata:
    """The outcome of one :meth:`~kafkacore.KafkaProducer.send`.

    The producer creates this object. Methods and attributes are those of kafka-python. The error of a failed
    send has the attribute ``possibly_persisted``, which is true if the record may be in the log although the
    send failed.
    """

    def __init__(
        self,
        result: ProduceResult,
        index: int = 0,
        timestamp_ms: int = -1,
        serialized_key_size: int = -1,
        serialized_value_size: int = -1,
        serialized_header_size: int = -1,
    ) -> None: ...
    @property
    def topic_partition(self) -> TopicPartition:
        """Partition of the record."""
    @property
    def is_done(self) -> bool:
        """Whether the record was acknowledged or has failed."""
    @property
    def exception(self) -> BaseException | None:
        """The error of the record; ``None`` while the record is not done, and after success."""
    @property
    def value(self) -> RecordMetadata | None:
        """The :class:`RecordMetadata`; ``None`` while the record is not done, and after a failure."""
    def done(self) -> bool:
        """Return whether the record was acknowledged or has failed."""
    def succeeded(self) -> bool:
        """Return whether the record was acknowledged."""
    def failed(self) -> bool:
        """Return whether the record has failed."""
    def retriable(self) -> bool:
        """Return whether the record has failed with an error after which another ``send()`` may succeed."""
    def get(self, timeout: float | None = None) -> RecordMetadata:
        """Wait until the record is acknowledged.

        Parameters
        ----------
        timeout
            Seconds to wait. ``None`` sets no limit, but ``delivery_timeout_ms`` limits the wait anyway.

        Returns
        -------
        RecordMetadata

        Raises
        ------
        KafkaTimeoutError
            The record is not done in time. The producer continues to send it.
        KafkaError
            The record failed. ``error.possibly_persisted`` is true if the record may be in the log anyway.
        """
    def add_callback(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> FutureRecordMetadata:
        """Call ``f(*args, record_metadata, **kwargs)`` after the record is acknowledged.

        The producer's network thread calls ``f``. If that thread has already run the callbacks of the batch,
        this method calls ``f``.
        Exceptions of ``f`` are logged. ``f`` must not wait for another record of the same producer, because
        the wait would block the thread that completes that record. Returns the future.
        """
    def add_errback(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> FutureRecordMetadata:
        """Call ``f(*args, error, **kwargs)`` after a failure. Returns the future.

        See :meth:`add_callback`.
        """
    def add_both(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> FutureRecordMetadata:
        """Add ``f`` both as a callback and as an errback. Returns the future."""
    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        """Wait in an event loop, and return or raise what :meth:`get` returns or raises.

        If the waiting task is cancelled, the producer continues to send the record.
        """
    def chain(self, future: Completable) -> FutureRecordMetadata:
        """Complete ``future``, such as a :class:`~kafkacore.future.Future`, with this future's outcome.

        ``future`` gets the :class:`RecordMetadata` or the error. Returns ``self``.
        """
