"""NetworkReceive, ReadBuffer and FrameReader for Cython callers."""

from libc.stdint cimport uint8_t

from kafkacore.network._memory cimport Chunk, MemoryPool
from kafkacore.network._transport cimport TransportLayer

cdef enum:
    # Results of a read, besides the negative errno of the transport.
    DRAINED = 0   # The socket has no more data now.
    MORE = 1      # The channel has used up its share of this poll.
    ENDED = 2     # The peer has closed the connection.
    STARVED = 3   # A frame waits for memory.

cdef class NetworkReceive:
    cdef readonly str source_id
    # Memory that contains the payload; None if the constructor got a view.
    cdef Chunk chunk
    cdef Py_ssize_t at
    cdef Py_ssize_t size
    # The payload, once it has been accessed.
    cdef object view

cdef class ReadBuffer:
    cdef Chunk chunk
    cdef Py_ssize_t fill

    cdef Py_ssize_t reserve_space(self, MemoryPool pool) except -1

cdef class FrameReader:
    cdef readonly str source_id
    # Maximum bytes of a frame. The limit changes when the channel becomes ready.
    cdef readonly Py_ssize_t max_size
    cdef MemoryPool pool
    cdef uint8_t header[4]
    cdef int header_fill
    # Memory of an incomplete frame, of which `frame_fill` of `frame_size` bytes have been received; None if
    # the current frame has no memory of its own.
    cdef Chunk frame
    cdef Py_ssize_t frame_size
    cdef Py_ssize_t frame_fill
    # `frame_fill` at the last progress check (see ChannelSet.record_progress); -1 if the frame began after
    # the check.
    cdef Py_ssize_t checked_fill
    cdef bint is_waiting_for_memory
    cdef bint expects_large
    # Whether at least one frame has been completely received.
    cdef bint has_frames

    cdef int read_from(self, TransportLayer transport, ReadBuffer buffer, list frames) except? -1
    cdef bint has_partial_frame(self) noexcept nogil
    cdef bint has_memory(self) noexcept
    cdef int parse(self, Chunk chunk, Py_ssize_t at, Py_ssize_t size, list frames) except -1
    cdef int begin(self) except -1
    cdef int open_frame(self) except -1
    cdef int complete(self, list frames) except -1
    cdef int reject_size(self) except -1
