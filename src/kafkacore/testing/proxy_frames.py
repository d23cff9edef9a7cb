"""Kafka's frames in a stream that passes by: bytes in; bytes and where the frames among them begin, out.

Reads of a frame its size and what comes right after it (api key, version, correlation id of a request;
correlation id of a response), nothing else. Does not know: sockets, faults.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

SIZE_LENGTH: Final = 4
#: Size, api key, api version, correlation id.
REQUEST_HEAD: Final = struct.Struct(">ihhi")
#: Size, correlation id.
RESPONSE_HEAD: Final = struct.Struct(">ii")
#: Kafka's default of socket.request.max.bytes. A stream with a larger "frame" is none of Kafka's.
MAX_FRAME_SIZE: Final = 100 * 1024 * 1024


@dataclass(slots=True)
class RequestSeen:
    """A request that has reached the proxy.

    Attributes
    ----------
    connection:
        Number of its connection, from 1 in the order of accepting.
    request_bytes, response_bytes:
        Size on the wire, the four bytes of the size included; ``response_bytes`` is 0 until the response has
        begun to arrive from the broker.
    """

    connection: int
    api_key: int
    api_version: int
    correlation_id: int
    request_bytes: int
    response_bytes: int = 0


@dataclass(frozen=True, slots=True)
class FrameHead:
    """Where in the stream a frame begins, its whole size in bytes, and the numbers after its size."""

    start: int
    size: int
    numbers: tuple[int, ...]


class FrameScanner:
    """Finds the frames of one direction of one connection.

    Who wants to cut within the head of a frame has to know first what it is, so that a head may be held back
    until it is whole. In a stream that is none of Kafka's (TLS), no frame is found.
    """

    def __init__(self, head: struct.Struct) -> None:
        self._head = head
        #: What has come of a head that is not whole, and how much of that has been passed on.
        self._partial = b""
        self._passed = 0
        #: Of the stream's first byte that has not been looked at.
        self._position = 0
        #: Bytes of the current frame that are still to come.
        self._left = 0
        self._is_kafka = True

    def scan(self, chunk: bytes, *, hold_head: bool) -> tuple[bytes, list[FrameHead]]:
        """What may go on now, and the frames whose head has become whole."""
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
        """What was held back of a head that never became whole."""
        held, self._partial = self._partial[self._passed :], b""
        return held
