"""``KafkaProducer.send``, the method that an application calls once per record.

For a record of a known topic, all that is left of the call is one append.
"""

cimport cython

from kafkacore.producer._future cimport FutureRecordMetadata
from kafkacore.producer._record_appender cimport RecordAppender


@cython.final
cdef class RecordSender:
    """Append a record at once if that is possible, else have it prepared.

    Parameters
    ----------
    records
        Appends records to the batches of known topics.
    preparer
        Its ``send`` takes the records that Python code has to see; ``send_to_unknown`` those of a topic that
        is not known.
    is_plain
        Whether no Python code has to see the records.
    owner
        Lives as long as this object, and so as long as a program has its ``send``.
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

    # A plain built-in method, which the interpreter calls without an object in between.
    @cython.binding(False)
    @cython.embedsignature(True)
    @cython.embedsignature.format("clinic")
    def send(self, topic, value=None, key=None, headers=None, partition=None, timestamp_ms=None):
        """Publish a record, as :meth:`kafkacore.KafkaProducer.send` describes it."""
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
