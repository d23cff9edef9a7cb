"""What the Sender reports of its work, batch by batch, and the metrics of a producer.

Names and meanings are kafka-python's; ``-total``, ``batch-split-…``,
``buffer…`` and ``waiting-threads`` are Apache Kafka's.
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
    """What the Sender calls on the network thread."""

    def sent(self, batches: Sequence[ProducerBatch], now_ms: float) -> None:
        """A request with ``batches`` is about to be sent."""

    def acknowledged(self, batch: ProducerBatch) -> None:
        """The records of ``batch`` are in the log, or nobody was to be asked (``acks=0``)."""

    def retried(self, batch: ProducerBatch) -> None:
        """``batch`` is to be sent again."""

    def split(self, batch: ProducerBatch) -> None:
        """``batch`` is too large for its broker, and its halves are to be sent."""

    def failed(self, batch: ProducerBatch) -> None:
        """The records of ``batch`` are given up."""


class NoSenderMetrics:
    """Counts nothing."""

    def sent(self, batches: Sequence[ProducerBatch], now_ms: float) -> None: ...
    def acknowledged(self, batch: ProducerBatch) -> None: ...
    def retried(self, batch: ProducerBatch) -> None: ...
    def split(self, batch: ProducerBatch) -> None: ...
    def failed(self, batch: ProducerBatch) -> None: ...


class ProducerMetrics:
    """Of one producer, all batches together and by topic.

    Parameters
    ----------
    metrics:
        Where they are registered.
    clock:
        When what the sender tells without a time has happened.
    pool:
        Whose memory the producer's records are in.
    incomplete:
        Batches whose outcome is open.
    metadata_age_ms:
        Monotonic milliseconds in; how old the metadata are then, out.
    prefix:
        Of the groups' names.

    Attributes
    ----------
    batches:
        Counts what the Sender reports.
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
            ("batch-size-avg", "Average bytes of a batch sent.", size.average),
            ("batch-size-max", "Bytes of the largest batch sent.", size.largest),
            ("byte-rate", "Bytes of batches sent per second.", size.rate),
            ("byte-total", "Bytes of batches sent.", size.sum),
            ("compression-rate-avg", "Average compressed size of a batch through its plain size.",
             self._compression.average),
            ("record-queue-time-avg", "Average ms that a batch waited to be sent.", queued.average),
            ("record-queue-time-max", "Longest ms that a batch waited to be sent.", queued.largest),
            ("record-size-avg", "Average over the batches of their largest record's bytes.", largest.average),
            ("record-size-max", "Bytes of the largest record.", largest.largest),
            ("batch-split-rate", "Batches too large for their broker per second.",
             splits.occurrence_rate),
            ("batch-split-total", "Batches too large for their broker.", splits.occurrences),
        ):  # fmt: skip
            self._metrics.add(name, self._group, description, measure)

    def _register_records(self) -> None:
        batches = self.batches
        records, retries, errors = self._metrics.sensor("records-per-request"), self._retries, self._errors
        for name, description, measure in (
            ("record-send-rate", "Records sent per second.", records.rate),
            ("record-send-total", "Records sent.", records.sum),
            ("records-per-request-avg", "Average number of records of a request.", records.average),
            ("record-retry-rate", "Records sent again per second.", retries.rate),
            ("record-retry-total", "Records sent again.", retries.sum),
            ("record-error-rate", "Records given up per second.", errors.rate),
            ("record-error-total", "Records given up.", errors.sum),
            (
                "record-acknowledged-total",
                "Records acknowledged.",
                lambda now_ms: batches.acknowledged_count,
            ),
        ):
            self._metrics.add(name, self._group, description, measure)

    def _register_state(
        self, pool: BufferPool, incomplete: Collection[object], metadata_age_ms: Callable[[float], float]
    ) -> None:
        waits = self._metrics.sensor("bufferpool-wait-time")
        for name, description, measure in (
            ("buffer-total-bytes", "buffer_memory.", lambda now_ms: pool.total_bytes),
            ("buffer-available-bytes", "Of that, bytes that are free.", lambda now_ms: pool.available_bytes),
            ("waiting-threads", "Threads that wait for memory.", lambda now_ms: pool.queued),
            ("bufferpool-wait-ratio", "Share of the time for which threads waited for memory.",
             lambda now_ms: waits.rate(now_ms) / 1000.0),
            ("bufferpool-wait-time-ns-total", "Nanoseconds that threads have waited for memory.",
             lambda now_ms: pool.waited_ms * 1e6),
            ("batches-incomplete", "Batches whose outcome is open.", lambda now_ms: len(incomplete)),
            ("metadata-age", "Seconds since the cluster's metadata came.",
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
            ("record-send-total", "Records sent", found.records.sum),
            ("byte-rate", "Bytes sent per second", found.size.rate),
            ("byte-total", "Bytes sent", found.size.sum),
            ("compression-rate", "Average compressed size through plain size",
             found.compression.average),
            ("record-retry-rate", "Records sent again per second", found.retries.rate),
            ("record-retry-total", "Records sent again", found.retries.sum),
            ("record-error-rate", "Records given up per second", found.errors.rate),
            ("record-error-total", "Records given up", found.errors.sum),
        ):  # fmt: skip
            self._metrics.add(name, group, f"{description}, of topic {topic}.", measure)
        return found
