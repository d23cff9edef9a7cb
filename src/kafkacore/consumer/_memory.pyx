# cython: auto_pickle=False, autotestdict=False
"""Memory of fetch responses, and the rule by which records release it.

A response stays in memory as long as one of its records refers to it. The remaining records of a response may
keep up to four times their own size in memory. If they keep more, a poll detaches the records of earlier
polls, that is, it copies their bytes. Records of the last poll are not detached.
"""

cimport cython
from cpython.object cimport PyObject

from kafkacore.record._batch cimport RecordBatch
from kafkacore.wire.memory cimport free, malloc

cdef enum:
    # Maximum number of bytes that a record keeps in memory, per byte of the record.
    PIN_RATIO = 4
    # Assumed minimum size of a response. Small responses share a read buffer, and each response may keep the
    # whole buffer alive.
    SMALLEST_MEMORY = 64 * 1024
    # A response counts as old after this many polls have checked it. Old responses are checked less often.
    LOOKS_WHILE_YOUNG = 3
    # Average number of RecordOrigins of old responses that one poll may check.
    ORIGINS_PER_POLL = 16


# The garbage collector does not track this class: an origin refers only to a batch and its bytes, so it
# cannot be part of a reference cycle.
@cython.final
@cython.no_gc
cdef class RecordOrigin:
    """The common fields of all records of a batch that one poll returned. An origin keeps its batch alive."""

    def __dealloc__(self):
        free(self.records)
        if self.memory is None:
            return
        self.memory.origins -= 1
        if self.previous != NULL:
            (<RecordOrigin> self.previous).next = self.next
        else:
            self.memory.first = self.next
        if self.next != NULL:
            (<RecordOrigin> self.next).previous = self.previous

    cdef RecordOrigin without_bytes(self):
        """Return an origin without a batch, for records that have copied their bytes."""
        if self.bare is None:
            self.bare = RecordOrigin.__new__(RecordOrigin)
            self.bare.topic = self.topic
            self.bare.partition = self.partition
            self.bare.leader_epoch = self.leader_epoch
            self.bare.timestamp_type = self.timestamp_type
        return self.bare


cdef RecordOrigin new_origin(object topic, int partition, RecordBatch batch, FetchMemory memory,
                             Py_ssize_t capacity):
    """Return a new :class:`RecordOrigin` for up to ``capacity`` records of ``batch``."""
    cdef RecordOrigin origin = RecordOrigin.__new__(RecordOrigin)
    origin.topic = topic
    origin.partition = partition
    origin.leader_epoch = batch.partition_leader_epoch
    origin.timestamp_type = batch.timestamp_type
    origin.batch = batch
    origin.records = <PyObject **> malloc(capacity * sizeof(PyObject *))
    if origin.records == NULL:
        raise MemoryError()
    memory.add(origin)
    return origin


@cython.final
cdef class FetchMemory:
    """The memory of one response, with the origins of the records that keep it alive.

    Parameters
    ----------
    ledger
        Ledger of all responses of the consumer.
    """

    def __init__(self, PinLedger ledger not None):
        self.ledger = ledger

    def add_part(self, Py_ssize_t size_in_bytes):
        """Add the size of the records of one partition, which have not been returned yet."""
        self.size_in_bytes += size_in_bytes
        self.waiting_parts += 1

    def part_is_done(self):
        """Record that one partition has been read: from now on, only returned records keep its bytes."""
        self.waiting_parts -= 1

    @property
    def is_pinned(self):
        """Whether a record still refers to bytes of the response."""
        return self.first != NULL

    cdef int add(self, RecordOrigin origin) except -1:
        if not self.is_listed:
            self.ledger._young.append(self)
            self.is_listed = True
        origin.memory = self
        origin.poll = self.ledger.poll
        origin.next = self.first
        if self.first != NULL:
            (<RecordOrigin> self.first).previous = <PyObject *> origin
        self.first = <PyObject *> origin
        self.origins += 1
        return 0

    cdef int detach_if_few(self) except -1:
        """Detach the records of earlier polls if they are small compared to the memory they keep alive."""
        cdef Py_ssize_t pinned = max(self.size_in_bytes, <Py_ssize_t> SMALLEST_MEMORY)
        cdef Py_ssize_t live = 0
        cdef RecordOrigin origin
        cdef PyObject *at = self.first
        cdef Py_ssize_t index
        cdef list origins = []
        if self.waiting_parts > 0:
            # Do not detach yet: records that have not been returned keep the response in memory anyway.
            return 0
        while at != NULL:
            origin = <RecordOrigin> at
            if origin.live > 0:
                live += origin.span // origin.count * origin.live
                if origin.batch.records is not origin.batch.source:
                    pinned += origin.batch.records.size
                if origin.poll < self.ledger.poll - 1:
                    origins.append(origin)
            at = origin.next
        if live * PIN_RATIO >= pinned:
            return 0
        for origin in origins:
            for index in range(origin.count):
                if origin.records[index] != NULL:
                    (<object> origin.records[index]).detach()
        return 0


@cython.final
cdef class PinLedger:
    """The responses that records keep alive. Each poll releases the responses with few remaining records."""

    def __cinit__(self):
        self._young = []
        self._old = []

    def __len__(self):
        """Return the number of responses that records keep alive."""
        return sum(1 for memory in self._young + self._old if memory.is_pinned)

    def begin_poll(self):
        """Start a poll: detach records of earlier polls from responses with few records left."""
        cdef FetchMemory memory
        self.poll += 1
        self._polls_since_old += 1
        if self._old and self._polls_since_old * ORIGINS_PER_POLL >= self._old_origins:
            # Old responses are checked so rarely that each poll has little work, no matter how many records
            # the application keeps.
            self._young += self._old
            self._old = []
            self._polls_since_old = self._old_origins = 0
        young, self._young = self._young, []
        for memory in young:
            memory.detach_if_few()
            if not memory.is_pinned:
                memory.is_listed = False
            elif memory.looks < LOOKS_WHILE_YOUNG:
                memory.looks += 1
                self._young.append(memory)
            else:
                self._old.append(memory)
                self._old_origins += memory.origins
