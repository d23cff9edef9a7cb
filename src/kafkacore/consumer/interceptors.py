"""Who sees the records of each poll, and each commit: the user's interceptors.

Records in, records out; committed offsets in. What an interceptor raises is logged and hurts nobody. Does not
know: fetching, groups. Source: Apache Kafka's ``ConsumerInterceptor`` and ``ConsumerInterceptors`` (KIP-42).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from kafkacore.client.interceptors import Interceptors
from kafkacore.consumer._record import ConsumerRecord
from kafkacore.structs import OffsetAndMetadata, TopicPartition

logger = logging.getLogger(__name__)

Records = dict[TopicPartition, list[ConsumerRecord]]


class ConsumerInterceptor:
    """Derive from this, and pass objects of it as the consumer's ``interceptors``.

    All is called on the thread that uses the consumer, which must not be called back.
    """

    def on_consume(self, records: Records) -> Records:
        """The records to hand out in the place of ``records``: by ``poll()``, or one after the other by an
        iteration. ``poll_arrow()`` makes no records, and does not call this.

        Positions move behind what was fetched, whatever is handed out. Where this raises, the next
        interceptor is given what this one was given.
        """
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """``offsets`` are committed, by whichever kind of commit."""

    def close(self) -> None:
        """The consumer has closed."""


class ConsumerInterceptors(Interceptors):
    """All of a consumer's, one after the other.

    Parameters
    ----------
    interceptors:
        Objects with the methods of :class:`ConsumerInterceptor`.
    """

    def __init__(self, interceptors: Iterable[Any] = ()) -> None:
        super().__init__(interceptors, logger)

    def on_consume(self, records: Records) -> Records:
        """What the last that did not fail makes of ``records``; a partition without any is left out."""
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
                logger.exception("interceptor %r failed before records were handed out", interceptor)
        return {tp: of_partition for tp, of_partition in records.items() if of_partition}

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Tell each of a commit that succeeded."""
        for interceptor in self._interceptors:
            try:
                interceptor.on_commit(offsets)
            except Exception:
                logger.exception("interceptor %r failed after a commit", interceptor)
