"""KafkaChannel for Cython callers."""

from kafkacore.network._native_heartbeat cimport NativeHeartbeat
from kafkacore.network._memory cimport MemoryPool
from kafkacore.network._receive cimport FrameReader, ReadBuffer
from kafkacore.network._send cimport NetworkSend
from kafkacore.network._transport cimport TransportLayer

cdef class KafkaChannel:
    cdef readonly str id
    cdef readonly object sock
    # The socket is connected; handshake and authentication may still be incomplete.
    cdef readonly bint is_connected
    # Frames can be sent: handshake and authentication, if any, are complete.
    cdef readonly bint is_ready
    cdef readonly bint is_muted
    cdef readonly bint is_closed
    cdef int fd
    # Events that the poller currently watches this channel for.
    cdef int interest
    # The last read stopped because the memory pool is exhausted.
    cdef bint is_starved
    # The channel is in ChannelSet.starved.
    cdef bint waits_for_memory
    # The socket accepted only part of the last write: wait until the socket is writable.
    cdef bint is_write_blocked
    # Bytes of a frame were written during the poller's wait. This activity is not yet recorded.
    cdef bint has_written_in_wait
    # Negative errno of a write that failed during a wait, or 0.
    cdef int failed_write
    # Previous and next channel in the list of IdleExpiry, which is ordered by last activity.
    cdef KafkaChannel idle_before
    cdef KafkaChannel idle_after
    cdef double last_active_ms
    cdef readonly TransportLayer transport
    # The object that authenticates the peer or this side (see ``security.authenticator``), or None.
    cdef readonly object authenticator
    # The authenticator's frame that is not yet completely written, or None.
    cdef NetworkSend auth_send
    # The handshake with a proxy that is not yet complete (``network.tunnel``), or None.
    cdef object tunnel
    cdef bint is_handshaken
    cdef bint has_been_ready
    # When the last reauthentication began (KIP-368).
    cdef double reauthentication_started_ms
    # The channel has received the first byte of its first frame, but not the whole frame in the same read.
    cdef bint has_begun
    # Authentication has failed; nothing more is read, and the channel is closed later (see DelayedCloses).
    cdef bint is_close_delayed
    # Latest deadline for authentication or the first frame (see SetupDeadlines).
    cdef double setup_due_ms
    # Events to watch for while the channel is not ready.
    cdef int setup_interest
    # Maximum bytes of a frame once the channel is ready.
    cdef Py_ssize_t max_size
    cdef FrameReader reader
    cdef NetworkSend pending_send
    # The heartbeat that writes its frames between the frames of the channel, or None.
    cdef NativeHeartbeat heartbeat

    cdef int wanted_interest(self) noexcept
    cdef int set_send(self, NetworkSend send) except -1
    cdef int write(self) except? -1
    cdef int write_some(self) noexcept nogil
    cdef bint is_mid_frame(self) noexcept nogil
    cdef bint continue_write(self) noexcept nogil
    cdef int read(self, ReadBuffer buffer, list frames) except? -1
    cdef bint attach_heartbeat(self, NativeHeartbeat heartbeat) except -1
    cdef int finish_connect(self) noexcept
    cdef int prepare(self, ReadBuffer buffer, list frames) except? -1
    cdef int authenticate(self, ReadBuffer buffer, list frames) except? -1
    cdef int receive_tokens(self, list received, list frames) except -1
    cdef int send_token(self, pieces) except? -1
    cdef bint must_reauthenticate(self, double now_ms) except -1
    cdef int reauthenticate(self, payload) except? -1
    cdef bint wants_buffered(self) noexcept
    cdef int close(self) except -1

cdef KafkaChannel new_channel(
    str channel_id, object sock, bint is_connected, Py_ssize_t max_size, MemoryPool pool, builder, str host)
