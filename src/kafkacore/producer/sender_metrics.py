"""The metrics of a producer, and the interface through which the Sender reports events.

Names and meanings are those of kafka-python. The metrics ``…-total``, ``batch-split-…``, ``buffer…`` and
``waiting-threads`` are those of Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from kafkacore.clock import Clock
from kafkacore.metrics import Metrics
from kafkacore.producer._batch import ProducerBatch
from kafkacore.producer._batch_counter import BatchCounter, TopicSensors
from kafkacore.producer._buffer_pool import BufferPool


class SenderMetrics(Protocol):
    """Events that the Sender reports on the network thread."""

    def sent(self, batches: Sequence[ProducerBatch], now_ms: float) -> None:
        """Count a request with ``batches`` that is about to be sent."""

    def acknowledged(self, batch: ProducerBatch) -> None:
        """Count a batch that was acknowledged, or sent with ``acks=0``."""

    def retried(self, batch: ProducerBatch) -> None:
        """Count a batch that is going to be retried."""

    def split(self, batch: ProducerBatch) -> None:
        """Count a batch that is split in two because it is too large for the broker."""

    def failed(self, batch: ProducerBatch) -> None:
        """Count a batch that has failed."""


class NoSenderMetrics:
    """Implementation of ``SenderMetrics`` that counts nothing."""

    def sent(self, batches: Sequence[ProducerBatch], now_ms: float) -> None: ...
    def acknowledged(self, batch: ProducerBatch) -> None: ...
    def retried(self, batch: ProducerBatch) -> None: ...
    def split(self, batch: ProducerBatch) -> None: ...
    def failed(self, batch: ProducerBatch) -> None: ...


class ProducerMetrics:
    """The metrics of one producer, in total and per topic.

    Parameters
    ----------
    metrics:
        Registry of the metrics.
    clock:
        Source of the time of events that the Sender reports without a time.
    pool:
        The producer's buffer memory.
    incomplete:
        Batches that are neither acknowledged nor failed.
    metadata_age_ms:
        Function that takes a monotonic time in milliseconds, and returns the age of the metadata at that
        time, also in milliseconds.
    prefix:
        Start of the name of each metric group.

    Attributes
    ----------
    batches:
        Counts the events that the Sender reports.
    """

    def __init__(
        self,
        metrics: Metrics,
        clock: Clock,
        pool: BufferPool,
        incomplete: Collection[object],
        metadata_age_ms: Callable[[float], float],
        prefix: str = "producer",
    ) -> None:
        sensor = metrics.sensor
        self._metrics = metrics
        self._prefix = prefix
        self._group = f"{prefix}-metrics"
        self._batch_size = sensor("batch-size")
        self._compression = sensor("compression-rate")
        self._retries = sensor("record-retries")
        self._errors = sensor("errors")
        self.batches = BatchCounter(
            self._register_topic,
            clock,
            pool,
            request_records=sensor("records-per-request"),
            queue_time=sensor("queue-time"),
            record_size=sensor("record-size"),
            splits=sensor("batch-split"),
            pool_wait=sensor("bufferpool-wait-time"),
        )
        self._register_batches()
        self._register_records()
        self._register_state(pool, incomplete, metadata_age_ms)

    def _register_batches(self) -> None:
        sensor = self._metrics.sensor
        size, queued, largest = self._batch_size, sensor("queue-time"), sensor("record-size")
        splits = sensor("batch-split")
        for name, description, measure in (
            ("batch-size-avg", "Average size of a sent batch, in bytes.", size.average),
            ("batch-size-max", "Size of the largest sent batch, in bytes.", size.largest),
            ("byte-rate", "Bytes of batches sent per second.", size.rate),
            ("byte-total", "Total bytes of sent batches.", size.sum),
            ("compression-rate-avg", "Average of compressed size divided by uncompressed size of batches.",
             self._compression.average),
            ("record-queue-time-avg", "Average time that a batch waited to be sent, in milliseconds.",
             queued.average),
            ("record-queue-time-max", "Longest time that a batch waited to be sent, in milliseconds.",
             queued.largest),
            ("record-size-avg", "Average size of the largest record of a batch, in bytes.", largest.average),
            ("record-size-max", "Size of the largest record, in bytes.", largest.largest),
            ("batch-split-rate", "Batches split per second because they were too large for the broker.",
             splits.occurrence_rate),
            ("batch-split-total", "Total batches split because they were too large for the broker.",
             splits.occurrences),
        ):  # fmt: skip
            self._metrics.add(name, self._group, description, measure)

    def _register_records(self) -> None:
        batches = self.batches
        records, retries, errors = self._metrics.sensor("records-per-request"), self._retries, self._errors
        for name, description, measure in (
            ("record-send-rate", "Records sent per second.", records.rate),
            ("record-send-total", "Total records sent.", records.sum),
            ("records-per-request-avg", "Average number of records in a request.", records.average),
            ("record-retry-rate", "Records retried per second.", retries.rate),
            ("record-retry-total", "Total records retried.", retries.sum),
            ("record-error-rate", "Records that failed per second.", errors.rate),
            ("record-error-total", "Total records that failed.", errors.sum),
            (
                "record-acknowledged-total",
                "Total records acknowledged.",
                lambda now_ms: batches.acknowledged_count,
            ),
        ):
            self._metrics.add(name, self._group, description, measure)

    def _register_state(
        self, pool: BufferPool, incomplete: Collection[object], metadata_age_ms: Callable[[float], float]
    ) -> None:
        waits = self._metrics.sensor("bufferpool-wait-time")
        for name, description, measure in (
            ("buffer-total-bytes", "Size of the buffer memory in bytes, as set by buffer_memory.",
             lambda now_ms: pool.total_bytes),
            ("buffer-available-bytes", "Free bytes of the buffer memory.",
             lambda now_ms: pool.available_bytes),
            ("waiting-threads", "Threads that are waiting for buffer memory.", lambda now_ms: pool.queued),
            ("bufferpool-wait-ratio", "Fraction of time that threads waited for buffer memory.",
             lambda now_ms: waits.rate(now_ms) / 1000.0),
            ("bufferpool-wait-time-ns-total",
             "Total time that threads have waited for buffer memory, in nanoseconds.",
             lambda now_ms: pool.waited_ms * 1e6),
            ("batches-incomplete", "Batches that are neither acknowledged nor failed.",
             lambda now_ms: len(incomplete)),
            ("metadata-age", "Seconds since the metadata of the cluster was last updated.",
             lambda now_ms: metadata_age_ms(now_ms) / 1000.0),
        ):  # fmt: skip
            self._metrics.add(name, self._group, description, measure)

    def _register_topic(self, topic: str) -> TopicSensors:
        sensor = self._metrics.sensor
        group = f"{self._prefix}-topic-metrics.{topic}"
        found = TopicSensors(
            sensor(f"topic.{topic}.records-per-batch"),
            sensor(f"topic.{topic}.bytes", (self._batch_size,)),
            sensor(f"topic.{topic}.compression-rate", (self._compression,)),
            sensor(f"topic.{topic}.record-retries", (self._retries,)),
            sensor(f"topic.{topic}.record-errors", (self._errors,)),
        )
        for name, description, measure in (
            ("record-send-rate", "Records sent per second", found.records.rate),
            ("record-send-total", "Total records sent", found.records.sum),
            ("byte-rate", "Bytes of batches sent per second", found.size.rate),
            ("byte-total", "Total bytes of batches sent", found.size.sum),
            ("compression-rate", "Average of compressed size divided by uncompressed size of batches",
             found.compression.average),
            ("record-retry-rate", "Records retried per second", found.retries.rate),
            ("record-retry-total", "Total records retried", found.retries.sum),
            ("record-error-rate", "Records that failed per second", found.errors.rate),
            ("record-error-total", "Total records that failed", found.errors.sum),
        ):  # fmt: skip
            self._metrics.add(name, group, f"{description}, for topic {topic}.", measure)
        return found
