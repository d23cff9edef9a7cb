# cython: auto_pickle=False, autotestdict=False
"""Who holds the memory of fetch responses: records in, and the rule by which they let go of it.

The memory of a response stays as long as one of its records refers to it. What the last poll gave is left
alone. Records that are held for longer may together pin four times their own bytes; if they are fewer, a poll
detaches them: copies them out. Does not know: what is in a record, batches' format.
"""

cimport cython
from cpython.object cimport PyObject

from kafkacore.record._batch cimport RecordBatch
from kafkacore.wire.memory cimport free, malloc

cdef enum:
    # Times their own bytes that records may pin.
    PIN_RATIO = 4
    # Small responses lie in a read buffer that several share; each may pin all of it.
    SMALLEST_MEMORY = 64 * 1024
    # Polls that look at a response before it counts as one that is kept for long.
    LOOKS_WHILE_YOUNG = 3
    # What a poll may spend, on average, on those that are.
    ORIGINS_PER_POLL = 16


# Untracked by the collector: it refers to a batch, and that to bytes; there is no way back.
@cython.final
@cython.no_gc
cdef class RecordOrigin:
    """What the records of one batch that one poll gave have in common; holds the batch for them."""

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
        """The same for records that have let go of their bytes."""
        if self.bare is None:
            self.bare = RecordOrigin.__new__(RecordOrigin)
            self.bare.topic = self.topic
            self.bare.partition = self.partition
            self.bare.leader_epoch = self.leader_epoch
            self.bare.timestamp_type = self.timestamp_type
        return self.bare


cdef RecordOrigin new_origin(object topic, int partition, RecordBatch batch, FetchMemory memory,
                             Py_ssize_t capacity):
    """The origin of up to ``capacity`` records of ``batch``."""
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
    """The memory of one response, by the records that hold it.

    Parameters
    ----------
    ledger
        Of the consumer.
    """

    def __init__(self, PinLedger ledger not None):
        self.ledger = ledger

    def add_part(self, Py_ssize_t size_in_bytes):
        """A partition's part of the response waits to be handed out."""
        self.size_in_bytes += size_in_bytes
        self.waiting_parts += 1

    def part_is_done(self):
        """All of a part has been handed out, or is not wanted; records alone hold it now."""
        self.waiting_parts -= 1

    @property
    def is_pinned(self):
        """Whether a record still holds bytes of it."""
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
        """Detach what is left of it, but for what the last poll gave, if that is little of what it pins."""
        cdef Py_ssize_t pinned = max(self.size_in_bytes, <Py_ssize_t> SMALLEST_MEMORY)
        cdef Py_ssize_t live = 0
        cdef RecordOrigin origin
        cdef PyObject *at = self.first
        cdef Py_ssize_t index
        cdef list origins = []
        if self.waiting_parts > 0:
            # Nothing would come free.
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
    """Which responses are held by records; lets go of those of which few are left."""

    def __cinit__(self):
        self._young = []
        self._old = []

    def __len__(self):
        """Responses that are held."""
        return sum(1 for memory in self._young + self._old if memory.is_pinned)

    def begin_poll(self):
        """A poll begins: what earlier ones gave is looked at."""
        cdef FetchMemory memory
        self.poll += 1
        self._polls_since_old += 1
        if self._old and self._polls_since_old * ORIGINS_PER_POLL >= self._old_origins:
            # So seldom that however much a user keeps, no poll has much to look at for it.
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
