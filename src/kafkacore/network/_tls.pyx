"""Transport of a TLS channel: Python's ``ssl`` engine between the frames and a non-blocking socket.

The engine (:class:`ssl.SSLObject`) works on memory alone. Encrypted bytes are read from the socket in large
pieces and given to it, and its output is written to the socket. ``ssl.SSLSocket`` would make two system
calls for each TLS record of 16 KiB. The source of the behaviour is Kafka's ``SslTransportLayer``.

- Bytes of a frame count as written when the socket has taken everything that the engine made of them. So a
  channel never tracks bytes in transit, and a repeated write is always of the same bytes.
- To ask the engine for an incomplete record raises an exception, which costs twenty times as much as a
  record. So the transport follows the lengths of records and asks only for whole ones.
- No poll reports bytes that the engine has already decrypted. The selector keeps a list of such channels
  (``Selector.buffered``).
- A peer may request new keys as often as it likes. One read takes at most ``MOST_IN_VAIN`` bytes beyond
  twice what it returns, and a peer that leaves too many answers unread is disconnected.
- A record that does not verify after the first frame is a lost connection, which is retried. It is not an
  authentication failure: an attacker that can change one byte must not be able to stop a client for good.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.errno cimport EAGAIN, ECONNRESET, ENODATA, EPIPE, EPROTO
from libc.stdint cimport int64_t
from libc.string cimport memcpy
from posix.unistd cimport pread

cimport kafkacore.network._poller as poller
from kafkacore.network._poller cimport KC_READ, KC_WRITE, iovec
from kafkacore.wire._blocks cimport block_alloc, block_free
from kafkacore.wire._gil_handoff cimport gil_handoff_received, gil_handoff_request

import ssl

from kafkacore.errors import (
    KafkaConnectionError, KafkaProtocolError, SilentTlsPeerError, SslAuthenticationError,
)
from kafkacore.network.tls_errors import hung_up, refusal, spoken_instead

cdef extern from "Python.h":
    enum:
        PyBUF_READ
        PyBUF_WRITE

cdef enum:
    # What is asked of the socket at once: records have 16 KiB, and two system calls for each are too many.
    RECEIVE_SIZE = 128 * 1024
    RECORD_HEADER = 5
    # With its header, and 2 KiB that versions before 1.3 may add.
    LARGEST_RECORD = 5 + 16 * 1024 + 2 * 1024
    # Pieces of a frame below this are joined, so that they do not become records of a few bytes each.
    JOINED_SIZE = 64 * 1024
    # Most that the engine is given at once: what it makes of it lies in memory until the socket takes it.
    MOST_AT_ONCE = 1024 * 1024
    # Up to here the lock that the engine gives away comes back soon enough without a word.
    ENCRYPT_QUIETLY = 16 * 1024
    # Bytes that a read takes beyond twice what it gives: a peer may send words to the engine without end.
    MOST_IN_VAIN = 256 * 1024
    # Words of the engine's own that wait for a peer who makes it say them, and does not take them.
    MOST_UNHEARD = 64 * 1024
    ALERT_SIZE = 7

# A record of 2 bytes: fatal, and the message was not expected.
cdef const char *ALERT = b"\x15\x03\x03\x00\x02\x02\x0a"

# For all, because nobody else runs between the socket's bytes coming here and their going to an engine.
cdef unsigned char receive_buffer[RECEIVE_SIZE]


@cython.final
cdef class TlsTransportLayer(TransportLayer):
    """One connection's engine.

    Parameters
    ----------
    context:
        An :class:`ssl.SSLContext` for the role.
    sock:
        A non-blocking stream socket, which stays its owner's.
    is_server:
        Whether the peer speaks first.
    server_name:
        Of a client: whom it wants to talk to, a host's name or address; sent to the server, and compared with
        its certificate if the context says so. A dot at its end, which DNS allows and no certificate has, is
        not part of it.
    """

    def __cinit__(self, context, sock, bint is_server, str server_name=None):
        self.fd = sock.fileno()
        self.fork_generation = poller.fork_generation()
        self.is_server = is_server
        self.incoming = ssl.MemoryBIO()
        self.outgoing = ssl.MemoryBIO()
        if is_server:
            # An engine takes 40 KiB, which who connects and says nothing whole, or no TLS, does not get.
            self.context = context
        else:
            self.start_engine(context, server_name.removesuffix(".") if server_name else None)

    cdef int start_engine(self, context, name) except -1:
        self.engine = context.wrap_bio(self.incoming, self.outgoing, self.is_server, name)
        self.engine_read = self.engine.read
        self.engine_write = self.engine.write
        return 0

    # ---- Before the first frame ---------------------------------------------------------------------------

    cdef int handshake(self) except? -1:
        cdef int result
        while self.engine is None:
            result = self.receive_some()
            if result <= 0:
                return KC_READ if result == -EAGAIN else -EPIPE if result == 0 else result
            if self.record_have >= RECORD_HEADER and self.record_size > LARGEST_RECORD:
                raise SslAuthenticationError(f"a TLS record of {self.record_size} bytes is longer than any")
            if <Py_ssize_t> self.incoming.pending > self.record_have:
                self.start_engine(self.context, None)
        while not self.is_ready:
            try:
                self.engine.do_handshake()
                self.is_ready = True
            except ssl.SSLWantReadError:
                result = self.flush()
                if result < 0:
                    return KC_WRITE if result == -EAGAIN else result
                result = self.receive_some()
                if not self.has_heard and (result == 0 or result == -ECONNRESET):
                    raise SilentTlsPeerError(hung_up())
                if result <= 0:
                    return KC_READ if result == -EAGAIN else -EPIPE if result == 0 else result
            except ssl.SSLError as error:
                # Send the alert to the peer, too, if the socket takes it.
                self.flush()
                raise SslAuthenticationError(refusal(error, self.is_server)) from error
        result = self.flush()
        if result < 0:
            return KC_WRITE if result == -EAGAIN else result
        # With the peer's last word of the handshake its first frame may have come.
        self.is_holding = self.incoming.pending > 0
        return 0

    cdef int receive_some(self) except? -1:
        """Hand the engine what the socket has: how many bytes, 0 at the end, or the negative errno."""
        cdef Py_ssize_t got = poller.receive_bytes(self.fd, receive_buffer, RECEIVE_SIZE)
        if got > 0:
            if not self.has_heard:
                self.check_first(receive_buffer, got)
            self.walk_records(receive_buffer, got)
            self.incoming.write(PyMemoryView_FromMemory(<char *> receive_buffer, got, PyBUF_READ))
        elif got == 0:
            self.incoming.write_eof()
        return <int> got

    cdef int check_first(self, const unsigned char *first, Py_ssize_t size) except -1:
        """Whether it is TLS at all that the peer speaks, which the engine would say in riddles."""
        cdef iovec alert
        self.has_heard = True
        # A record of the handshake, or an alert.
        if first[0] != 22 and first[0] != 21:
            if self.is_server:
                # In the clear, as an engine would say it: clients know an alert by its first bytes.
                alert.iov_base = <char *> ALERT
                alert.iov_len = ALERT_SIZE
                poller.send_vector(self.fd, &alert, 1, False)
            began = PyMemoryView_FromMemory(<char *> first, min(size, <Py_ssize_t> 4), PyBUF_READ)
            raise SslAuthenticationError(spoken_instead(began, self.is_server))
        return 0

    # ---- In -----------------------------------------------------------------------------------------------

    cdef Py_ssize_t read(self, void *to, Py_ssize_t size) noexcept nogil:
        with gil:
            try:
                return self.read_some(<char *> to, size)
            except BaseException as error:
                return self.fail(error)

    cdef Py_ssize_t read_some(self, char *to, Py_ssize_t size) except? -1:
        cdef Py_ssize_t more, got = 0, came = 0
        cdef bint is_drained = False
        cdef int result
        if self.error is not None:
            return -EPROTO
        if self.has_ended:
            self.is_holding = False
            return 0
        while got < size:
            if not self.can_read():
                # What did not fill the room was all that the socket had, or it says so itself.
                is_drained = is_drained or came >= 2 * got + MOST_IN_VAIN
                result = -EAGAIN if is_drained else self.receive_some()
                if result <= 0:
                    # At the end, too: a frame says how long it is, so a stream that is cut is known by that.
                    self.is_holding = False
                    return got if got > 0 else result
                is_drained = result < RECEIVE_SIZE
                came += result
                continue
            try:
                more = self.engine_read(
                    size - got, PyMemoryView_FromMemory(to + got, size - got, PyBUF_WRITE)
                )
            except ssl.SSLWantReadError:
                # It was a word to the engine alone. What is behind it, it does not want without more.
                self.answer()
                self.refused = self.incoming.pending
                continue
            except ssl.SSLError as error:
                if got == 0:
                    raise
                self.fail(error)
                more = 0
            if more == 0:
                # The peer has said that nothing will follow. Who comes again hears that, too.
                self.has_ended = self.error is None
                self.is_holding = got > 0
                return got
            got += more
            self.refused = -1
            self.has_read = True
            self.answer()
        self.is_holding = self.can_read()
        return got

    cdef int answer(self) except -1:
        """Give the socket words of the engine's own, such as to new keys."""
        if not self.outgoing.pending:
            return 0
        if self.unsent is None:
            self.flush()
        if <Py_ssize_t> self.outgoing.pending > MOST_UNHEARD:
            raise KafkaProtocolError("it asks for new keys again and again, and does not read the answers")
        return 0

    cdef bint can_read(self) except? -1:
        """Whether the engine has a whole record, or the rest of one; to ask it in vain costs as a read."""
        cdef Py_ssize_t pending = self.incoming.pending
        return self.record_have < pending != self.refused or <int> self.engine.pending() > 0

    cdef void walk_records(self, const unsigned char *data, Py_ssize_t size) noexcept:
        """Keep count of how much of the last record has come: header of 5 bytes, the last two its length."""
        cdef Py_ssize_t taken
        while size > 0:
            if self.record_have < RECORD_HEADER:
                if self.record_have == 3:
                    self.record_size = RECORD_HEADER + (data[0] << 8)
                elif self.record_have == 4:
                    self.record_size += data[0]
                self.record_have += 1
                taken = 1
            else:
                taken = min(size, self.record_size - self.record_have)
                self.record_have += taken
            data += taken
            size -= taken
            if self.record_have >= RECORD_HEADER and self.record_have == self.record_size:
                self.record_have = 0

    cdef bint has_unread(self) noexcept nogil:
        return self.is_holding or poller.has_unread(self.fd)

    cdef bint has_buffered(self) noexcept nogil:
        return self.is_holding

    # ---- Out ----------------------------------------------------------------------------------------------

    cdef Py_ssize_t write(self, const iovec *vector, int count, bint more) noexcept nogil:
        with gil:
            try:
                return self.write_some(vector, count)
            except BaseException as error:
                return self.fail(error)

    cdef Py_ssize_t write_file(self, int file, int64_t position, Py_ssize_t size) noexcept nogil:
        with gil:
            try:
                return self.encrypt_file(file, position, size)
            except BaseException as error:
                return self.fail(error)

    cdef Py_ssize_t write_some(self, const iovec *vector, int count) except? -1:
        cdef Py_ssize_t size = 0
        cdef Py_ssize_t taken
        cdef char *joined
        cdef int at
        cdef Py_ssize_t written = self.report_earlier()
        if written != 0:
            return written
        if count == 1 or <Py_ssize_t> vector[0].iov_len >= JOINED_SIZE:
            return self.encrypt(<char *> vector[0].iov_base, vector[0].iov_len)
        joined = <char *> block_alloc(JOINED_SIZE)
        if joined == NULL:
            raise MemoryError()
        try:
            for at in range(count):
                taken = min(<Py_ssize_t> vector[at].iov_len, JOINED_SIZE - size)
                memcpy(joined + size, vector[at].iov_base, taken)
                size += taken
                if size == JOINED_SIZE:
                    break
            return self.encrypt(joined, size)
        finally:
            block_free(joined)

    cdef Py_ssize_t encrypt_file(self, int file, int64_t position, Py_ssize_t size) except? -1:
        cdef Py_ssize_t asked = min(size, <Py_ssize_t> MOST_AT_ONCE)
        cdef Py_ssize_t got
        cdef char *piece
        cdef Py_ssize_t written = self.report_earlier()
        if written != 0:
            return written
        piece = <char *> block_alloc(asked)
        if piece == NULL:
            raise MemoryError()
        try:
            with nogil:
                got = pread(file, piece, asked, position)
                gil_handoff_request()
            gil_handoff_received()
            if got <= 0:
                return -ENODATA
            return self.encrypt(piece, got)
        finally:
            block_free(piece)

    cdef Py_ssize_t encrypt(self, const char *data, Py_ssize_t size) except? -1:
        """Encrypt bytes and send the records; return as ``report_written``."""
        size = min(size, <Py_ssize_t> MOST_AT_ONCE)
        if size > ENCRYPT_QUIETLY:
            # The engine gives the lock away while it computes, and wants it back.
            gil_handoff_request()
        try:
            self.unreported = self.engine_write(PyMemoryView_FromMemory(<char *> data, size, PyBUF_READ))
        except ssl.SSLWantReadError as error:
            raise KafkaConnectionError("it negotiates TLS anew while it is written to") from error
        finally:
            if size > ENCRYPT_QUIETLY:
                gil_handoff_received()
        return self.report_written()

    cdef Py_ssize_t report_earlier(self) except? -1:
        """Send what an earlier write left, as ``report_written``; return 0 if it left nothing."""
        return 0 if self.error is None and self.unsent is None else self.report_written()

    cdef Py_ssize_t report_written(self) except? -1:
        """Return the bytes of the frame that are written once all of their records are sent, or the negative
        errno. Return 0 if only the engine's own records were sent.
        """
        cdef Py_ssize_t written
        cdef int result = -EPROTO if self.error is not None else self.flush()
        if result < 0:
            return result
        written = self.unreported
        self.unreported = 0
        return written

    cdef int flush(self) except? -1:
        """Give the socket what the engine has made; 0 when it took all, else the negative errno."""
        cdef Py_ssize_t sent
        cdef iovec piece
        while True:
            if self.unsent is None:
                if not self.outgoing.pending:
                    return 0
                self.unsent = self.outgoing.read()
                self.sent = 0
            piece.iov_base = PyBytes_AS_STRING(self.unsent) + self.sent
            piece.iov_len = PyBytes_GET_SIZE(self.unsent) - self.sent
            with nogil:
                sent = poller.send_vector(self.fd, &piece, 1, False)
                gil_handoff_request()
            gil_handoff_received()
            if sent < 0:
                return <int> sent
            self.sent += sent
            if self.sent == PyBytes_GET_SIZE(self.unsent):
                self.unsent = None

    # ---- The end ------------------------------------------------------------------------------------------

    cdef int fail(self, error) except? -1:
        """Keep what went wrong for who reads the errno."""
        if isinstance(error, ssl.SSLError):
            cause = error
            said = refusal(cause, self.is_server)
            # Bytes that were changed on their way say nothing about who has sent them.
            error = KafkaConnectionError(said) if self.has_read else SslAuthenticationError(said)
            error.__cause__ = cause
        self.error = error
        return -EPROTO

    cdef int close(self) except -1:
        try:
            # A forked child has the same socket as its parent, who is still talking.
            if self.is_ready and self.error is None and self.fork_generation == poller.fork_generation():
                self.say_goodbye()
        finally:
            # Somebody may hold the channel for a while, and an engine takes 40 KiB.
            self.engine = self.engine_read = self.engine_write = None
            self.incoming = self.outgoing = self.context = self.unsent = None
        return 0

    cdef int say_goodbye(self) except -1:
        try:
            self.engine.unwrap()
        except ssl.SSLError:
            pass  # It would like to hear the peer's last word as well, or has heard it.
        if self.unsent is None:
            self.flush()
        return 0
