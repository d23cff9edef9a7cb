"""Attach native heartbeats to the connections of a client, and receive their responses.

A native thread writes the heartbeats, so that they continue while Python code holds the GIL.
"""

from __future__ import annotations

from collections.abc import Callable, MutableSequence
from typing import TYPE_CHECKING

from kafkacore.client._client_request import ClientRequest
from kafkacore.client.requests import HEARTBEAT_CORRELATION_IDS, ClientResponse, Completion
from kafkacore.network import NativeHeartbeat, NetworkReceive
from kafkacore.protocol import ApiKey, decode_response, encode_request

if TYPE_CHECKING:
    from kafkacore.client.network_client import NetworkClient
    from kafkacore.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
    from kafkacore.protocol.generated.heartbeat import HeartbeatRequest

    #: Heartbeat of the classic group protocol, or of the protocol of KIP-848.
    HeartbeatMessage = HeartbeatRequest | ConsumerGroupHeartbeatRequest

#: Size of the length field of a frame.
FRAME_SIZE_BYTES = 4
#: Sizes of the fields that precede the error code in a heartbeat response.
_ID_BYTES, _TAGS_BYTES, _THROTTLE_BYTES = 4, 1, 4


def new_native_heartbeat() -> NativeHeartbeat:
    """Create a heartbeat with the correlation ids that are reserved for heartbeats."""
    return NativeHeartbeat(HEARTBEAT_CORRELATION_IDS.start, len(HEARTBEAT_CORRELATION_IDS))


class _Attached:
    """A heartbeat that is attached to a connection, with its request and its callback."""

    __slots__ = ("callback", "heartbeat", "request", "version")

    def __init__(
        self,
        heartbeat: NativeHeartbeat,
        request: HeartbeatMessage,
        version: int,
        callback: Callable[[ClientResponse], None],
    ) -> None:
        self.heartbeat = heartbeat
        self.request = request
        self.version = version
        self.callback = callback


class NativeHeartbeats:
    """The heartbeats that are attached to connections of a client.

    Heartbeat requests do not count as requests in flight of the client.
    """

    def __init__(self, client: NetworkClient) -> None:
        self._client = client
        #: Node id → the heartbeat on the connection to the node.
        self.by_node: dict[int, _Attached] = {}

    def begin(
        self,
        node_id: int,
        heartbeat: NativeHeartbeat,
        request: HeartbeatMessage,
        interval_ms: float,
        session_timeout_ms: float,
        callback: Callable[[ClientResponse], None],
    ) -> bool:
        """Start a heartbeat; see ``NetworkClient.begin_heartbeats``."""
        client = self._client
        connection_id = client.connection_id(node_id)
        versions = client.api_versions.get(node_id)
        if versions is None or not client.selector.attach_heartbeat(connection_id, heartbeat):
            return False
        for other, attached in list(self.by_node.items()):
            if attached.heartbeat is heartbeat:
                del self.by_node[other]
        version = versions.latest_usable_version(type(request), None)
        pieces = encode_request(request, version, HEARTBEAT_CORRELATION_IDS.start, client.client_id)
        payload = b"".join(pieces)
        self.by_node[node_id] = _Attached(heartbeat, request, version, callback)
        has_throttle = request.API_KEY != ApiKey.HEARTBEAT or version >= 1
        flexible_from = type(request).FLEXIBLE_FROM
        has_tags = flexible_from is not None and version >= flexible_from
        return heartbeat.begin(
            len(payload).to_bytes(FRAME_SIZE_BYTES) + payload,
            interval_ms,
            session_timeout_ms,
            error_at=_ID_BYTES + (_TAGS_BYTES if has_tags else 0) + (_THROTTLE_BYTES if has_throttle else 0),
            has_tags=has_tags,
        )

    def take(
        self,
        node_id: int,
        receive: NetworkReceive,
        now_ms: float,
        responses: MutableSequence[Completion],
    ) -> ClientResponse | None:
        """Decode a received frame if it is the response to a heartbeat.

        The response is appended to ``responses``, unless the heartbeat was stopped after its request.

        Returns
        -------
        ClientResponse or None
            The response; ``None`` if the frame belongs to another request.

        Raises
        ------
        MalformedMessageError
            The frame is not a valid response to a heartbeat.
        """
        attached = self.by_node.get(node_id)
        if attached is None:
            return None
        correlation_id = int.from_bytes(receive.payload[:_ID_BYTES])
        if correlation_id not in HEARTBEAT_CORRELATION_IDS:
            return None
        _, message = decode_response(receive.payload, type(attached.request), attached.version)
        request = self._request(node_id, attached, correlation_id, now_ms)
        response = ClientResponse(request, now_ms, message=message)
        if attached.heartbeat.answered(correlation_id):
            responses.append(response)
        return response

    def disconnected(self, node_id: int, now_ms: float, responses: MutableSequence[Completion]) -> None:
        """Report a closed connection to the callback of its heartbeat.

        The selector has already detached the heartbeat from the connection.
        """
        attached = self.by_node.pop(node_id, None)
        if attached is not None:
            request = self._request(node_id, attached, HEARTBEAT_CORRELATION_IDS.start, now_ms)
            responses.append(ClientResponse(request, now_ms, disconnected=True))

    def _request(
        self, node_id: int, attached: _Attached, correlation_id: int, now_ms: float
    ) -> ClientRequest:
        """Return a heartbeat's request as a :class:`ClientRequest`, as if the client had sent it."""
        request = ClientRequest(
            node_id,
            attached.request,
            correlation_id,
            now_ms,
            request_timeout_ms=self._client.request_timeout_ms,
            callback=attached.callback,
        )
        request.version = attached.version
        request.sent_ms = attached.heartbeat.last_sent_ms or now_ms
        return request
