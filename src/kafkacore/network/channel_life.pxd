"""ChannelLife for Cython callers."""

from kafkacore.network.channel cimport KafkaChannel
from kafkacore.network.channel_set cimport ChannelSet
from kafkacore.network.memory cimport MemoryPool
from kafkacore.network.poller cimport Poller
from kafkacore.network.receive cimport ReadBuffer

cdef class ChannelLife:
    cdef readonly list connected
    cdef readonly list completed_receives
    cdef readonly Poller poller
    cdef object clock
    cdef Py_ssize_t max_receive_size
    cdef double setup_timeout_ms
    cdef MemoryPool memory_pool
    cdef ReadBuffer read_buffer
    cdef ChannelSet channels
    # Channels with a new frame, which the next poll tries to write before it waits.
    cdef list unwritten
    # Channels with something to read that their sockets will not tell of.
    cdef list buffered
    # (when, channel): to be ready by then; in the order of time.
    cdef object deadlines
    # (when, channel, why): to be closed then, after the authenticator's last word.
    cdef object doomed
    cdef dict failed
    # Told of each authentication: whether the channel had been authenticated before, whether this one has
    # succeeded, how long it took if it had, the time. None: nobody is told.
    cdef public object on_authenticated
    # What is no Exception, out of an engine or a mechanism: raised at the end of the poll. Or None.
    cdef object interrupt

    cdef int add(self, str connection_id, sock, bint is_connected, builder, str host) except -1
    cdef int on_connected(self, KafkaChannel channel) except -1
    cdef int prepare(self, KafkaChannel channel) except -1
    cdef int on_ready(self, KafkaChannel channel) except -1
    cdef int tell_authenticated(self, KafkaChannel channel, bint is_again, bint is_success) except -1
    cdef int set_deadline(self, KafkaChannel channel, double now_ms) except -1
    cdef int begin_again(self, KafkaChannel channel, payload) except -1
    cdef int end_failed(self, KafkaChannel channel, error) except -1
    cdef int doom(self, KafkaChannel channel, error) except -1
    cdef int note_buffered(self, KafkaChannel channel) except -1
    cdef double wait_ms(self, double timeout_ms) except -1
    cdef int look_after(self, double now_ms) except -1
    cdef int end_doomed(self, double now_ms) except -1
    cdef int end_slow(self, double now_ms) except -1
    cdef int end_if_slow(self, KafkaChannel channel) except -1
    cdef int end_idle(self, double now_ms) except -1
    cdef int fail(self, KafkaChannel channel, int error) except -1
    cdef int end(self, KafkaChannel channel, phase, str reason, error) except -1
