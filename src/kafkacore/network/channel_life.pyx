"""From a socket to a channel that is ready, and how each ends: what Selector stands on.

A channel has time to become ready, if there is a limit; what fails authentication is told so a moment later
and closed; what has been silent for too long is closed. Does not know: sends, events.
Source: Kafka's ``Selector`` (``delayedClosingChannels``, ``IdleExpiryManager``).
"""

from kafkacore.network.channel cimport KafkaChannel, new_channel
from kafkacore.network.channel_set cimport ChannelSet
from kafkacore.network.idle cimport IdleExpiry
from kafkacore.network.memory cimport MemoryPool
from kafkacore.network.poller cimport Poller
from kafkacore.network.receive cimport ENDED, ReadBuffer
from kafkacore.network.send cimport NetworkSend
from kafkacore.network.transport cimport PlaintextTransportLayer

import logging
import math
import os
from collections import deque

from kafkacore.errors import AuthenticationFailedError, KafkaProtocolError
from kafkacore.network.channel_state import ChannelState, ConnectionPhase

logger = logging.getLogger("kafkacore.network.selector")


cdef class ChannelLife:
    """See :class:`~kafkacore.network.Selector`, which is the only one there is."""

    def __cinit__(self, clock, *, Py_ssize_t max_receive_size=-1, connections_max_idle_ms=None,
                  MemoryPool memory_pool=None, str backend=None, socket_options=None, setup_timeout_ms=None):
        self.clock = clock
        self.max_receive_size = max_receive_size
        self.setup_timeout_ms = math.inf if setup_timeout_ms is None else setup_timeout_ms
        self.poller = Poller(backend)
        idle = None if connections_max_idle_ms is None else IdleExpiry(connections_max_idle_ms)
        self.channels = ChannelSet(self.poller, idle)
        self.memory_pool = memory_pool
        if memory_pool is not None:
            memory_pool.on_release = self.poller.wakeup
        self.read_buffer = ReadBuffer()
        self.unwritten, self.buffered = [], []
        self.deadlines, self.doomed = deque(), deque()
        self.failed = {}

    # ---- Until it is ready --------------------------------------------------------------------------------

    cdef int add(self, str connection_id, sock, bint is_connected, builder, str host) except -1:
        cdef double now_ms = self.clock.monotonic_ms()
        cdef KafkaChannel channel = new_channel(
            connection_id, sock, is_connected, self.max_receive_size, self.memory_pool, builder, host
        )
        self.channels.add(channel, now_ms)
        if is_connected:
            self.set_deadline(channel, now_ms)
        return 0

    cdef int set_deadline(self, KafkaChannel channel, double now_ms) except -1:
        if self.setup_timeout_ms < math.inf:
            channel.setup_due_ms = now_ms + self.setup_timeout_ms
            self.deadlines.append((channel.setup_due_ms, channel))
        return 0

    cdef int on_connected(self, KafkaChannel channel) except -1:
        cdef int error
        if channel.is_connected:
            return 0
        error = channel.finish_connect()
        if error != 0:
            return self.fail(channel, error)
        return self.prepare(channel)

    cdef int prepare(self, KafkaChannel channel) except -1:
        """Go on with handshake and authentication."""
        cdef int result
        try:
            result = channel.prepare(self.read_buffer, self.completed_receives)
        except BaseException as error:
            return self.end_failed(channel, error)
        if result == 1:
            return self.on_ready(channel)
        if result == ENDED:
            doing = "during authentication" if channel.is_handshaken else "during the TLS handshake"
            reason = f"the peer has closed the connection {doing}"
            return self.end(channel, ConnectionPhase.AUTHENTICATE, reason, None)
        if result < 0:
            return self.fail(channel, -result)
        if channel.is_starved:
            return self.channels.wait_for_memory(channel)
        return self.channels.update_interest(channel)

    cdef int on_ready(self, KafkaChannel channel) except -1:
        cdef bint is_again = channel.has_been_ready
        if not is_again:
            channel.has_been_ready = True
            self.connected.append(channel.id)
        if channel.pending_send is not None:
            self.unwritten.append(channel)
        if channel.is_starved:
            # Behind the last word of the authentication a frame has begun.
            self.channels.wait_for_memory(channel)
        else:
            self.note_buffered(channel)
            self.channels.update_interest(channel)
        if channel.authenticator is not None or type(channel.transport) is not PlaintextTransportLayer:
            self.tell_authenticated(channel, is_again, True)
        return 0

    cdef int tell_authenticated(self, KafkaChannel channel, bint is_again, bint is_success) except -1:
        """Last, when all else is done: Ctrl-C may come in what is Python's."""
        if self.on_authenticated is not None:
            now_ms = self.clock.monotonic_ms()
            is_again = is_again and channel.authenticator is not None
            self.on_authenticated(is_again, is_success, now_ms - channel.asked_again_ms, now_ms)
        return 0

    cdef int begin_again(self, KafkaChannel channel, payload) except -1:
        """Authenticate a channel anew; its frame, if it has one, is written afterwards."""
        cdef double now_ms = self.clock.monotonic_ms()
        channel.asked_again_ms = now_ms
        try:
            channel.reauthenticate(payload)
        except BaseException as error:
            return self.end_failed(channel, error)
        self.set_deadline(channel, now_ms)
        return self.prepare(channel)

    cdef int note_buffered(self, KafkaChannel channel) except -1:
        if channel.wants_buffered():
            self.buffered.append(channel)
        return 0

    # ---- Time ---------------------------------------------------------------------------------------------

    cdef double wait_ms(self, double timeout_ms) except -1:
        """How long may be waited without missing what is due."""
        cdef double due_ms = math.inf
        if self.failed or self.buffered:
            return 0
        if self.deadlines:
            due_ms = self.deadlines[0][0]
        if self.doomed:
            due_ms = min(due_ms, <double> self.doomed[0][0])
        if due_ms == math.inf:
            return timeout_ms
        return max(min(timeout_ms, due_ms - <double> self.clock.monotonic_ms()), 0)

    cdef int look_after(self, double now_ms) except -1:
        """End what is due."""
        if self.doomed:
            self.end_doomed(now_ms)
        if self.deadlines:
            self.end_slow(now_ms)
        self.end_idle(now_ms)
        return 0

    cdef int end_doomed(self, double now_ms) except -1:
        cdef KafkaChannel channel
        while self.doomed and self.doomed[0][0] <= now_ms:
            _, channel, error = self.doomed[0]
            if not channel.is_closed:
                if error.answer is not None:
                    # What the socket does not take at once is not worth a wait.
                    NetworkSend(channel.id, error.answer).write_to(channel.transport)
                self.end(channel, ConnectionPhase.AUTHENTICATION_FAILED, str(error), error)
            self.doomed.popleft()
        return 0

    cdef int end_slow(self, double now_ms) except -1:
        """Close each channel that has not become ready, or not received its first whole frame, in time."""
        cdef KafkaChannel channel
        while self.deadlines and self.deadlines[0][0] <= now_ms:
            _, channel = self.deadlines[0]
            # A later deadline has an entry of its own: of the first frame, or of a repeated authentication.
            if not (channel.is_closed or channel.is_doomed or channel.setup_due_ms > now_ms):
                self.end_if_slow(channel)
            self.deadlines.popleft()
        return 0

    cdef int end_if_slow(self, KafkaChannel channel) except -1:
        if not channel.is_ready:
            reason = f"it was not authenticated within {self.setup_timeout_ms:.0f} ms"
            self.end(channel, ConnectionPhase.AUTHENTICATE, reason, None)
        elif channel.has_begun and not channel.reader.has_frames:
            reason = f"its first request was not complete within {self.setup_timeout_ms:.0f} ms"
            self.end(channel, ConnectionPhase.READY, reason, None)
        return 0

    cdef int end_idle(self, double now_ms) except -1:
        """Close what has been idle for too long, the oldest first, and what keeps memory from others."""
        cdef KafkaChannel channel = self.channels.next_expired(now_ms)
        while channel is not None:
            self.end(channel, ConnectionPhase.EXPIRED, self.channels.why_expired, self.channels.expiry_error)
            channel = self.channels.next_expired(now_ms)
        return 0

    # ---- The end ------------------------------------------------------------------------------------------

    cdef int end_failed(self, KafkaChannel channel, error) except -1:
        """End a channel for what its handshake or its authenticator has raised."""
        if isinstance(error, AuthenticationFailedError):
            return self.doom(channel, error)
        if not isinstance(error, Exception):
            self.interrupt = error
            return self.end(channel, ConnectionPhase.LOCAL_CLOSE, "interrupted", None)
        reason = str(error)
        if not isinstance(error, (KafkaProtocolError, MemoryError)):
            # A mechanism may be its user's own code. One connection is not all of them.
            logger.error("authentication of %s failed by a bug", channel.id, exc_info=error)
            reason = f"{type(error).__name__}: {error}"
        return self.end(channel, ConnectionPhase.AUTHENTICATE, reason, error)

    cdef int doom(self, KafkaChannel channel, error) except -1:
        """Authentication has failed: say so after a while, which slows down who guesses, and close."""
        cdef double delay_ms = 0
        if channel.authenticator is not None and channel.is_handshaken:
            delay_ms = channel.authenticator.failure_delay_ms
        if delay_ms <= 0 and error.answer is None:
            self.end(channel, ConnectionPhase.AUTHENTICATION_FAILED, str(error), error)
        else:
            due_ms = self.clock.monotonic_ms() + delay_ms
            channel.is_doomed = True
            channel.is_ready = False
            self.doomed.append((due_ms, channel, error))
            self.channels.update_interest(channel)
        return self.tell_authenticated(channel, channel.has_been_ready, False)

    cdef int fail(self, KafkaChannel channel, int error) except -1:
        """End a channel for an errno, or for what its transport knows better."""
        cause = channel.transport.error
        if cause is None:
            phase = (
                ConnectionPhase.READY if channel.is_ready
                else ConnectionPhase.AUTHENTICATE if channel.is_connected
                else ConnectionPhase.NOT_CONNECTED
            )
            reason = os.strerror(error)
            return self.end(channel, phase, reason, OSError(error, reason))
        if not isinstance(cause, Exception):
            # Ctrl-C inside the engine, which may have lost bytes by that.
            self.interrupt = cause
            return self.end(channel, ConnectionPhase.LOCAL_CLOSE, "interrupted", None)
        is_refused = isinstance(cause, AuthenticationFailedError)
        phase = ConnectionPhase.AUTHENTICATION_FAILED if is_refused else ConnectionPhase.READY
        self.end(channel, phase, str(cause), cause)
        return self.tell_authenticated(channel, channel.has_been_ready, False) if is_refused else 0

    cdef int end(self, KafkaChannel channel, phase, str reason, error) except -1:
        """Close a channel and report it, in this poll if one runs, else in the next."""
        # First: Ctrl-C in the engine's last word leaves nobody waiting for an answer.
        self.failed[channel.id] = ChannelState(phase, reason, error)
        self.channels.drop(channel)
        logger.debug("connection %s ended (%s): %s", channel.id, phase.value, reason)
        return 0
