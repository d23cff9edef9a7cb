"""The compiled ``KafkaProducer.send``, which an application calls for each record.

If the topic is known, and no Python code has to process the record, the call only appends the record.
"""

cimport cython

from kafkacore.producer._future cimport FutureRecordMetadata
from kafkacore.producer._record_appender cimport RecordAppender
from kafkacore.wire._trace cimport Stage, stamp


@cython.final
cdef class RecordSender:
    """Appends a record directly if possible, otherwise passes it to ``preparer``.

    Parameters
    ----------
    records
        RecordAppender, which appends records to the batches of known topics.
    preparer
        Object for the other records. Its method ``send`` handles records that Python code has to process. Its
        method ``send_to_unknown`` handles records of unknown topics.
    is_plain
        Whether records can be appended without being processed by Python code.
    owner
        Object that must stay alive as long as a program refers to ``send``.
    """

    cdef RecordAppender _records
    cdef object _preparer
    cdef bint _is_plain
    cdef object _owner

    def __init__(self, RecordAppender records not None, preparer, bint is_plain, owner=None):
        self._records = records
        self._preparer = preparer
        self._is_plain = is_plain
        self._owner = owner

    # binding(False) makes this a plain built-in method, which the interpreter calls without creating a
    # bound-method object.
    @cython.binding(False)
    @cython.embedsignature(True)
    @cython.embedsignature.format("clinic")
    def send(self, topic, value=None, key=None, headers=None, partition=None, timestamp_ms=None):
        """Send a record: see :meth:`kafkacore.KafkaProducer.send`."""
        cdef FutureRecordMetadata future
        stamp(Stage.SEND_CALLED, 0)
        if value is None and key is None:
            raise ValueError("a record needs a key or a value")
        if not self._is_plain:
            return self._preparer.send(topic, value, key, headers, partition, timestamp_ms)
        future = self._records.append_record(
            topic, value, key, headers, partition, timestamp_ms, self._records._max_block_ms
        )
        if future is None:
            return self._preparer.send_to_unknown(topic, value, key, headers, partition, timestamp_ms)
        return future
