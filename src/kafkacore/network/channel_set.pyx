"""The open channels of a Selector, by id and by descriptor, and what the poller watches each for.

Does not know: frames, polls, why a channel is closed.
"""

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.ref cimport PyObject
from posix.unistd cimport getpid

cimport kafkacore.network.poller as poller_functions
from kafkacore.network.channel cimport KafkaChannel
from kafkacore.network.heartbeat_line cimport HeartbeatLine
from kafkacore.network.idle cimport IdleExpiry
from kafkacore.network.memory cimport MemoryPool
from kafkacore.network.poller cimport KC_WRITE, EventTaker, Poller

from kafkacore.errors import IllegalStateError


@cython.final
cdef class ChannelSet(EventTaker):
    """Owned by one Selector.

    Parameters
    ----------
    poller:
        Closed with the set.
    idle:
        Told of channels that come and go; ``None`` when nothing expires.
    """

    def __cinit__(self, Poller poller not None, IdleExpiry idle=None):
        self.poller = poller
        self.idle = idle
        self.by_id = {}
        self.starved = []
        self.pid = getpid()
        self.fork_generation = poller_functions.fork_generation()

    def __dealloc__(self):
        PyMem_Free(self.borrowed)

    def __len__(self):
        return len(self.by_id)

    cdef int check_usable(self) except -1:
        """Refuse a forked child, which has the same sockets, and use after the end."""
        if poller_functions.fork_generation() != self.fork_generation:
            raise IllegalStateError(
                f"these connections belong to process {self.pid}; its forked child {getpid()} would mix its "
                "bytes with the parent's. Make a new client after the fork"
            )
        if self.poller.handle == NULL:
            raise IllegalStateError("the Selector is closed")
        return 0

    cdef int check_unused(self, str channel_id) except -1:
        if channel_id in self.by_id:
            raise IllegalStateError(f"there is a connection {channel_id} already")
        return 0

    cdef KafkaChannel release_line(self, HeartbeatLine line, KafkaChannel keeper):
        """Detach a line from every channel but one; the channel that is of no use any more, or ``None``."""
        cdef KafkaChannel channel
        for channel in self.by_id.values():
            if channel.line is line and channel is not keeper:
                channel.line = None
                return channel if line.detach() else None
        return None

    cdef KafkaChannel get(self, str channel_id):
        return self.by_id.get(channel_id)

    cdef KafkaChannel at_fd(self, int fd):
        cdef PyObject *found = self.borrowed[fd] if fd < self.borrowed_size else NULL
        return <KafkaChannel> found if found != NULL else None

    cdef int add(self, KafkaChannel channel, double now_ms) except -1:
        self.make_room(channel.fd)
        self.update_interest(channel)
        self.by_id[channel.id] = channel
        self.borrowed[channel.fd] = <PyObject *> channel
        return self.touch(channel, now_ms)

    cdef int make_room(self, int fd) except -1:
        cdef int size = fd + 64
        cdef PyObject **borrowed
        if fd < self.borrowed_size:
            return 0
        borrowed = <PyObject **> PyMem_Realloc(self.borrowed, size * sizeof(PyObject *))
        if borrowed == NULL:
            raise MemoryError()
        self.borrowed = borrowed
        while self.borrowed_size < size:
            self.borrowed[self.borrowed_size] = NULL
            self.borrowed_size += 1
        return 0

    cdef bint take(self, int fd, int ready) noexcept nogil:
        """Write on where a socket has room again and the frame has still more than that."""
        cdef PyObject *found
        if ready != KC_WRITE or fd >= self.borrowed_size:
            return False
        found = self.borrowed[fd]
        return found != NULL and (<KafkaChannel> found).write_on()

    cdef int drop(self, KafkaChannel channel) except -1:
        """Close a channel."""
        # The poller first: after close() the descriptor may already be another's.
        self.poller.set_interest(channel.fd, channel.interest, 0)
        channel.interest = 0
        self.borrowed[channel.fd] = NULL
        del self.by_id[channel.id]
        if channel in self.starved:
            self.starved.remove(channel)
        if self.idle is not None:
            self.idle.forget(channel)
        return channel.close()

    cdef int wait_for_memory(self, KafkaChannel channel) except -1:
        """Read nothing of a channel until :meth:`resume_starved`."""
        self.starved.append(channel)
        return self.update_interest(channel)

    cdef int resume_starved(self, MemoryPool pool) except -1:
        """Let the channels that wait for memory try again, if any has come back."""
        cdef KafkaChannel channel
        if self.starved and pool.used < pool.limit:
            starved, self.starved = self.starved, []
            for channel in starved:
                channel.is_starved = False
                self.update_interest(channel)
        return 0

    cdef int update_interest(self, KafkaChannel channel) except -1:
        cdef int wanted = channel.wanted_interest()
        if wanted == channel.interest:
            return 0
        self.poller.set_interest(channel.fd, channel.interest, wanted)
        channel.interest = wanted
        return 0

    cdef int touch(self, KafkaChannel channel, double now_ms) except -1:
        """Something has happened on it."""
        channel.has_written_on = False
        if self.idle is not None:
            self.idle.touch(channel, now_ms)
        return 0

    cdef KafkaChannel next_expired(self, double now_ms):
        """The channel that has been idle for the longest time, if that is too long; or ``None``."""
        cdef KafkaChannel channel
        while True:
            channel = self.idle.oldest_expired(now_ms)
            if channel is None or not channel.is_connected:
                return channel
            if not channel.has_written_on and not channel.transport.has_unread():
                return channel
            # Or its owner has muted it, and has not forgotten it.
            self.touch(channel, now_ms)

    cdef int close_all(self) except -1:
        """Close every channel, and the poller."""
        cdef KafkaChannel channel
        for channel in self.by_id.values():
            # No word to the poller: a forked child has the same epoll as its parent, and would take from it.
            channel.close()
            if self.idle is not None:
                self.idle.forget(channel)
        self.borrowed_size = 0
        self.by_id.clear()
        self.starved.clear()
        self.poller.close()
        return 0
