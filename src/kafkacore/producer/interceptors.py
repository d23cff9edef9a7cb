"""Who sees each record before it is sent and when it has its outcome: the user's interceptors.

Records in, records out; outcomes in. What an interceptor raises is logged and hurts nobody. Does not know:
serialisation, batches. Source: Apache Kafka's ``ProducerInterceptor`` and ``ProducerInterceptors`` (KIP-42).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

from kafkacore.client.interceptors import Interceptors
from kafkacore.producer._batch_future import BatchFuture
from kafkacore.producer._future import FutureRecordMetadata
from kafkacore.producer.record_metadata import RecordMetadata
from kafkacore.structs import TopicPartition, printable

logger = logging.getLogger("kafkacore.producer")

F = TypeVar("F", FutureRecordMetadata, BatchFuture)


class ProducerRecord(NamedTuple):
    """A record as ``send()`` was called with it. ``record._replace(value=...)`` is another.

    Attributes
    ----------
    key, value:
        Not yet serialized.
    partition, timestamp_ms:
        ``None`` where they are still to be chosen.
    """

    topic: str
    value: Any = None
    key: Any = None
    headers: list[tuple[str, bytes | None]] | None = None
    partition: int | None = None
    timestamp_ms: int | None = None


class ProducerInterceptor:
    """Derive from this, and pass objects of it as the producer's ``interceptors``.

    Used by several threads at once, if several send.
    """

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """The record to send in the place of ``record``, which is not serialized yet and may have no
        partition.

        In the thread that sends, one interceptor after the other. Where this raises, the next one is given
        what this one was given.
        """
        return record

    def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None) -> None:
        """The record lies at ``metadata``, or has failed with ``error``; its offset is -1 then.

        On the producer's network thread, which must not be kept waiting; for a record that has its outcome
        before ``send()`` returns, in the thread that sends. Before the callbacks of the record's future, in
        the order of the records of a partition.
        """

    def close(self) -> None:
        """The producer has closed."""


class ProducerInterceptors(Interceptors):
    """All of a producer's, one after the other.

    Parameters
    ----------
    interceptors:
        Objects with the methods of :class:`ProducerInterceptor`.
    """

    def __init__(self, interceptors: Iterable[Any]) -> None:
        super().__init__(interceptors, logger)

    def on_send(self, record: ProducerRecord, *, keeps_topic: bool = False) -> ProducerRecord:
        """What the last that did not fail makes of ``record``.

        Parameters
        ----------
        keeps_topic:
            Another topic is a failure: the record is one of many that go there.
        """
        for interceptor in self._interceptors:
            try:
                made = interceptor.on_send(record)
                if not isinstance(made, ProducerRecord):
                    raise TypeError(f"on_send() must return a ProducerRecord, not {type(made).__name__}")
                if keeps_topic and made.topic != record.topic:
                    raise ValueError(
                        f"on_send() cannot send one row of send_batch() to another topic, {made.topic!r}"
                    )
                record = made
            except Exception:
                logger.exception(
                    "interceptor %r failed before a record to %s", interceptor, printable(record.topic)
                )
        return record

    def follow(self, future: FutureRecordMetadata) -> None:
        """Tell of what becomes of a record, once it is known."""
        future.add_callback(self._acknowledge, None)
        future.add_errback(self._fail, future)

    def refused(self, record: ProducerRecord, error: Exception) -> None:
        """Tell of a record that has failed before it had a future."""
        partition = record.partition if isinstance(record.partition, int) else -1
        self._acknowledge(error, _nowhere(TopicPartition(record.topic, partition)))

    def _fail(self, future: FutureRecordMetadata, error: Exception) -> None:
        self._acknowledge(error, _nowhere(future.topic_partition))

    def _acknowledge(self, error: Exception | None, metadata: RecordMetadata) -> None:
        for interceptor in self._interceptors:
            try:
                interceptor.on_acknowledgement(metadata, error)
            except Exception:
                logger.exception(
                    "interceptor %r failed after a record to %s", interceptor, printable(metadata.topic)
                )


def _nowhere(topic_partition: TopicPartition) -> RecordMetadata:
    return RecordMetadata(*topic_partition, topic_partition, -1, -1, None, -1, -1, -1)
