"""Interceptors: application objects that process the records of each poll and see each commit (KIP-42).

An exception of an interceptor is logged and does not affect the consumer. This is Apache Kafka's
``ConsumerInterceptor`` and ``ConsumerInterceptors``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafkacore.client.interceptors import Interceptors
from kafkacore.consumer._record import ConsumerRecord
from kafkacore.logs import logger_of
from kafkacore.record import RecordColumns
from kafkacore.structs import OffsetAndMetadata, TopicPartition

logger = logger_of(__name__)

Records = dict[TopicPartition, list[ConsumerRecord]]


class ConsumerInterceptor:
    """Base class of interceptors; pass instances in the setting ``interceptors``.

    The methods run on the thread that uses the consumer. They must not call the consumer. An interceptor may
    lack :meth:`on_poll` and :meth:`on_consume_columns`, which Apache Kafka's interface does not have.
    """

    def on_poll(self) -> None:
        """Handle the start of a poll by ``poll()``, ``poll_arrow()`` or an iteration."""

    def on_consume(self, records: Records) -> Records:
        """Return the records that ``poll()`` or an iteration returns instead of ``records``.

        ``poll_arrow()`` creates no records and calls :meth:`on_consume_columns` instead. The positions
        advance past the fetched records, whatever this method returns. If this method raises an exception,
        the next interceptor gets the same records as this interceptor.
        """
        return records

    def on_consume_columns(self, columns: Mapping[TopicPartition, RecordColumns]) -> None:
        """Handle the columns that ``poll_arrow()`` returns. They cannot be changed."""

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Handle offsets that have been committed, by any kind of commit."""

    def close(self) -> None:
        """Release the interceptor's resources; called when the consumer has been closed."""


class ConsumerInterceptors(Interceptors):
    """The interceptors of one consumer, called in order.

    Parameters
    ----------
    interceptors:
        Objects with the methods of :class:`ConsumerInterceptor`.
    """

    def __init__(self, interceptors: Iterable[Any] = ()) -> None:
        super().__init__(interceptors, logger)

    def on_poll(self) -> None:
        """Notify each interceptor that a poll starts."""
        for interceptor in self._interceptors:
            try:
                if hasattr(interceptor, "on_poll"):
                    interceptor.on_poll()
            except Exception:
                logger.exception("interceptor %r failed before a poll", interceptor)

    def on_consume_columns(self, columns: Mapping[TopicPartition, RecordColumns]) -> None:
        """Notify each interceptor of fetched columns."""
        for interceptor in self._interceptors if columns else ():
            try:
                if hasattr(interceptor, "on_consume_columns"):
                    interceptor.on_consume_columns(columns)
            except Exception:
                logger.exception("interceptor %r failed before columns were returned", interceptor)

    def on_consume(self, records: Records) -> Records:
        """Return the records that the interceptors return, without partitions that have no records."""
        if not self._interceptors or not records:
            return records
        for interceptor in self._interceptors:
            try:
                made = interceptor.on_consume(records)
                if not isinstance(made, dict) or not all(isinstance(each, list) for each in made.values()):
                    raise TypeError(
                        f"on_consume() must return a dict of partitions and lists, not {type(made).__name__}"
                    )
                records = made
            except Exception:
                logger.exception(
                    "on_consume() of interceptor %r failed; ignoring the interceptor for these records",
                    interceptor,
                )
        return {tp: of_partition for tp, of_partition in records.items() if of_partition}

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Notify each interceptor of a successful commit."""
        for interceptor in self._interceptors:
            try:
                interceptor.on_commit(offsets)
            except Exception:
                logger.exception(
                    "on_commit() of interceptor %r failed; the offsets are committed nevertheless",
                    interceptor,
                )
