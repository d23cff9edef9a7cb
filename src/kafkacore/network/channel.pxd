"""KafkaChannel for Cython callers."""

from kafkacore.network.heartbeat_line cimport HeartbeatLine
from kafkacore.network.memory cimport MemoryPool
from kafkacore.network.receive cimport FrameReader, ReadBuffer
from kafkacore.network.send cimport NetworkSend
from kafkacore.network.transport cimport TransportLayer

cdef class KafkaChannel:
    cdef readonly str id
    cdef readonly object sock
    cdef readonly bint is_connected
    cdef readonly bint is_muted
    cdef readonly bint is_closed
    cdef int fd
    # What the poller watches this channel for now.
    cdef int interest
    cdef bint is_starved
    # The last write did not take all: wait until the socket says that there is room.
    cdef bint waits_for_room
    # Some of it went out in a wait, since the channel was last seen active.
    cdef bint has_written_on
    # Negative errno with which a write in a wait has failed.
    cdef int failed_write
    # Its neighbours in the order of last activity, while it is in one (see IdleExpiry).
    cdef KafkaChannel idle_before
    cdef KafkaChannel idle_after
    cdef double last_active_ms
    cdef TransportLayer transport
    cdef FrameReader reader
    cdef NetworkSend pending_send
    # Writes frames of its own in between; None for most.
    cdef HeartbeatLine line

    cdef int wanted_interest(self) noexcept
    cdef int set_send(self, NetworkSend send) except -1
    cdef int write(self) except? -1
    cdef int write_some(self) noexcept nogil
    cdef bint is_mid_frame(self) noexcept nogil
    cdef bint write_on(self) noexcept nogil
    cdef int read(self, ReadBuffer buffer, list frames) except? -1
    cdef bint attach_line(self, HeartbeatLine line) except -1
    cdef int finish_connect(self) noexcept
    cdef int close(self) except -1

cdef KafkaChannel new_channel(
    str channel_id, object sock, bint is_connected, Py_ssize_t max_size, MemoryPool pool)
