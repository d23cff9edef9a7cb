"""The open channels of a Selector, by id and by descriptor, and what the poller watches each for.

Does not know: frames, polls, why a channel is closed.
"""

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.ref cimport PyObject
from posix.unistd cimport getpid

cimport kafkacore.network._poller as poller_functions
from kafkacore.network._channel cimport KafkaChannel
from kafkacore.network._native_heartbeat cimport NativeHeartbeat
from kafkacore.network._idle cimport IdleExpiry
from kafkacore.network._memory cimport MemoryPool
from kafkacore.network._poller cimport KC_WRITE, Poller
from kafkacore.network._receive cimport FrameReader

from kafkacore.errors import IllegalStateError, InvalidReceiveError

cdef enum:
    # How long channels wait for memory before those lose it that do not fill it, and what these must have
    # received meanwhile, in bytes.
    MAX_STARVED_MS = 5000
    LEAST_PROGRESS = 64 * 1024


@cython.final
cdef class ChannelSet:
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
        self.starved_since_ms = -1
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
        # What it changes the waiting thread reads.
        return self.poller.check_waits_not()

    cdef int check_unused(self, str channel_id) except -1:
        if channel_id in self.by_id:
            raise IllegalStateError(f"there is a connection {channel_id} already")
        return 0

    cdef KafkaChannel release_heartbeat(self, NativeHeartbeat heartbeat, KafkaChannel keeper):
        """Detach a heartbeat from every channel but one; the channel of no use any more, or ``None``."""
        cdef KafkaChannel channel
        for channel in self.by_id.values():
            if channel.heartbeat is heartbeat and channel is not keeper:
                channel.heartbeat = None
                return channel if heartbeat.detach() else None
        return None

    cdef KafkaChannel get(self, str channel_id):
        return self.by_id.get(channel_id)

    cdef KafkaChannel at_fd(self, int fd):
        cdef PyObject *found = self.borrowed[fd] if 0 <= fd < self.borrowed_size else NULL
        return <KafkaChannel> found if found != NULL else None

    cdef int add(self, KafkaChannel channel, double now_ms) except -1:
        self.make_room(channel.fd)
        self.update_interest(channel)
        self.by_id[channel.id] = channel
        self.borrowed[channel.fd] = <PyObject *> channel
        return self.touch(channel, now_ms)

    cdef int make_room(self, int fd) except -1:
        cdef Py_ssize_t size = <Py_ssize_t> fd + 64
        cdef PyObject **borrowed
        if fd < 0:
            raise ValueError(f"{fd} is no descriptor: the socket is closed")
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

    cdef int drop(self, KafkaChannel channel) except -1:
        """Close a channel."""
        # The poller first: after close() the descriptor may already be another's.
        self.poller.set_interest(channel.fd, channel.interest, 0)
        channel.interest = 0
        self.borrowed[channel.fd] = NULL
        del self.by_id[channel.id]
        if channel.waits_for_memory:
            channel.waits_for_memory = False
            self.starved.remove(channel)
        if self.idle is not None:
            self.idle.forget(channel)
        return channel.close()

    cdef int wait_for_memory(self, KafkaChannel channel) except -1:
        """Read nothing of a channel until :meth:`resume_starved`."""
        if not channel.waits_for_memory:
            channel.waits_for_memory = True
            self.starved.append(channel)
        return self.update_interest(channel)

    cdef int resume_starved(self, MemoryPool pool, list buffered) except -1:
        """Let those channels go on whose frames there is memory for, if any has come back since they tried;
        those whose sockets will not tell of what they have go to ``buffered``.

        Many may wait: none of them is to be tried in vain whenever somebody else is done with a request.
        """
        cdef KafkaChannel channel
        cdef Py_ssize_t promised = 0
        if not self.starved or pool.is_starved:
            return 0
        pool.is_starved = True
        waiting, self.starved = self.starved, []
        for channel in waiting:
            if pool.fits(channel.reader.frame_size, promised):
                promised += channel.reader.frame_size
                channel.is_starved = channel.waits_for_memory = False
                self.update_interest(channel)
                if channel.wants_buffered():
                    buffered.append(channel)
            else:
                self.starved.append(channel)
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
        """A channel to be closed, ``why_expired`` and with which ``expiry_error``; or ``None``."""
        cdef KafkaChannel channel = None
        if self.starved or self.starved_since_ms >= 0:
            channel = self.next_standing_still(now_ms)
        if channel is None and self.idle is not None:
            channel = self.next_idle(now_ms)
        return channel

    cdef KafkaChannel next_standing_still(self, double now_ms):
        """A channel that keeps memory for a frame that does not come, while others wait for memory: who
        claims frames and sends nothing of them is not to stop the rest. ``None`` if there is none.
        """
        cdef KafkaChannel channel
        cdef FrameReader reader
        if not self.starved:
            self.starved_since_ms = -1
        elif self.starved_since_ms < 0:
            self.note_fills(now_ms)
        elif now_ms - self.starved_since_ms >= MAX_STARVED_MS:
            for channel in self.by_id.values():
                reader = channel.reader
                if reader.frame is not None and 0 <= reader.fill_then > reader.frame_fill - LEAST_PROGRESS:
                    self.why_expired = (
                        f"{channel.id}: only {reader.frame_fill} of a frame of {reader.frame_size} bytes "
                        f"have come, and others wait for memory for {now_ms - self.starved_since_ms:.0f} ms"
                    )
                    self.expiry_error = InvalidReceiveError(self.why_expired)
                    self.expiry_error.frame_size = reader.frame_size
                    return channel
            self.note_fills(now_ms)
        return None

    cdef int note_fills(self, double now_ms) except -1:
        """Remember how far each frame has come, to be looked at again some seconds later."""
        cdef KafkaChannel channel
        self.starved_since_ms = now_ms
        for channel in self.by_id.values():
            channel.reader.fill_then = -1 if channel.reader.frame is None else channel.reader.frame_fill
        return 0

    cdef KafkaChannel next_idle(self, double now_ms):
        """The channel that has been idle for the longest time, if that is too long; or ``None``."""
        cdef KafkaChannel channel
        while True:
            channel = self.idle.oldest_expired(now_ms)
            if channel is None:
                return None
            if not channel.is_connected or not (channel.has_written_on or channel.transport.has_unread()):
                self.why_expired = f"nothing happened for {now_ms - channel.last_active_ms:.0f} ms"
                self.expiry_error = None
                return channel
            # Or its owner has muted it, and has not forgotten it.
            self.touch(channel, now_ms)

    cdef int close_all(self) except -1:
        """Close every channel, and the poller."""
        cdef KafkaChannel channel
        self.poller.check_waits_not()
        interrupt = None
        for channel in self.by_id.values():
            # No word to the poller: a forked child has the same epoll as its parent, and would take from it.
            try:
                channel.close()
            except BaseException as error:
                # Ctrl-C in an engine's last word. Who calls may not call again: the others are closed, too.
                interrupt = error
            if self.idle is not None:
                self.idle.forget(channel)
        self.borrowed_size = 0
        self.by_id.clear()
        self.starved.clear()
        self.poller.close()
        if interrupt is not None:
            raise interrupt
        return 0


@cython.nonecheck(False)
cdef bint write_on(void *channels, int fd, int ready) noexcept nogil:
    """Write on where a socket has room again and the frame has still more than that.

    ``channels`` is a ChannelSet, which its caller holds.
    """
    cdef PyObject *found
    if ready != KC_WRITE or fd < 0 or fd >= (<ChannelSet> channels).borrowed_size:
        return False
    found = (<ChannelSet> channels).borrowed[fd]
    return found != NULL and (<KafkaChannel> found).write_on()
