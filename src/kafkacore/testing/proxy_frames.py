"""Find Kafka's frames in a stream of bytes.

Of each frame, only the head is read. The head of a request is its size, API key, version and correlation id.
The head of a response is its size and correlation id.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

SIZE_LENGTH: Final = 4
#: Head of a request: size, API key, API version and correlation id.
REQUEST_HEAD: Final = struct.Struct(">ihhi")
#: Size, correlation id.
RESPONSE_HEAD: Final = struct.Struct(">ii")
#: Kafka's default of socket.request.max.bytes. A stream with a larger "frame" is not Kafka's protocol.
MAX_FRAME_SIZE: Final = 100 * 1024 * 1024


@dataclass(slots=True)
class RequestSeen:
    """A request that has reached the proxy.

    Attributes
    ----------
    connection:
        Number of the connection, from 1 in the order of accepting.
    request_bytes, response_bytes:
        Size on the wire, including the four bytes of the size. ``response_bytes`` is 0 until the response
        begins to arrive from the broker.
    """

    connection: int
    api_key: int
    api_version: int
    correlation_id: int
    request_bytes: int
    response_bytes: int = 0


@dataclass(frozen=True, slots=True)
class FrameHead:
    """Position of a frame in the stream, its total size in bytes, and the fields of its head."""

    start: int
    size: int
    numbers: tuple[int, ...]


class FrameScanner:
    """Finds the frames of one direction of a connection.

    A request can be recognized only by its complete head (size, API key, version and correlation id). If a
    fault may cut the connection within a head, the scanner can hold back the head until it is complete. In
    another protocol, such as TLS, no frame is found.
    """

    def __init__(self, head: struct.Struct) -> None:
        self._head = head
        #: The bytes of an incomplete frame head, and how many of these bytes were forwarded.
        self._partial = b""
        self._passed = 0
        #: Position in the stream of the first byte that has not been scanned.
        self._position = 0
        #: Number of bytes of the current frame that have not arrived yet.
        self._left = 0
        self._is_kafka = True

    def scan(self, chunk: bytes, *, hold_head: bool) -> tuple[bytes, list[FrameHead]]:
        """Return the bytes to forward now, and the frames whose heads were completed by ``chunk``."""
        frames: list[FrameHead] = []
        data, passed = self._partial + chunk, self._passed
        self._partial, self._passed = b"", 0
        at = min(self._left, len(data))
        self._left -= at
        while self._is_kafka and at < len(data):
            if len(data) - at < self._head.size:
                self._partial = data[at:]
                break
            size, *numbers = self._head.unpack_from(data, at)
            if not self._head.size - SIZE_LENGTH <= size <= MAX_FRAME_SIZE:
                self._is_kafka = False
                break
            frames.append(FrameHead(self._position + at, SIZE_LENGTH + size, tuple(numbers)))
            taken = min(SIZE_LENGTH + size, len(data) - at)
            self._left = SIZE_LENGTH + size - taken
            at += taken
        self._position += len(data) - len(self._partial)
        if hold_head and self._partial:
            self._passed = passed if at == 0 else 0
            return data[passed : at + self._passed], frames
        self._passed = len(self._partial)
        return data[passed:], frames

    def rest(self) -> bytes:
        """Remove and return the bytes of an incomplete frame head that :meth:`scan` has held back."""
        held, self._partial = self._partial[self._passed :], b""
        return held
