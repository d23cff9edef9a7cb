"""The compiled ``KafkaProducer.send``, which an application calls for each record.

For a plain record of a known topic, the call consists of a single append.
"""

cimport cython

from kafkacore.producer._future cimport FutureRecordMetadata
from kafkacore.producer._record_appender cimport RecordAppender


@cython.final
cdef class RecordSender:
    """Appends a record directly if possible, and passes it to the preparer otherwise.

    Parameters
    ----------
    records
        Appends records to the batches of known topics.
    preparer
        Its ``send`` handles records that Python code has to process, and its ``send_to_unknown`` records of
        unknown topics.
    is_plain
        Whether no Python code has to process the records.
    owner
        Object that is kept alive as long as a program refers to ``send``.
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

    # Without binding, this is a plain built-in method, which the interpreter calls without a bound-method
    # object.
    @cython.binding(False)
    @cython.embedsignature(True)
    @cython.embedsignature.format("clinic")
    def send(self, topic, value=None, key=None, headers=None, partition=None, timestamp_ms=None):
        """Send a record: see :meth:`kafkacore.KafkaProducer.send`."""
        cdef FutureRecordMetadata future
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
