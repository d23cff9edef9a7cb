"""Counts record batches in metric sensors, with one call per request."""

cimport cython

from kafkacore.metrics._sensor cimport Sensor
from kafkacore.producer._batch cimport ProducerBatch
from kafkacore.producer._buffer_pool cimport BufferPool


@cython.final
cdef class TopicSensors:
    """The sensors of one topic.

    Parameters
    ----------
    records, size, compression
        Sensors of the records, bytes and compression ratio of sent batches.
    retries, errors
        Sensors of the records that were retried, and of the records that failed.
    """

    cdef readonly Sensor records, size, compression, retries, errors

    def __init__(self, Sensor records not None, Sensor size not None, Sensor compression not None,
                 Sensor retries not None, Sensor errors not None):
        self.records = records
        self.size = size
        self.compression = compression
        self.retries = retries
        self.errors = errors


@cython.final
cdef class BatchCounter:
    """Counts the batches of one producer.

    Parameters
    ----------
    register_topic
        Function that is called at the first batch of a topic. It takes the name of the topic and returns the
        TopicSensors.
    clock
        Source of the time of events that the Sender reports without a time.
    pool
        The producer's buffer memory.
    request_records, queue_time, record_size, splits, pool_wait
        Sensors of the records per request, the milliseconds that a batch was queued, the bytes of a batch's
        largest record, split batches, and the milliseconds of waits for memory.

    Attributes
    ----------
    acknowledged_count
        Number of acknowledged records.
    """

    cdef object _register_topic
    cdef dict _topics
    cdef object _clock
    cdef BufferPool _pool
    cdef double _waited_ms
    cdef Sensor _request_records, _queue_time, _record_size, _splits, _pool_wait
    cdef readonly long long acknowledged_count

    def __init__(self, register_topic, clock, BufferPool pool not None, Sensor request_records not None,
                 Sensor queue_time not None, Sensor record_size not None, Sensor splits not None,
                 Sensor pool_wait not None):
        self._register_topic = register_topic
        self._topics = {}
        self._clock = clock
        self._pool = pool
        self._request_records = request_records
        self._queue_time = queue_time
        self._record_size = record_size
        self._splits = splits
        self._pool_wait = pool_wait

    cdef TopicSensors _topic(self, ProducerBatch batch):
        topic = batch.topic_partition[0]
        cdef TopicSensors found = self._topics.get(topic)
        if found is None:
            found = self._topics[topic] = self._register_topic(topic)
        return found

    def sent(self, batches, double now_ms):
        """Count a request with ``batches`` that is about to be sent."""
        cdef ProducerBatch batch
        cdef TopicSensors topic
        cdef double records = 0.0
        cdef double size
        for batch in batches:
            topic = self._topic(batch)
            size = len(batch.payload)
            records += batch.record_count
            topic.records.record(batch.record_count, now_ms)
            topic.size.record(size, now_ms)
            topic.compression.record(size / batch._size_unsealed, now_ms)
            self._queue_time.record(now_ms - batch.created_ms, now_ms)
            self._record_size.record(batch._sealed.max_record_size, now_ms)
        self._request_records.record(records, now_ms)
        if self._pool.waited_ms != self._waited_ms:
            self._pool_wait.record(self._pool.waited_ms - self._waited_ms, now_ms)
            self._waited_ms = self._pool.waited_ms

    def acknowledged(self, ProducerBatch batch not None):
        """Count a batch that was acknowledged, or sent with ``acks=0``."""
        self.acknowledged_count += batch.record_count

    def retried(self, ProducerBatch batch not None):
        """Count a batch that is going to be retried."""
        self._topic(batch).retries.record(batch.record_count, self._clock.monotonic_ms())

    def split(self, ProducerBatch batch not None):
        """Count a batch that is split in two because it is too large for the broker."""
        self._splits.record(1.0, self._clock.monotonic_ms())

    def failed(self, ProducerBatch batch not None):
        """Count a batch that has failed."""
        self._topic(batch).errors.record(batch.record_count, self._clock.monotonic_ms())
