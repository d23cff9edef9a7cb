"""The batches of one partition that wait to be sent: records in at the back, batches out at the front.

What is retried is put back where it stood. Any thread may append, one thread (the sender's) takes. Does not
know: when a batch is ready, the other partitions.
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
    """Queue of one partition.

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

    # ---- Taking turns --------------------------------------------------------------------------------------
    # The GIL is the lock: what happens here under it runs no Python code of anyone else's, and releases it
    # nowhere. Only columns are encoded without the GIL, and whoever comes meanwhile waits here.

    cdef int begin_filling(self) except -1:
        """Keep everyone else out until `end_filling`, also while the GIL is released."""
        self._await_filling()
        # One that waited may hold the lock for a moment still, to pass.
        while not PyThread_acquire_lock(self._lock, NOWAIT_LOCK):
            self._pass()
            self._await_filling()
        self._is_filling = True
        return 0

    cdef int end_filling(self) except -1:
        self._is_filling = False
        PyThread_release_lock(self._lock)
        return 0

    cdef int _await_filling(self) except -1:
        while self._is_filling:
            self._pass()
        return 0

    cdef void _pass(self) noexcept:
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
        """Append to the open batch if another thread has just made one, else to ``batch``: whether that was
        used.
        """
        if self._is_filling:
            self._await_filling()
        if self._open is not None and self._open.try_append(future, record):
            return False
        if not batch.try_append(future, record):
            # The first record of a batch always fits; so it has been failed, by a close that did not wait.
            raise IllegalStateError("KafkaProducer is closed")
        self.add(batch)
        return True

    cdef int add(self, ProducerBatch batch) except -1:
        """Put a new batch at the end; what was open takes no more records."""
        batch.place = self._next_place
        self._next_place += 1
        self._batches.append(batch)
        self._open = batch
        return 0

    def close_open(self):
        """What is open takes no more records."""
        self._open = None

    @property
    def head(self):
        """The oldest batch, the next to be sent; ``None`` if there is none."""
        # Safe because of the GIL: another thread only appends behind it.
        return self._batches[0] if self._batches else None

    @property
    def is_head_full(self):
        """Whether the oldest batch takes no more records."""
        head = self.head
        return head is not None and (head is not self._open or head.is_full)

    def __len__(self):
        return len(self._batches)

    def pop(self):
        """Take the oldest batch, which is closed for records by it."""
        if self._is_filling:
            self._await_filling()
        batch = self._batches.popleft()
        if self._open is batch:
            self._open = None
        return batch

    def put_back(self, ProducerBatch batch not None):
        """Put a batch that has been taken before in its old place: before all that were made after it."""
        cdef int at = 0
        if self._is_filling:
            self._await_filling()
        # By number: an iterator is one of the objects that the garbage collector tracks.
        while at < len(self._batches) and (<ProducerBatch?>self._batches[at]).place < batch.place:
            at += 1
        self._batches.insert(at, batch)
