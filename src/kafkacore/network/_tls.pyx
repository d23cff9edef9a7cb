"""TLS over a non-blocking socket with Python's ``ssl`` module, as in Kafka's ``SslTransportLayer``.

The TLS engine (:class:`ssl.SSLObject`) works in memory. The transport reads encrypted bytes from the socket
in large pieces and passes them to the engine. It writes the engine's output to the socket. ``ssl.SSLSocket``
would make two system calls for each TLS record of 16 KiB.

- Bytes of a frame count as written when the socket has accepted all TLS records that contain them. Therefore
  a channel does not track encrypted bytes, and a repeated write always passes the same bytes.
- Reading an incomplete record from the engine raises an exception, which costs twenty times as much as
  reading a record. Therefore the transport tracks record lengths and reads only complete records.
- The poller does not report bytes that the engine has already decrypted. Therefore the selector keeps a list
  of the channels that have such bytes (``Selector.buffered``).
- A peer may request new keys any number of times. Therefore a read that returns ``n`` bytes stops once it has
  consumed ``2 * n + MAX_EXCESS_BYTES`` bytes. A peer that leaves too many responses unread is disconnected.
- After the first frame, an invalid record counts as a lost connection, and a client reconnects. The record
  does not count as an authentication failure. Otherwise an attacker that changes one byte could stop a client
  permanently.
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
from kafkacore.network.tls_errors import describe_error, describe_plaintext, describe_silent_close

cdef extern from "Python.h":
    enum:
        PyBUF_READ
        PyBUF_WRITE

cdef enum:
    # Number of bytes to read from the socket in one system call: eight records of 16 KiB.
    RECEIVE_SIZE = 128 * 1024
    RECORD_HEADER = 5
    # Maximum size of a TLS record: header, 16 KiB of data, and 2 KiB that versions before TLS 1.3 may add.
    LARGEST_RECORD = 5 + 16 * 1024 + 2 * 1024
    # Small pieces of a frame are joined into blocks of up to this size, to avoid TLS records of a few bytes.
    JOINED_SIZE = 64 * 1024
    # Maximum bytes to encrypt at once. The encrypted bytes stay in memory until the socket accepts them.
    MAX_ENCRYPT_SIZE = 1024 * 1024
    # The engine releases the GIL while it encrypts. If it encrypts more bytes than this,
    # gil_handoff_request() makes a busy thread return the GIL sooner.
    ENCRYPT_WITHOUT_HANDOFF = 16 * 1024
    # A read stops once it has consumed twice the bytes that it returns plus this number of bytes. Without
    # this limit, a peer could keep the thread busy with TLS messages that contain no data.
    MAX_EXCESS_BYTES = 256 * 1024
    # Maximum bytes of TLS responses, for example to key updates, that the peer has not read. If there are
    # more, the peer is disconnected.
    MAX_UNREAD_RESPONSES = 64 * 1024
    ALERT_SIZE = 7

# The fatal alert unexpected_message, as a record with 2 bytes of content.
cdef const char *ALERT = b"\x15\x03\x03\x00\x02\x02\x0a"

# All connections can share this buffer, because the thread does not release the GIL between reading the
# socket and passing the bytes to the engine.
cdef unsigned char receive_buffer[RECEIVE_SIZE]


@cython.final
cdef class TlsTransportLayer(TransportLayer):
    """A transport that encrypts with TLS.

    Parameters
    ----------
    context:
        An :class:`ssl.SSLContext` for this side's role, server or client.
    sock:
        A non-blocking stream socket, which the transport does not own.
    is_server:
        Whether this side is the TLS server.
    server_name:
        For a client, host name or address of the server. The client sends this name to the server and, if the
        context checks host names, compares the name with the server's certificate. A trailing dot is removed:
        DNS allows it, but names in certificates end without it.
    """

    def __cinit__(self, context, sock, bint is_server, str server_name=None):
        self.fd = sock.fileno()
        self.fork_generation = poller.fork_generation()
        self.is_server = is_server
        self.incoming = ssl.MemoryBIO()
        self.outgoing = ssl.MemoryBIO()
        if is_server:
            # An engine needs 40 KiB of memory, so it is created only after a complete TLS record has arrived.
            self.context = context
        else:
            self.start_engine(context, server_name.removesuffix(".") if server_name else None)

    cdef int start_engine(self, context, name) except -1:
        self.engine = context.wrap_bio(self.incoming, self.outgoing, self.is_server, name)
        self.engine_read = self.engine.read
        self.engine_write = self.engine.write
        return 0

    # ---- Handshake ----------------------------------------------------------------------------------------

    cdef int handshake(self) except? -1:
        cdef int result
        while self.engine is None:
            result = self.receive_some()
            if result <= 0:
                return KC_READ if result == -EAGAIN else -EPIPE if result == 0 else result
            if self.record_have >= RECORD_HEADER and self.record_size > LARGEST_RECORD:
                raise SslAuthenticationError(
                    f"invalid TLS record of {self.record_size} bytes; the maximum is {LARGEST_RECORD}"
                )
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
                if not self.has_received and (result == 0 or result == -ECONNRESET):
                    raise SilentTlsPeerError(describe_silent_close())
                if result <= 0:
                    return KC_READ if result == -EAGAIN else -EPIPE if result == 0 else result
            except ssl.SSLError as error:
                # Try to send the engine's alert to the peer.
                self.flush()
                raise SslAuthenticationError(describe_error(error, self.is_server)) from error
        result = self.flush()
        if result < 0:
            return KC_WRITE if result == -EAGAIN else result
        # Look for received bytes now: the peer's first frame may have arrived with the end of the handshake.
        self.has_pending_data = self.incoming.pending > 0
        return 0

    cdef int receive_some(self) except? -1:
        """Read bytes and pass them to the engine. Return how many, 0 at the end, or the negative errno."""
        cdef Py_ssize_t got = poller.receive_bytes(self.fd, receive_buffer, RECEIVE_SIZE)
        if got > 0:
            if not self.has_received:
                self.check_first(receive_buffer, got)
            self.walk_records(receive_buffer, got)
            self.incoming.write(PyMemoryView_FromMemory(<char *> receive_buffer, got, PyBUF_READ))
        elif got == 0:
            self.incoming.write_eof()
        return <int> got

    cdef int check_first(self, const unsigned char *first, Py_ssize_t size) except -1:
        """Raise an error if the peer does not use TLS. The error of the engine itself would be misleading."""
        cdef iovec alert
        self.has_received = True
        # Record type 22 is a handshake, and 21 is an alert.
        if first[0] != 22 and first[0] != 21:
            if self.is_server:
                # Send an unencrypted alert, as the engine would. Clients recognize a TLS port by this alert.
                alert.iov_base = <char *> ALERT
                alert.iov_len = ALERT_SIZE
                poller.send_vector(self.fd, &alert, 1, False)
            began = PyMemoryView_FromMemory(<char *> first, min(size, <Py_ssize_t> 4), PyBUF_READ)
            raise SslAuthenticationError(describe_plaintext(began, self.is_server))
        return 0

    # ---- Reading ------------------------------------------------------------------------------------------

    cdef Py_ssize_t read(self, void *to, Py_ssize_t size) noexcept nogil:
        with gil:
            try:
                return self.read_some(<char *> to, size)
            except BaseException as error:
                return self.fail(error)

    cdef Py_ssize_t read_some(self, char *to, Py_ssize_t size) except? -1:
        cdef Py_ssize_t more, got = 0, received = 0
        cdef bint is_drained = False
        cdef int result
        if self.error is not None:
            return -EPROTO
        if self.has_ended:
            self.has_pending_data = False
            return 0
        while got < size:
            if not self.can_read():
                # If a read did not fill the buffer, the socket is empty: stop. Also stop if this call has
                # received too many bytes for the data that it returns.
                is_drained = is_drained or received >= 2 * got + MAX_EXCESS_BYTES
                result = -EAGAIN if is_drained else self.receive_some()
                if result <= 0:
                    # Accept an end of the stream without close_notify, because the size field of a frame
                    # reveals truncation.
                    self.has_pending_data = False
                    return got if got > 0 else result
                is_drained = result < RECEIVE_SIZE
                received += result
                continue
            try:
                more = self.engine_read(
                    size - got, PyMemoryView_FromMemory(to + got, size - got, PyBUF_WRITE)
                )
            except ssl.SSLWantReadError:
                # The record was a TLS message without data, and the remaining bytes are not a complete
                # record.
                self.send_responses()
                self.unusable_bytes = self.incoming.pending
                continue
            except ssl.SSLError as error:
                if got == 0:
                    raise
                self.fail(error)
                more = 0
            if more == 0:
                # The peer sent close_notify. The next read returns 0, too.
                self.has_ended = self.error is None
                self.has_pending_data = got > 0
                return got
            got += more
            self.unusable_bytes = -1
            self.has_read = True
            self.send_responses()
        self.has_pending_data = self.can_read()
        return got

    cdef int send_responses(self) except -1:
        """Send the messages that the engine itself creates, such as the response to a key update."""
        if not self.outgoing.pending:
            return 0
        if self.unsent is None:
            self.flush()
        if <Py_ssize_t> self.outgoing.pending > MAX_UNREAD_RESPONSES:
            raise KafkaProtocolError(
                "the peer keeps requesting new keys in TLS and does not read the responses"
            )
        return 0

    cdef bint can_read(self) except? -1:
        """Return whether the engine has a complete record, or unread data of the last record."""
        cdef Py_ssize_t pending = self.incoming.pending
        return self.record_have < pending != self.unusable_bytes or <int> self.engine.pending() > 0

    cdef void walk_records(self, const unsigned char *data, Py_ssize_t size) noexcept:
        """Track how much of the last record has arrived. The last two bytes of a header are the length."""
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
        return self.has_pending_data or poller.has_unread(self.fd)

    cdef bint has_buffered(self) noexcept nogil:
        return self.has_pending_data

    # ---- Writing ------------------------------------------------------------------------------------------

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
        cdef Py_ssize_t requested = min(size, <Py_ssize_t> MAX_ENCRYPT_SIZE)
        cdef Py_ssize_t got
        cdef char *piece
        cdef Py_ssize_t written = self.report_earlier()
        if written != 0:
            return written
        piece = <char *> block_alloc(requested)
        if piece == NULL:
            raise MemoryError()
        try:
            with nogil:
                got = pread(file, piece, requested, position)
                gil_handoff_request()
            gil_handoff_received()
            if got <= 0:
                return -ENODATA
            return self.encrypt(piece, got)
        finally:
            block_free(piece)

    cdef Py_ssize_t encrypt(self, const char *data, Py_ssize_t size) except? -1:
        """Encrypt bytes and send the records. Return the same values as ``report_written``."""
        size = min(size, <Py_ssize_t> MAX_ENCRYPT_SIZE)
        if size > ENCRYPT_WITHOUT_HANDOFF:
            # The engine releases the GIL while it encrypts, and must reacquire it soon afterwards.
            gil_handoff_request()
        try:
            self.unreported = self.engine_write(PyMemoryView_FromMemory(<char *> data, size, PyBUF_READ))
        except ssl.SSLWantReadError as error:
            raise KafkaConnectionError("the peer started a TLS renegotiation during a write") from error
        finally:
            if size > ENCRYPT_WITHOUT_HANDOFF:
                gil_handoff_received()
        return self.report_written()

    cdef Py_ssize_t report_earlier(self) except? -1:
        """Send the records that an earlier write left unsent, and return the result of ``report_written``.

        Return 0 if there are no such records.
        """
        return 0 if self.error is None and self.unsent is None else self.report_written()

    cdef Py_ssize_t report_written(self) except? -1:
        """Send the remaining records. Return how many of the frame's bytes they contain, or the negative
        errno.

        Return 0 if only records that the engine itself created were sent.
        """
        cdef Py_ssize_t written
        cdef int result = -EPROTO if self.error is not None else self.flush()
        if result < 0:
            return result
        written = self.unreported
        self.unreported = 0
        return written

    cdef int flush(self) except? -1:
        """Send the engine's output. Return 0 if all of the output is sent, otherwise the negative errno."""
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

    # ---- Closing ------------------------------------------------------------------------------------------

    cdef int fail(self, error) except? -1:
        """Store ``error``, which explains the errno, and return the negative errno."""
        if isinstance(error, ssl.SSLError):
            cause = error
            message = describe_error(cause, self.is_server)
            # An error after the first successful read means that bytes were changed in transit, not that the
            # peer failed to authenticate.
            error = KafkaConnectionError(message) if self.has_read else SslAuthenticationError(message)
            error.__cause__ = cause
        self.error = error
        return -EPROTO

    cdef int close(self) except -1:
        try:
            # A forked child must not close the TLS session of its parent.
            if self.is_ready and self.error is None and self.fork_generation == poller.fork_generation():
                self.send_close_notify()
        finally:
            # Free the engine's 40 KiB now, because a caller may still reference the channel.
            self.engine = self.engine_read = self.engine_write = None
            self.incoming = self.outgoing = self.context = self.unsent = None
        return 0

    cdef int send_close_notify(self) except -1:
        try:
            self.engine.unwrap()
        except ssl.SSLError:
            pass  # unwrap() fails if the peer's close_notify is missing or was already received.
        if self.unsent is None:
            self.flush()
        return 0
