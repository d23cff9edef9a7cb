"""Frames out of a stream of bytes, for Cython callers."""

from libc.stdint cimport uint8_t

from kafkacore.network._memory cimport Chunk, MemoryPool
from kafkacore.network._transport cimport TransportLayer

cdef enum:
    # How reading ended, when not by the negative errno of the transport.
    DRAINED = 0   # There is nothing more to read now.
    MORE = 1      # The share of this turn is used up.
    ENDED = 2     # The peer has closed its side.
    STARVED = 3   # A frame waits for memory.

cdef class NetworkReceive:
    cdef readonly str source_id
    # Where the payload is; None when it was handed in.
    cdef Chunk chunk
    cdef Py_ssize_t at
    cdef Py_ssize_t size
    # The payload, once somebody has asked for it.
    cdef object view

cdef class ReadBuffer:
    cdef Chunk chunk
    cdef Py_ssize_t fill

    cdef Py_ssize_t room(self, MemoryPool pool) except -1

cdef class FrameReader:
    cdef readonly str source_id
    # Another one once its channel is ready.
    cdef readonly Py_ssize_t max_size
    cdef MemoryPool pool
    cdef uint8_t header[4]
    cdef int header_fill
    # The frame being read into memory of its own: `frame_fill` of `frame_size` bytes; None between frames.
    cdef Chunk frame
    cdef Py_ssize_t frame_size
    cdef Py_ssize_t frame_fill
    # How much of this frame was there when others began to wait for memory; -1 if it has begun since.
    cdef Py_ssize_t fill_then
    cdef bint is_waiting_for_memory
    cdef bint expects_large
    # A whole frame has come.
    cdef bint has_frames

    cdef int read_from(self, TransportLayer transport, ReadBuffer buffer, list frames) except? -1
    cdef bint is_amid_frame(self) noexcept nogil
    cdef bint has_memory(self) noexcept
    cdef int parse(self, Chunk chunk, Py_ssize_t at, Py_ssize_t size, list frames) except -1
    cdef int begin(self) except -1
    cdef int open_frame(self) except -1
    cdef int complete(self, list frames) except -1
    cdef int refuse(self) except -1
