"""What the Sender tells of its work, batch by batch, and what a producer's metrics make of it.

Does not know: records, requests. Names and meanings are kafka-python's; ``-total``, ``batch-split-…``,
``buffer…`` and ``waiting-threads`` are Apache Kafka's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from kafkacore.clock import Clock
from kafkacore.metrics import Metrics, Sensor
from kafkacore.producer.batch import ProducerBatch
from kafkacore.producer.buffer_pool import BufferPool


class SenderMetrics:
    """Called on the network thread; this one counts nothing."""

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


@dataclass(slots=True)
class _Topic:
    records: Sensor
    bytes: Sensor
    compression: Sensor
    retries: Sensor
    errors: Sensor


class ProducerMetrics(SenderMetrics):
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
        self._metrics = metrics
        self._prefix = prefix
        self._group = f"{prefix}-metrics"
        self._clock = clock
        self._pool = pool
        self._waited_ms = 0.0
        self._topics: dict[str, _Topic] = {}
        sensor = metrics.sensor
        self._batch_size = sensor("batch-size")
        self._compression = sensor("compression-rate")
        self._queue_time = sensor("queue-time")
        self._record_size = sensor("record-size")
        self._request_records = sensor("records-per-request")
        self._retries = sensor("record-retries")
        self._errors = sensor("errors")
        self._splits = sensor("batch-split")
        self._acknowledged = sensor("records-acknowledged")
        self._pool_wait = sensor("bufferpool-wait-time")
        self._register_batches()
        self._register_records()
        self._register_state(pool, incomplete, metadata_age_ms)

    def _register_batches(self) -> None:
        size, queued, largest = self._batch_size, self._queue_time, self._record_size
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
             self._splits.occurrence_rate),
            ("batch-split-total", "Batches too large for their broker.", self._splits.occurrences),
        ):  # fmt: skip
            self._metrics.add(name, self._group, description, measure)

    def _register_records(self) -> None:
        records, retries, errors = self._request_records, self._retries, self._errors
        for name, description, measure in (
            ("record-send-rate", "Records sent per second.", records.rate),
            ("record-send-total", "Records sent.", records.sum),
            ("records-per-request-avg", "Average number of records of a request.", records.average),
            ("record-retry-rate", "Records sent again per second.", retries.rate),
            ("record-retry-total", "Records sent again.", retries.sum),
            ("record-error-rate", "Records given up per second.", errors.rate),
            ("record-error-total", "Records given up.", errors.sum),
            ("record-acknowledged-total", "Records acknowledged.", self._acknowledged.sum),
        ):
            self._metrics.add(name, self._group, description, measure)

    def _register_state(
        self, pool: BufferPool, incomplete: Collection[object], metadata_age_ms: Callable[[float], float]
    ) -> None:
        waits = self._pool_wait
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

    def _topic(self, topic: str) -> _Topic:
        found = self._topics.get(topic)
        if found is None:
            sensor = self._metrics.sensor
            group = f"{self._prefix}-topic-metrics.{topic}"
            found = self._topics[topic] = _Topic(
                sensor(f"topic.{topic}.records-per-batch"),
                sensor(f"topic.{topic}.bytes", (self._batch_size,)),
                sensor(f"topic.{topic}.compression-rate", (self._compression,)),
                sensor(f"topic.{topic}.record-retries", (self._retries,)),
                sensor(f"topic.{topic}.record-errors", (self._errors,)),
            )
            for name, description, measure in (
                ("record-send-rate", "Records sent per second", found.records.rate),
                ("record-send-total", "Records sent", found.records.sum),
                ("byte-rate", "Bytes sent per second", found.bytes.rate),
                ("byte-total", "Bytes sent", found.bytes.sum),
                ("compression-rate", "Average compressed size through plain size",
                 found.compression.average),
                ("record-retry-rate", "Records sent again per second", found.retries.rate),
                ("record-retry-total", "Records sent again", found.retries.sum),
                ("record-error-rate", "Records given up per second", found.errors.rate),
                ("record-error-total", "Records given up", found.errors.sum),
            ):  # fmt: skip
                self._metrics.add(name, group, f"{description}, of topic {topic}.", measure)
        return found

    # ---- Of the sender -------------------------------------------------------------------------------------

    def sent(self, batches: Sequence[ProducerBatch], now_ms: float) -> None:
        records = 0
        for batch in batches:
            topic = self._topic(batch.topic_partition[0])
            size = batch.size_in_bytes
            count = batch.record_count
            records += count
            topic.records.record(count, now_ms)
            topic.bytes.record(size, now_ms)
            topic.compression.record(size / batch.plain_size_in_bytes, now_ms)
            self._queue_time.record(now_ms - batch.created_ms, now_ms)
            self._record_size.record(batch.max_record_size, now_ms)
        self._request_records.record(records, now_ms)
        waited_ms = self._pool.waited_ms
        if waited_ms != self._waited_ms:
            self._pool_wait.record(waited_ms - self._waited_ms, now_ms)
            self._waited_ms = waited_ms

    def acknowledged(self, batch: ProducerBatch) -> None:
        self._acknowledged.record(batch.record_count, self._clock.monotonic_ms())

    def retried(self, batch: ProducerBatch) -> None:
        topic = self._topic(batch.topic_partition[0])
        topic.retries.record(batch.record_count, self._clock.monotonic_ms())

    def split(self, batch: ProducerBatch) -> None:
        self._splits.record(1.0, self._clock.monotonic_ms())

    def failed(self, batch: ProducerBatch) -> None:
        topic = self._topic(batch.topic_partition[0])
        topic.errors.record(batch.record_count, self._clock.monotonic_ms())
