"""One connection through the fault proxy: two sockets and, between them, one stream per direction."""

from __future__ import annotations

import enum
import errno
import socket
import struct
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from kafkacore.testing.proxy_frames import REQUEST_HEAD, RESPONSE_HEAD, FrameHead, FrameScanner, RequestSeen

#: The family and the address of the broker's socket.
Target = tuple[socket.AddressFamily, tuple[object, ...]]

RECEIVE_BYTES: Final = 64 * 1024
#: With a limited rate, the proxy forwards pieces of this size, as a network forwards packets.
PIECE_BYTES: Final = 1460
LINGER_ZERO: Final = struct.pack("ii", 1, 0)


class Direction(enum.Enum):
    """The direction of bytes through the proxy."""

    TO_BROKER = "to the broker"
    TO_CLIENT = "to the client"


class Ending(enum.Enum):
    """How both sides see the end of a connection that is cut.

    ``FIN`` is an orderly close and ``RST`` a reset. With ``SILENCE`` the connection stays open, but nothing
    passes any more.
    """

    FIN = "FIN"
    RST = "RST"
    SILENCE = "SILENCE"


@dataclass
class Link:
    """The faults of one direction. All connections share the rate of the link."""

    #: Seeded random number from 0 to below 1, for the jitter.
    chance: Callable[[], float]
    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    bytes_per_s: float | None = None
    is_stalled: bool = False
    is_black_hole: bool = False
    #: Time at which the link will have forwarded all bytes that have entered it.
    free_at_ms: float = 0.0
    forwarded_bytes: int = 0

    def arrival_ms(self, size: int, now_ms: float) -> float:
        """Return the time at which ``size`` bytes leave the link if they enter it at ``now_ms``."""
        if self.bytes_per_s is not None:
            self.free_at_ms = max(self.free_at_ms, now_ms) + size * 1000.0 / self.bytes_per_s
            now_ms = self.free_at_ms
        return now_ms + self.delay_ms + self.chance() * self.jitter_ms


@dataclass(eq=False)
class RequestCut:
    """A cut at byte ``after`` of the ``number``-th request of ``api_key`` from now, or of its response."""

    direction: Direction
    api_key: int
    after: int
    number: int
    ending: Ending
    seen: int = 0


@dataclass(eq=False)
class Stream:
    """One direction of a connection: a queue of bytes from ``source`` to ``sink``."""

    link: Link
    source: socket.socket
    sink: socket.socket
    queue_bytes: int
    scanner: FrameScanner | None
    #: Entries are (time, bytes), or (time, ending) for a cut, or (time, ``None``) for the source's own FIN.
    queue: deque[tuple[float, memoryview | Ending | None]] = field(default_factory=deque)
    queued_bytes: int = 0
    read_bytes: int = 0
    cut_at: int | None = None
    cut_ending: Ending = Ending.FIN
    #: Whether reading has stopped. The queue is still forwarded.
    is_read: bool = False
    #: Whether the source has closed or reset the connection.
    is_source_over: bool = False
    is_passed_on: bool = False
    #: Whether bytes were discarded, so that the rest of the stream must not be forwarded.
    has_gap: bool = False
    is_blocked: bool = False

    @property
    def wants_read(self) -> bool:
        return not (self.is_read or self.link.is_stalled or self.queued_bytes >= self.queue_bytes)

    def due_ms(self) -> float | None:
        """Return the time at which the next entry is due, or ``None`` if no entry can be forwarded."""
        if not self.queue or self.link.is_stalled or self.is_blocked:
            return None
        return self.queue[0][0]

    def put(self, data: bytes, now_ms: float) -> None:
        """Queue the bytes that precede the cut."""
        room = len(data) if self.cut_at is None else max(self.cut_at - self.read_bytes, 0)
        view = memoryview(data)[:room]
        self.read_bytes += len(view)
        step = PIECE_BYTES if self.link.bytes_per_s is not None else len(view)
        for at in range(0, len(view), max(step, 1)):
            self._queue(view[at : at + step], len(view[at : at + step]), now_ms)
        if room <= len(data) and self.cut_at is not None:
            self.put_end(self.cut_ending, now_ms)

    def put_end(self, ending: Ending | None, now_ms: float) -> None:
        """Queue the end of the stream after all earlier bytes."""
        self.is_read = True
        self._queue(ending, 0, now_ms)

    def _queue(self, item: memoryview | Ending | None, size: int, now_ms: float) -> None:
        at_ms = self.link.arrival_ms(size, now_ms)
        # Jitter must not change the order of the bytes in a TCP stream.
        last_ms = self.queue[-1][0] if self.queue else 0.0
        self.queue.append((max(at_ms, last_ms), item))
        self.queued_bytes += size

    def write(self, data: memoryview) -> bool:
        """Write to the sink, and return whether everything was written."""
        try:
            sent = self.sink.send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        self.link.forwarded_bytes += sent
        self.queued_bytes -= sent
        if sent == len(data):
            self.queue.popleft()
            return True
        self.queue[0] = (self.queue[0][0], data[sent:])
        self.is_blocked = True
        return False


