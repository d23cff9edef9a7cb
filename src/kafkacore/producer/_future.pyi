from collections.abc import Callable, Mapping
from typing import Any, final

from kafkacore.clock import Clock
from kafkacore.producer.record_metadata import RecordMetadata as RecordMetadata
from kafkacore.structs import TopicPartition

@final
class ProduceResult:
    """The fate of one batch: done once, with a base offset or an error, or divided into the fates of its
    parts.

    Parameters
    ----------
    topic_partition
        Where the batch goes.
    clock
        What waiting is measured by.
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
        """State the outcome, wake who waits, then run callbacks in the order of the records.

        Parameters
        ----------
        base_offset
            Offset of the batch's first record, -1 where the broker was not asked (acks=0).
        log_append_time_ms
            The broker's timestamp of the records, -1 where theirs stands.
        error
            Why all of it failed; ``None`` for success.
        record_errors
            Index in the batch → its own error, where the broker blamed single records (KIP-467).
        """
    def divide(self, parts: list[tuple[int, ProduceResult]]) -> None:
        """Hand this fate over to ``parts``, a list of (index of the first record, result), after a split."""
    def wait(self, timeout_ms: float | None = None) -> bool:
        """Wait until this and all that it was divided into is done and its callbacks have run; whether so."""

@final
class FutureRecordMetadata:
    """The outcome of one :meth:`~kafkacore.KafkaProducer.send`, there once its batch has been answered.

    Made by the producer. Methods and attributes are kafka-python's. The error of a failed send says by its
    attribute ``possibly_persisted`` whether the record may nevertheless be in the log.
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
        """Where the record goes."""
    @property
    def is_done(self) -> bool:
        """Whether the outcome is known."""
    @property
    def exception(self) -> BaseException | None:
        """Why the record failed; ``None`` while unknown and after success."""
    @property
    def value(self) -> RecordMetadata | None:
        """The record's :class:`RecordMetadata`; ``None`` while unknown and after a failure."""
    def done(self) -> bool:
        """Whether the outcome is known."""
    def succeeded(self) -> bool:
        """Whether the record has been acknowledged."""
    def failed(self) -> bool:
        """Whether the record has failed."""
    def retriable(self) -> bool:
        """Whether the record has failed with an error for which sending it again may help."""
    def get(self, timeout: float | None = None) -> RecordMetadata:
        """Wait for the outcome.

        Parameters
        ----------
        timeout
            Seconds to wait at most; ``None`` waits for as long as it takes (``delivery_timeout_ms`` ends it).

        Returns
        -------
        RecordMetadata

        Raises
        ------
        KafkaTimeoutError
            The outcome is not known in time; the record is still on its way.
        KafkaError
            The record failed; ``error.possibly_persisted`` says whether it may be in the log all the same.
        """
    def add_callback(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> FutureRecordMetadata:
        """Call ``f(*args, record_metadata, **kwargs)`` after success: on the producer's network thread, or at
        once if the outcome is known. What it raises is logged. Returns the future.

        On that thread nothing must wait for another record of the same producer: only that thread can bring
        its outcome.
        """
    def add_errback(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> FutureRecordMetadata:
        """Call ``f(*args, error, **kwargs)`` after a failure; see :meth:`add_callback`. Returns the future."""
    def add_both(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> FutureRecordMetadata:
        """Call ``f`` after either, see :meth:`add_callback` and :meth:`add_errback`. Returns the future."""
