"""Requests to a broker by hand, any version of any API: a message in, the answer's message out.

Does not know: which broker answers, metadata, retries.
"""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Any

from kafkacore.protocol import decode_response, encode_request

LIMIT_S = 30.0


class Asked:
    """One connection; a ``with`` block closes it."""

    def __init__(self, servers: str, client_id: str = "asked") -> None:
        host, _, port = servers.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), LIMIT_S)
        self._client_id = client_id
        self._correlation_id = 0

    def ask(self, message: Any, version: int) -> Any:
        """Send a request and wait for its answer."""
        self._correlation_id += 1
        pieces = encode_request(message, version, self._correlation_id, self._client_id)
        payload = b"".join(bytes(piece) for piece in pieces)
        self._socket.sendall(struct.pack(">i", len(payload)) + payload)
        (size,) = struct.unpack(">i", self._read(4))
        correlation_id, answer = decode_response(self._read(size), type(message), version)
        assert correlation_id == self._correlation_id
        return answer

    def _read(self, size: int) -> bytes:
        taken = bytearray()
        while len(taken) < size:
            piece = self._socket.recv(size - len(taken))
            assert piece, "the broker has hung up"
            taken += piece
        return bytes(taken)

    def __enter__(self) -> Asked:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._socket.close()
