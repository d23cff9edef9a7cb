"""A broker on a real socket that supports heartbeats and answers them as a test requests."""

from __future__ import annotations

import socket
import threading
from collections import deque
from contextlib import suppress
from typing import Any, Self

from kafkacore.network import FrameReader
from kafkacore.protocol import ApiKey, decode_request, encode_response
from kafkacore.protocol.generated.api_versions import ApiVersionsResponse
from kafkacore.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from kafkacore.protocol.generated.heartbeat import HeartbeatResponse
from kafkacore.protocol.generated.metadata import MetadataResponse

NODE_ID = 3


class HeartbeatBroker:
    """Serves one connection after the other.

    Attributes
    ----------
    errors:
        Error codes for the next heartbeats.
    beats:
        Received heartbeats as (header, message).
    is_silent:
        Whether heartbeats get no response.
    """

    def __init__(self, heartbeat_version: int = 4) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._heartbeat_version = heartbeat_version
        self.errors: deque[int] = deque()
        self.beats: list[tuple[Any, Any]] = []
        self.is_silent = False
        self.raw_answer: bytes | None = None
        self.throttle_time_ms = 0
        self._connections: list[socket.socket] = []
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._listener.getsockname()
        return host, port

    def hang_up(self) -> None:
        """Close all open connections."""
        connections, self._connections = self._connections, []
        for each in connections:
            with suppress(OSError):  # the peer has already closed it
                each.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
        self.hang_up()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=[connection]).start()

    def _serve(self, connection: socket.socket) -> None:
        reader = FrameReader("client")
        with connection, suppress(OSError):
            while data := connection.recv(65536):
                for frame in reader.feed(data):
                    answer = self._answer(bytes(frame.payload))
                    if answer is not None:
                        connection.sendall(len(answer).to_bytes(4) + answer)

    def _answer(self, payload: bytes) -> bytes | None:
        header, message = decode_request(payload)
        if header.request_api_key == ApiKey.HEARTBEAT:
            self.beats.append((header, message))
            if self.is_silent:
                return None
            if self.raw_answer is not None:
                return header.correlation_id.to_bytes(4) + self.raw_answer
            response: Any = HeartbeatResponse(
                error_code=self.errors.popleft() if self.errors else 0, throttle_time_ms=self.throttle_time_ms
            )
        elif header.request_api_key == ApiKey.CONSUMER_GROUP_HEARTBEAT:
            self.beats.append((header, message))
            if self.is_silent:
                return None
            response = ConsumerGroupHeartbeatResponse(
                error_code=self.errors.popleft() if self.errors else 0,
                member_id=message.member_id,
                member_epoch=message.member_epoch,
                throttle_time_ms=self.throttle_time_ms,
            )
        elif header.request_api_key == ApiKey.METADATA:
            host, port = self.address
            broker = MetadataResponse.MetadataResponseBroker(node_id=NODE_ID, host=host, port=port)
            response = MetadataResponse(brokers=[broker], cluster_id="c", controller_id=NODE_ID)
        else:
            newest = {
                ApiKey.API_VERSIONS: 3,
                ApiKey.METADATA: 9,
                ApiKey.HEARTBEAT: self._heartbeat_version,
                ApiKey.CONSUMER_GROUP_HEARTBEAT: 1,
            }
            response = ApiVersionsResponse(
                api_keys=[
                    ApiVersionsResponse.ApiVersion(api_key=key, min_version=0, max_version=version)
                    for key, version in newest.items()
                ]
            )
        version = header.request_api_version
        return b"".join(encode_response(response, version, header.correlation_id))
