"""``KafkaProducer.send``, the call that a Python loop makes per record: arguments in, a future out.

What is left of the call for a record of a known topic is one append. Does not know: serializers, the waiting
for a topic; that is the subclass's, in Python.
"""

cimport cython

from kafkacore.producer._record_appender cimport RecordAppender
from kafkacore.producer._future cimport FutureRecordMetadata

from kafkacore.errors import IllegalStateError
from kafkacore.wire.copying import refuse_copy


cdef class RecordSender:
    """What :class:`~kafkacore.KafkaProducer` is compiled of."""

    def _bind(self, RecordAppender appender not None, bint is_plain):
        """``is_plain``: neither serializers nor a partitioner of the user's have to see the records."""
        self._appender = appender
        self._is_plain = is_plain

    def __reduce__(self):
        refuse_copy(self, "its connections and threads belong to this process; make one in each process")

    def _send_slowly(self, topic, value, key, headers, partition, timestamp_ms):
        raise NotImplementedError

    def _send_to_unknown(self, topic, value, key, headers, partition, timestamp_ms):
        raise NotImplementedError

    # A plain built-in method, which the interpreter calls without an object in between.
    @cython.binding(False)
    @cython.embedsignature(True)
    @cython.embedsignature.format("clinic")
    def send(self, topic, value=None, key=None, headers=None, partition=None, timestamp_ms=None):
        """Publish a record; returns as soon as it has its place in a batch.

        Parameters
        ----------
        topic, partition:
            Where to. ``None`` for the partition lets the partitioner choose: by the key, or without one a
            partition for a batch's worth of records.
        value, key:
            Bytes-like, or what the serializers take. A record needs one of them; a ``None`` value deletes
            its key from a compacted topic.
        headers:
            Pairs of a name and bytes.
        timestamp_ms:
            Milliseconds since the epoch; ``None`` is now.

        Returns
        -------
        FutureRecordMetadata
            ``get(timeout=seconds)``, ``add_callback``, ``add_errback``. What the cluster says against the
            topic (:class:`InvalidTopicError`, :class:`TopicAuthorizationFailedError`) comes by it too.

        Raises
        ------
        KafkaTimeoutError
            Within ``max_block_ms`` the topic did not become known, or no memory became free.
        MessageSizeTooLargeError
            The record is larger than ``max_request_size``.
        TypeError, ValueError
            An argument that cannot be; a partition that the topic does not have.
        IllegalStateError
            The producer is closed, or belongs to the parent of this forked process; or it has a
            ``transactional_id`` and no transaction is open. One that has failed raises its own error.
        """
        cdef FutureRecordMetadata future
        if value is None and key is None:
            raise ValueError("a record needs a key or a value")
        if self._appender is None:
            raise IllegalStateError("KafkaProducer was not initialised")
        if not self._is_plain:
            return self._send_slowly(topic, value, key, headers, partition, timestamp_ms)
        future = self._appender.append_record(
            topic, value, key, headers, partition, timestamp_ms, self._appender._max_block_ms
        )
        if future is None:
            return self._send_to_unknown(topic, value, key, headers, partition, timestamp_ms)
        return future
