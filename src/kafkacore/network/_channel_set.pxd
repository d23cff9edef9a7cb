"""ChannelSet for Cython callers."""

from cpython.ref cimport PyObject

from kafkacore.network._channel cimport KafkaChannel
from kafkacore.network._native_heartbeat cimport NativeHeartbeat
from kafkacore.network._idle cimport IdleExpiry
from kafkacore.network._memory cimport MemoryPool
from kafkacore.network._poller cimport Poller

cdef class ChannelSet:
    cdef readonly Poller poller
    # None if channels do not expire.
    cdef IdleExpiry idle
    # Owns the channels.
    cdef dict by_id
    # File descriptor -> KafkaChannel or NULL. The references are borrowed from by_id.
    cdef PyObject **borrowed
    cdef int borrowed_size
    # Channels that wait for memory for a frame.
    cdef list starved
    # When progress was last recorded; negative if no channel waits for memory.
    cdef double starved_since_ms
    # Why the channel that next_expired() returned last must be closed.
    cdef str expiry_reason
    cdef object expiry_error
    # The process that created the set, and its fork generation.
    cdef int pid
    cdef int fork_generation

    cdef int check_usable(self) except -1
    cdef KafkaChannel get(self, str channel_id)
    cdef KafkaChannel at_fd(self, int fd)
    cdef int check_unused(self, str channel_id) except -1
    cdef KafkaChannel release_heartbeat(self, NativeHeartbeat heartbeat, KafkaChannel keeper)
    cdef int reserve_slot(self, int fd) except -1
    cdef int add(self, KafkaChannel channel, double now_ms) except -1
    cdef int drop(self, KafkaChannel channel) except -1
    cdef int update_interest(self, KafkaChannel channel) except -1
    cdef int wait_for_memory(self, KafkaChannel channel) except -1
    cdef int resume_starved(self, MemoryPool pool, list buffered) except -1
    cdef int touch(self, KafkaChannel channel, double now_ms) except -1
    cdef KafkaChannel next_expired(self, double now_ms)
    cdef KafkaChannel next_idle(self, double now_ms)
    cdef KafkaChannel next_stalled(self, double now_ms)
    cdef int record_progress(self, double now_ms) except -1
    cdef int close_all(self) except -1

cdef bint continue_write(void *channels, int fd, int ready) noexcept nogil
