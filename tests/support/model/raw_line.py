"""A raw connection to a broker: send and receive messages of any version, or bytes."""

from __future__ import annotations

import socket
import ssl
import struct
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from eventually import BUDGET_S
from model.tls_ends import secured

from kafkacore.protocol import decode_response, encode_request


class Line:
    """One connection, inside TLS if a context is given. Use it as a context manager.

    ``cut`` selects the sizes in which a ``TlsSocket`` sends. Responses arrive in the order of the requests.
    """

    def __init__(
        self, servers: str, client_id: str = "raw", tls: ssl.SSLContext | None = None, **cut: int
    ) -> None:
        host, _, port = servers.rpartition(":")
        plain = socket.create_connection((host, int(port)), BUDGET_S)
        self._socket = plain if tls is None else secured(plain, host, tls, **cut)
        self._client_id = client_id
        self._correlation_id = 0
        #: Correlation id, kind and version of each request whose response has not been read.
        self._said: deque[tuple[int, type[Any], int]] = deque()

    def say(self, message: Any, version: int) -> None:
        """Send a request without reading its response."""
        self.say_at_once([(message, version)])

    def say_at_once(self, requests: Sequence[tuple[Any, int]]) -> None:
        """Send several requests in one piece, so that they arrive together."""
        frames = b""
        for message, version in requests:
            self._correlation_id += 1
            pieces = encode_request(message, version, self._correlation_id, self._client_id)
            payload = b"".join(bytes(piece) for piece in pieces)
            frames += struct.pack(">i", len(payload)) + payload
            self._said.append((self._correlation_id, type(message), version))
        self._socket.sendall(frames)

    def hear(self) -> Any:
        """Read and return the response to the oldest unanswered request."""
        expected, kind, version = self._said.popleft()
        correlation_id, answer = decode_response(self.hear_bytes(), kind, version)
        assert correlation_id == expected
        return answer

    def ask(self, message: Any, version: int) -> Any:
        """Send a request and return its response."""
        assert not self._said, "an earlier request has no response yet, which would be taken for this one's"
        self.say(message, version)
        return self.hear()

    def say_bytes(self, payload: bytes) -> None:
        """Send a request as bytes, preceded by its size."""
        self._socket.sendall(struct.pack(">i", len(payload)) + payload)

    def hear_bytes(self) -> bytes:
        """Read the next response as bytes, without its size."""
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def close(self) -> None:
        self._socket.close()

    def _read(self, size: int) -> bytes:
        taken = bytearray()
        while len(taken) < size:
            piece = self._socket.recv(size - len(taken))
            assert piece, "the broker closed the connection"
            taken += piece
        return bytes(taken)

    def __enter__(self) -> Line:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()
