"""KafkaChannel for Cython callers."""

from kafkacore.network._native_heartbeat cimport NativeHeartbeat
from kafkacore.network._memory cimport MemoryPool
from kafkacore.network._receive cimport FrameReader, ReadBuffer
from kafkacore.network._send cimport NetworkSend
from kafkacore.network._transport cimport TransportLayer

cdef class KafkaChannel:
    cdef readonly str id
    cdef readonly object sock
    # The socket is connected; what else must be before frames may flow is not yet done.
    cdef readonly bint is_connected
    # Frames may flow: handshake and authentication are over, if there are any.
    cdef readonly bint is_ready
    cdef readonly bint is_muted
    cdef readonly bint is_closed
    cdef int fd
    # What the poller watches this channel for now.
    cdef int interest
    cdef bint is_starved
    # It stands in the list of those (see ChannelSet), once.
    cdef bint waits_for_memory
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
    cdef readonly TransportLayer transport
    # Asks the peer who it is, or says who we are (``security.authenticator``); None if nobody asks.
    cdef readonly object authenticator
    # The authenticator's frame that is not yet written whole, or None.
    cdef NetworkSend auth_send
    cdef bint is_handshaken
    cdef bint has_been_ready
    # When the last reauthentication began (KIP-368).
    cdef double reauthentication_started_ms
    # The first byte of its first frame has arrived, but not all of that frame with it.
    cdef bint has_begun
    # Authentication has failed; nothing more is read, and the channel is closed later (see DelayedCloses).
    cdef bint is_close_delayed
    # When it is to be ready, the last time that it was not.
    cdef double setup_due_ms
    # What to wait for, while it is not ready.
    cdef int setup_interest
    # Bytes of a frame once it is ready.
    cdef Py_ssize_t max_size
    cdef FrameReader reader
    cdef NetworkSend pending_send
    # Writes frames of its own in between; None for most.
    cdef NativeHeartbeat heartbeat

    cdef int wanted_interest(self) noexcept
    cdef int set_send(self, NetworkSend send) except -1
    cdef int write(self) except? -1
    cdef int write_some(self) noexcept nogil
    cdef bint is_mid_frame(self) noexcept nogil
    cdef bint write_on(self) noexcept nogil
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
