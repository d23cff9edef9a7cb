"""Interceptors, which are called before a record is sent and when its outcome is known (KIP-42).

Exceptions of an interceptor are logged and do not affect the record. See Apache Kafka's
``ProducerInterceptor`` and ``ProducerInterceptors``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

from kafkacore.client.interceptors import Interceptors
from kafkacore.logs import logger_of
from kafkacore.producer._batch_future import BatchFuture
from kafkacore.producer._future import FutureRecordMetadata
from kafkacore.producer.record_metadata import RecordMetadata
from kafkacore.structs import TopicPartition, printable

logger = logger_of("kafkacore.producer")

F = TypeVar("F", FutureRecordMetadata, BatchFuture)
#: Headers of one record.
Headers = list[tuple[str, bytes | None]]


class ProducerRecord(NamedTuple):
    """A record with the arguments of ``send()``. ``record._replace(value=...)`` returns a changed copy.

    Attributes
    ----------
    key, value:
        Key and value before serialization.
    partition, timestamp_ms:
        Partition and timestamp; ``None`` if the producer has to choose them.
    """

    topic: str
    value: Any = None
    key: Any = None
    headers: list[tuple[str, bytes | None]] | None = None
    partition: int | None = None
    timestamp_ms: int | None = None


class ProducerInterceptor:
    """Base class of interceptors. Pass instances as the ``interceptors`` setting of the producer.

    If several threads send records, these threads call the methods concurrently.
    """

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """Return the record to send instead of ``record``.

        The record is not serialized yet, and may have no partition. The method runs in the thread that calls
        ``send()``. Interceptors run in the order of the setting. If the method raises an exception, the next
        interceptor receives the same record.
        """
        return record

    def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None) -> None:
        """Handle the outcome of a record: its metadata, or an error.

        If the record failed, the offset in ``metadata`` is -1. The method runs on the producer's network
        thread and must not block. If the outcome is known before ``send()`` returns, the method runs in the
        thread that calls ``send()``. The method runs before the callbacks of the record's future. For the
        records of a partition, the method is called in the order of the records.

        If the method has a further parameter ``headers``, it also receives the headers of the record that was
        sent. With these headers, the method can recognize the record (KIP-512).
        """

    def close(self) -> None:
        """Release the interceptor's resources. The producer calls this method when it is closed."""


class ProducerInterceptors(Interceptors):
    """The interceptors of one producer.

    Parameters
    ----------
    interceptors:
        Objects with the methods of :class:`ProducerInterceptor`.
    """

    def __init__(self, interceptors: Iterable[Any]) -> None:
        super().__init__(interceptors, logger)
        self._takes_headers = tuple(map(_takes_headers, self._interceptors))

    def on_send(self, record: ProducerRecord, *, keeps_topic: bool = False) -> ProducerRecord:
        """Apply all interceptors to ``record``, skipping interceptors that fail.

        Parameters
        ----------
        keeps_topic:
            Whether an interceptor that changes the topic counts as failed. True for the rows of
            ``send_batch()``.
        """
        for interceptor in self._interceptors:
            try:
                made = interceptor.on_send(record)
                if not isinstance(made, ProducerRecord):
                    raise TypeError(f"on_send() must return a ProducerRecord, not {type(made).__name__}")
                if keeps_topic and made.topic != record.topic:
                    raise ValueError(
                        f"on_send() must not move a send_batch() row to another topic, {made.topic!r}"
                    )
                record = made
            except Exception:
                logger.exception(
                    "on_send() of interceptor %r failed for topic %s; skipping it for this record",
                    interceptor,
                    printable(record.topic),
                )
        return record

    def notify_when_done(self, future: FutureRecordMetadata, headers: Headers | None) -> None:
        """Call the interceptors as soon as the outcome of a record is known."""
        future.add_callback(self._acknowledge, headers, None)
        future.add_errback(self._fail, headers, future)

    def notify_failed(self, record: ProducerRecord, error: Exception) -> None:
        """Call the interceptors for a record that failed before a future was created for it."""
        partition = record.partition if isinstance(record.partition, int) else -1
        self._acknowledge(record.headers, error, _failed_metadata(TopicPartition(record.topic, partition)))

    def _fail(self, headers: Headers | None, future: FutureRecordMetadata, error: Exception) -> None:
        self._acknowledge(headers, error, _failed_metadata(future.topic_partition))

    def _acknowledge(
        self, headers: Headers | None, error: Exception | None, metadata: RecordMetadata
    ) -> None:
        for interceptor, takes_headers in zip(self._interceptors, self._takes_headers, strict=True):
            try:
                if takes_headers:
                    interceptor.on_acknowledgement(metadata, error, headers=headers)
                else:
                    interceptor.on_acknowledgement(metadata, error)
            except Exception:
                logger.exception(
                    "interceptor %r failed in on_acknowledgement() for topic %s",
                    interceptor,
                    printable(metadata.topic),
                )


def _takes_headers(interceptor: Any) -> bool:
    # A producer without interceptors does not need this module, whose import takes 4 ms.
    import inspect

    try:
        return "headers" in inspect.signature(interceptor.on_acknowledgement).parameters
    except (TypeError, ValueError):
        # A method that is implemented in C may have no signature.
        return False


def _failed_metadata(topic_partition: TopicPartition) -> RecordMetadata:
    return RecordMetadata(*topic_partition, topic_partition, -1, -1, None, -1, -1, -1)
