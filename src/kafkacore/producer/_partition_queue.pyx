"""The batches of one partition that wait to be sent.

Any thread may append records. Only the sender removes batches. The sender also puts back batches that must be
retried, in their original order.
"""

cimport cython
from cpython.pythread cimport (
    NOWAIT_LOCK, WAIT_LOCK, PyThread_acquire_lock, PyThread_allocate_lock, PyThread_free_lock,
    PyThread_release_lock,
)

from kafkacore.producer._batch cimport ProducerBatch, SerializedRecord
from kafkacore.producer._future cimport FutureRecordMetadata

from collections import deque

from kafkacore.errors import IllegalStateError


@cython.final
cdef class PartitionQueue:
    """The queue of one partition.

    Parameters
    ----------
    topic_partition
        The partition.
    """

    def __cinit__(self, topic_partition):
        self._lock = PyThread_allocate_lock()
        if self._lock is NULL:
            raise MemoryError()

    def __init__(self, topic_partition):
        self.topic_partition = topic_partition
        self._batches = deque()

    def __dealloc__(self):
        if self._lock is not NULL:
            PyThread_free_lock(self._lock)

    # ---- Mutual exclusion ----------------------------------------------------------------------------------
    # The GIL protects the queue: the methods below run no foreign Python code and do not release the GIL.
    # Columns are an exception, because they are encoded without the GIL. Other threads that need the queue in
    # the meantime wait in `_await_filling`.

    cdef int begin_filling(self) except -1:
        """Keep other threads from using the queue until ``end_filling``, even while the GIL is released."""
        self._await_filling()
        # Try again, because another thread that has just waited may hold the lock for a moment.
        while not PyThread_acquire_lock(self._lock, NOWAIT_LOCK):
            self._wait_for_lock()
            self._await_filling()
        self._is_filling = True
        return 0

    cdef int end_filling(self) except -1:
        self._is_filling = False
        PyThread_release_lock(self._lock)
        return 0

    cdef int _await_filling(self) except -1:
        while self._is_filling:
            self._wait_for_lock()
        return 0

    cdef void _wait_for_lock(self) noexcept:
        with nogil:
            PyThread_acquire_lock(self._lock, WAIT_LOCK)
            PyThread_release_lock(self._lock)

    # ---- Records -------------------------------------------------------------------------------------------

    cdef bint try_append(self, FutureRecordMetadata future, const SerializedRecord* record) except -1:
        if self._is_filling:
            self._await_filling()
        if self._open is None:
            return False
        if self._open.try_append(future, record):
            return True
        if not self._open.may_grow():
            self._open = None
        return False

    cdef bint append_new(self, ProducerBatch batch, FutureRecordMetadata future,
                         const SerializedRecord* record) except -1:
        """Append a record to ``batch``, or to a batch that another thread has just opened.

        Return whether ``batch`` was used.
        """
        if self._is_filling:
            self._await_filling()
        if self._open is not None and self._open.try_append(future, record):
            return False
        if not batch.try_append(future, record):
            # The first record of a batch always fits. Therefore the batch must have failed, because close()
            # was called without waiting.
            raise IllegalStateError("KafkaProducer is closed")
        self.add(batch)
        return True

    cdef int add(self, ProducerBatch batch) except -1:
        """Add a new batch at the end. The batch that was open until now accepts no more records."""
        batch.place = self._next_place
        self._next_place += 1
        self._batches.append(batch)
        self._open = batch
        return 0

    def close_open(self):
        """Append no further records to the open batch."""
        self._open = None

    @property
    def head(self):
        """The oldest batch, which is sent next, or ``None``."""
        # This needs no lock besides the GIL, because other threads only append at the end.
        return self._batches[0] if self._batches else None

    @property
    def is_head_full(self):
        """Whether the oldest batch accepts no more records."""
        head = self.head
        return head is not None and (head is not self._open or head.is_full)

    def __len__(self):
        return len(self._batches)

    def pop(self):
        """Remove and return the oldest batch, which then accepts no more records."""
        if self._is_filling:
            self._await_filling()
        batch = self._batches.popleft()
        if self._open is batch:
            self._open = None
        return batch

    def put_back(self, ProducerBatch batch not None):
        """Put a removed batch back, in front of all batches that were created after it."""
        cdef int at = 0
        if self._is_filling:
            self._await_filling()
        # Use an index, because creating an iterator could start the garbage collector.
        while at < len(self._batches) and (<ProducerBatch?>self._batches[at]).place < batch.place:
            at += 1
        self._batches.insert(at, batch)