class ProxyConnection:
    """The client's socket, the broker's socket, and the streams between them.

    Parameters
    ----------
    number:
        Number of the connection, from 1 in the order of accepting.
    client:
        The accepted socket.
    target:
        Family and address of the broker's socket. ``None`` resets the client's connection.
    links:
        The faults of each direction. The proxy may change them between two calls.
    requests:
        The list to which each request is appended.
    request_cuts:
        Cuts that wait for their request. A cut is removed when its request arrives.
    """

    def __init__(
        self,
        number: int,
        client: socket.socket,
        target: Target | None,
        links: dict[Direction, Link],
        *,
        queue_bytes: int,
        frames: bool,
        requests: deque[RequestSeen],
        request_cuts: list[RequestCut],
    ) -> None:
        self.number = number
        self.client = client
        self.is_connecting = True
        #: How the connection was cut; ``None`` while it is open.
        self.cut_by: Ending | None = None
        self.is_closed = False
        #: Whether the connection is cut, or will be cut, within a request or response.
        self.is_cut_in_frame = False
        #: Whether the proxy's counters include the cut of this connection.
        self.is_counted = False
        self._requests = requests
        self._request_cuts = request_cuts
        self._unanswered: dict[int, RequestSeen] = {}
        self._response_cuts: dict[int, RequestCut] = {}
        family, address = target or (socket.AF_INET, ("", 0))
        self.broker = socket.socket(family, socket.SOCK_STREAM)
        for end in (self.client, self.broker):
            end.setblocking(False)
            with suppress(OSError):  # macOS rejects options of a socket that its peer has reset.
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        scanners = [FrameScanner(REQUEST_HEAD), FrameScanner(RESPONSE_HEAD)] if frames else [None, None]
        self.to_broker = Stream(
            links[Direction.TO_BROKER], self.client, self.broker, queue_bytes, scanners[0]
        )
        self.to_client = Stream(
            links[Direction.TO_CLIENT], self.broker, self.client, queue_bytes, scanners[1]
        )
        status = errno.ECONNREFUSED if target is None else self.broker.connect_ex(address)
        if status not in (0, errno.EINPROGRESS):
            self.end(Ending.RST)

    def stream(self, direction: Direction) -> Stream:
        return self.to_broker if direction is Direction.TO_BROKER else self.to_client

    @property
    def streams(self) -> tuple[Stream, Stream]:
        return self.to_broker, self.to_client

    # ---- Faults --------------------------------------------------------------------------------------------

    def cut_after(self, direction: Direction, after: int, ending: Ending) -> None:
        """Cut the connection after ``after`` more bytes in ``direction``."""
        stream = self.stream(direction)
        stream.cut_at, stream.cut_ending = stream.read_bytes + after, ending

    def _cut_in(self, stream: Stream, frame: FrameHead, cut: RequestCut) -> None:
        stream.cut_at, stream.cut_ending = frame.start + min(cut.after, frame.size), cut.ending
        self.is_cut_in_frame = True

    def lift_cuts(self) -> None:
        """Cancel pending cuts."""
        self._response_cuts.clear()
        for stream in self.streams:
            stream.cut_at = None
        self.is_cut_in_frame = self.is_cut_in_frame and self.cut_by is not None

    # ---- Socket events -------------------------------------------------------------------------------------

    def wanted(self) -> list[tuple[socket.socket, bool, bool]]:
        """Return for each socket whether to wait until it is readable, and until it is writable."""
        if self.cut_by is Ending.SILENCE:
            return [(self.client, False, False), (self.broker, False, False)]
        if self.cut_by is Ending.FIN:
            return [(stream.source, not stream.is_read, False) for stream in self.streams]
        client_reads, broker_reads = self.to_broker.wants_read, self.to_client.wants_read
        return [
            (self.client, client_reads, self.to_client.is_blocked),
            (
                self.broker,
                broker_reads and not self.is_connecting,
                self.is_connecting or self.to_broker.is_blocked,
            ),
        ]

    def on_writable(self, end: socket.socket) -> None:
        if end is self.broker and self.is_connecting:
            if end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                self.end(Ending.RST)
            self.is_connecting = False
        for stream in self.streams:
            if stream.sink is end:
                stream.is_blocked = False

    def on_readable(self, end: socket.socket, now_ms: float) -> None:
        stream = self.to_broker if end is self.client else self.to_client
        try:
            data = end.recv(RECEIVE_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
            if self.cut_by is None and not stream.link.is_black_hole:
                stream.put_end(Ending.RST, now_ms)
        stream.is_source_over = not data
        if self.cut_by is None and stream.link.is_black_hole:
            stream.has_gap = True
        if self.cut_by is not None or stream.has_gap or stream.is_read:
            stream.is_read = stream.is_read or not data
        else:
            self._take(stream, data, now_ms)

    def _take(self, stream: Stream, data: bytes, now_ms: float) -> None:
        if stream.scanner is not None:
            is_cut_near = self._request_cuts if stream is self.to_broker else self._response_cuts
            passed, frames = stream.scanner.scan(data, hold_head=bool(is_cut_near))
            passed = passed if data else stream.scanner.rest()
            for frame in frames:
                self._see(stream, frame)
        else:
            passed = data
        if passed:
            stream.put(passed, now_ms)
        if not data and not stream.is_read:
            stream.put_end(None, now_ms)

    def _see(self, stream: Stream, frame: FrameHead) -> None:
        if stream is self.to_broker:
            api_key, api_version, correlation_id = frame.numbers
            seen = RequestSeen(self.number, api_key, api_version, correlation_id, frame.size)
            self._unanswered[correlation_id] = seen
            self._requests.append(seen)
            self._match_cuts(seen, frame)
            return
        (correlation_id,) = frame.numbers
        answered = self._unanswered.pop(correlation_id, None)
        if answered is not None:
            answered.response_bytes = frame.size
        cut = self._response_cuts.pop(correlation_id, None)
        if cut is not None:
            self._cut_in(stream, frame, cut)

    def _match_cuts(self, seen: RequestSeen, frame: FrameHead) -> None:
        for cut in list(self._request_cuts):
            cut.seen += cut.api_key == seen.api_key
            if cut.seen < cut.number:
                continue
            self._request_cuts.remove(cut)
            if cut.direction is Direction.TO_CLIENT:
                self._response_cuts[seen.correlation_id] = cut
            else:
                self._cut_in(self.to_broker, frame, cut)

    # ---- What is due ---------------------------------------------------------------------------------------

    def due_ms(self) -> float | None:
        """Return the time at which to call :meth:`pass_on`, or ``None`` to wait for a socket."""
        if self.cut_by is not None:
            return None
        # While the broker's socket is connecting, the bytes for the broker wait.
        streams = (self.to_client,) if self.is_connecting else self.streams
        return min((due for stream in streams if (due := stream.due_ms()) is not None), default=None)

    def pass_on(self, now_ms: float) -> None:
        """Write the bytes that are due, and close the connection when both streams have ended."""
        for stream in self.streams:
            if stream is self.to_broker and self.is_connecting:
                continue
            while self.cut_by is None and (due := stream.due_ms()) is not None and due <= now_ms:
                self._pass_on_one(stream)
        over = self.cut_by is Ending.FIN and all(stream.is_read for stream in self.streams)
        if over or all(stream.is_passed_on for stream in self.streams):
            self.close()

    def _pass_on_one(self, stream: Stream) -> None:
        item = stream.queue[0][1]
        try:
            if isinstance(item, memoryview):
                stream.write(item)
            elif item is None:
                stream.queue.popleft()
                stream.is_passed_on = True
                stream.sink.shutdown(socket.SHUT_WR)
            else:
                self.end(item)
        except OSError:
            # The sink was reset, so reset the other side as well.
            self.end(Ending.RST)

    # ---- Close ---------------------------------------------------------------------------------------------

    def end(self, ending: Ending) -> None:
        """End both sides now, and drop the queues."""
        if self.cut_by is Ending.RST or self.is_closed:
            return
        self.cut_by = ending
        for stream in self.streams:
            stream.queue.clear()
            stream.is_blocked = False
            # The peer may still be sending, so keep reading until it closes.
            stream.is_read = stream.is_source_over
        if ending is Ending.RST:
            for end in (self.client, self.broker):
                with suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_ZERO)
            self.close()
        elif ending is Ending.FIN:
            # Closing with unread bytes would send RST, so read until the peer closes as well.
            for end in (self.client, self.broker):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self.is_closed = True
        self.client.close()
        self.broker.close()
