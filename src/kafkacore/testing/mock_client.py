"""A scripted network under the real NetworkClient, for tests of clients without sockets and in virtual time.

:class:`MockSelector` replaces :class:`kafkacore.network.Selector`. It decodes requests and encodes responses,
so version negotiation, correlation ids and time-outs are the real ones. :class:`MockClient` adds a client,
its metadata and a mock cluster::

    mock = MockClient(topics={"t": 3}, node_count=2)
    mock.connect()                              # metadata fetched, every node ready
    mock.prepare_response(ProduceResponse(...))           # for the next Produce; or a function of the request
    mock.prepare_response(ProduceResponse, disconnected=True)   # the request after that loses its connection
    mock.client.send(mock.client.new_client_request(0, ProduceRequest(...), now), now)
    responses = mock.poll()                     # list of ClientResponse

    mock.respond(FetchResponse(...))            # answers the oldest unanswered request
    mock.disconnect(1)                          # node 1 closes its connection
    mock.requests                               # all requests so far: (node_id, message, version, …)
    mock.clock.advance(30_000)                  # time also passes while poll waits

ApiVersions and Metadata are answered automatically unless a response was prepared. All other requests wait.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from kafkacore.client import ClientResponse, Metadata, NetworkClient
from kafkacore.client.addresses import bootstrap_nodes
from kafkacore.errors import IllegalStateError
from kafkacore.network import (
    ChannelBuilder,
    ChannelState,
    ConnectionPhase,
    NativeHeartbeat,
    NetworkReceive,
    NetworkSend,
    Tunnel,
)
from kafkacore.network.channel_state import OnAuthenticated
from kafkacore.protocol import (
    API_REGISTRY,
    ApiKey,
    RequestHeader,
    RequestMessage,
    ResponseMessage,
    decode_request,
    encode_response,
)
from kafkacore.protocol.generated.api_versions import ApiVersionsResponse
from kafkacore.protocol.generated.metadata import MetadataRequest, MetadataResponse
from kafkacore.structs import Node
from kafkacore.testing.clock import VirtualClock

#: A request of any type.
AnyRequest = RequestMessage[ResponseMessage]
#: Function that receives the connection id, the header and the message of a request.
RequestHandler = Callable[[str, RequestHeader, AnyRequest], None]
Answer = ResponseMessage | type[ResponseMessage] | Callable[["SentRequest"], ResponseMessage]


class MockSelector:
    """A selector without sockets, with the methods of :class:`kafkacore.network.Selectable`.

    Parameters
    ----------
    clock:
        Clock of the test. A poll without events advances the clock by the time-out of the poll, as if it had
        waited.

    Attributes
    ----------
    refused, silent:
        IP addresses that refuse connections, or never answer.
    on_request:
        Called by poll with every request that was written.
    hold_writes:
        Whether frames are accepted but not written.
    """

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.on_authenticated: OnAuthenticated | None = None
        self.connected: list[str] = []
        self.completed_sends: list[NetworkSend] = []
        self.completed_receives: list[NetworkReceive] = []
        self.disconnected: dict[str, ChannelState] = {}
        self.refused: set[str] = set()
        self.silent: set[str] = set()
        self.hold_writes = False
        self.on_request: RequestHandler | None = None
        #: Addresses of all open and connecting connections, by connection id.
        self.addresses: dict[str, tuple[str, int]] = {}
        #: All calls of connect, in order.
        self.attempts: list[tuple[str, tuple[str, int]]] = []
        self.closed: list[str] = []
        self.muted: set[str] = set()
        self.wakeup_count = 0
        self.waited_ms = 0.0
        self.is_interrupted = False
        self._ready: set[str] = set()
        self._sends: dict[str, NetworkSend] = {}
        self._receives: list[NetworkReceive] = []
        self._ends: dict[str, ChannelState] = {}
        self._is_closed = False

    # ---- Called by the client ------------------------------------------------------------------------------

    def connect(
        self,
        connection_id: str,
        address: tuple[str, int],
        send_buffer_bytes: int = -1,
        receive_buffer_bytes: int = -1,
        builder: ChannelBuilder | None = None,
        host: str = "",
        tunnel: Tunnel | None = None,
    ) -> None:
        if connection_id in self.addresses:
            raise IllegalStateError(f"connection {connection_id} exists already")
        self.attempts.append((connection_id, address))
        self.addresses[connection_id] = address

    def flush(self) -> None:
        """Leave the frames to the next poll."""

    def send(self, send: NetworkSend) -> None:
        if send.destination_id not in self.addresses:
            raise IllegalStateError(f"connection {send.destination_id} does not exist")
        if send.destination_id in self._sends:
            raise IllegalStateError(f"a frame to {send.destination_id} is still being written")
        self._sends[send.destination_id] = send

    def poll(self, timeout_ms: float, return_on_completed_sends: bool = True) -> None:
        assert not self._is_closed, "poll() was called on a closed selector"
        self.connected = []
        self.completed_sends = []
        self.completed_receives = []
        self.disconnected = {}
        self._establish()
        self._write()
        self.completed_receives, self._receives = self._receives, []
        for connection_id, state in self._ends.items():
            self._drop(connection_id)
            self.disconnected[connection_id] = state
        self._ends = {}
        found = self.connected or self.completed_sends or self.completed_receives or self.disconnected
        if not found and not self.wakeup_count and timeout_ms != math.inf:
            self._clock.advance(max(timeout_ms, 0.0))
        self.wakeup_count = 0

    def wakeup(self) -> None:
        self.wakeup_count += 1

    def attach_heartbeat(self, connection_id: str, heartbeat: NativeHeartbeat) -> bool:
        """Return ``False``, because a native heartbeat needs the file descriptor of a socket."""
        return False

    def mute(self, connection_id: str) -> None:
        self.muted.add(connection_id)

    def unmute(self, connection_id: str) -> None:
        self.muted.discard(connection_id)

    def is_channel_ready(self, connection_id: str) -> bool:
        return connection_id in self._ready

    def close(self, connection_id: str) -> None:
        if connection_id in self.addresses:
            self.closed.append(connection_id)
        self._ends.pop(connection_id, None)
        self._drop(connection_id)

    def close_all(self) -> None:
        for connection_id in list(self.addresses):
            self.close(connection_id)
        self._is_closed = True

    # ---- Called by the test --------------------------------------------------------------------------------

    def receive(self, connection_id: str, payload: bytes) -> None:
        """Let a frame arrive with the next poll."""
        if connection_id in self.addresses:
            self._receives.append(NetworkReceive(connection_id, memoryview(bytearray(payload))))

    def end(
        self,
        connection_id: str,
        phase: ConnectionPhase = ConnectionPhase.READY,
        reason: str = "the peer has closed the connection",
        error: Exception | None = None,
    ) -> None:
        """End the connection with the next poll."""
        self._ends[connection_id] = ChannelState(phase, reason, error)

    def _establish(self) -> None:
        for connection_id, (host, _) in self.addresses.items():
            if connection_id in self._ready or host in self.silent:
                continue
            if host in self.refused:
                self._ends[connection_id] = ChannelState(ConnectionPhase.NOT_CONNECTED, "refused")
            else:
                self._ready.add(connection_id)
                self.connected.append(connection_id)

    def _write(self) -> None:
        if self.hold_writes:
            return
        sends, self._sends = self._sends, {}
        for connection_id, send in sends.items():
            frame = send.drain()
            self.completed_sends.append(send)
            if self.on_request is not None:
                header, message = decode_request(frame[4:])
                self.on_request(connection_id, header, message)

    def _drop(self, connection_id: str) -> None:
        self.addresses.pop(connection_id, None)
        self._ready.discard(connection_id)
        self._sends.pop(connection_id, None)
        self._receives = [each for each in self._receives if each.source_id != connection_id]


@dataclass(frozen=True)
class SentRequest:
    """A request as the mock broker received it."""

    node_id: int
    message: Any
    version: int
    correlation_id: int
    client_id: str | None
    connection_id: str


@dataclass
class _Prepared:
    """A response to the first request that matches."""

    answer: Answer
    request_class: type[AnyRequest] | None
    node_id: int | None
    disconnected: bool


class MockClient:
    """A NetworkClient with metadata, connected to a scripted cluster.

    Parameters
    ----------
    topics:
        Number of partitions by topic. The leader of partition p is node p modulo ``node_count``.
    node_count:
        Number of nodes. Node n has the host ``node<n>`` and the port 9092 + n.
    bootstrap_servers:
        Hosts and ports of the bootstrap servers. Defaults to node 0.
    client_options:
        Further arguments of :class:`~kafkacore.client.NetworkClient`.
    """

    def __init__(
        self,
        *,
        topics: Mapping[str, int] | None = None,
        node_count: int = 1,
        clock: VirtualClock | None = None,
        metadata: Metadata | None = None,
        bootstrap_servers: list[tuple[str, int]] | None = None,
        **client_options: Any,
    ) -> None:
        self.clock = clock or VirtualClock()
        self.topics = dict(topics or {})
        self.nodes = tuple(Node(each, f"node{each}", 9092 + each) for each in range(node_count))
        self.selector = MockSelector(self.clock)
        self.selector.on_request = self._on_request
        self.metadata = metadata or Metadata(self.clock)
        self.metadata.bootstrap(bootstrap_nodes(bootstrap_servers or [("node0", 9092)]))
        client_options.setdefault("resolver", lambda host, port: [f"ip-{host}"])
        self.client = NetworkClient(self.selector, self.metadata, clock=self.clock, **client_options)
        #: All requests in the order of writing.
        self.requests: list[SentRequest] = []
        #: Requests without a response so far.
        self.unanswered: deque[SentRequest] = deque()
        self.api_versions = ApiVersionsResponse(
            api_keys=[
                ApiVersionsResponse.ApiVersion(
                    api_key=api_key, min_version=request.MIN_VERSION, max_version=request.MAX_VERSION
                )
                for api_key, (request, _) in API_REGISTRY.items()
            ]
        )
        self._prepared: list[_Prepared] = []

    # ---- The client ----------------------------------------------------------------------------------------

    def poll(self, timeout_ms: float = 0.0) -> list[ClientResponse]:
        """Poll the client once at the clock's time."""
        done = self.client.poll(timeout_ms, self.clock.monotonic_ms())
        return [each for each in done if isinstance(each, ClientResponse)]

    def poll_until(self, condition: Callable[[], bool], max_polls: int = 100) -> list[ClientResponse]:
        """Poll until ``condition()`` is true, and return the completed responses."""
        responses: list[ClientResponse] = []
        for _ in range(max_polls):
            if condition():
                return responses
            responses += self.poll(100.0)
        raise AssertionError(f"the condition is still false after {max_polls} polls")

    def connect(self) -> None:
        """Fetch metadata and make every node ready."""
        for topic in self.topics:
            self.metadata.add_topic(topic)
        self.poll_until(lambda: not self.metadata.fetch().is_bootstrap and not self.metadata.update_requested)
        for node in self.nodes:
            self.poll_until(partial(self._is_ready, node))

    def _is_ready(self, node: Node) -> bool:
        return self.client.ready(node, self.clock.monotonic_ms())

    def send(
        self,
        node_id: int,
        message: AnyRequest,
        expect_response: bool = True,
        request_timeout_ms: float | None = None,
        max_version: int | None = None,
    ) -> list[ClientResponse]:
        """Send a request, and return the list to which its response will be appended."""
        now_ms = self.clock.monotonic_ms()
        ended: list[ClientResponse] = []
        request = self.client.new_client_request(
            node_id, message, now_ms, expect_response, request_timeout_ms, ended.append, max_version
        )
        self.client.send(request, now_ms)
        return ended

    # ---- The cluster ---------------------------------------------------------------------------------------

    def prepare_response(
        self,
        answer: Answer,
        *,
        node_id: int | None = None,
        disconnected: bool = False,
    ) -> None:
        """Prepare the response to the next request that matches.

        Parameters
        ----------
        answer:
            A response, which matches requests of its API, or a function of the request, which matches every
            request. With ``disconnected``, the class of a response is enough.
        node_id:
            Match only requests to this node.
        disconnected:
            Whether to close the connection instead of answering.
        """
        api_key = getattr(answer, "API_KEY", None)
        request_class = None if api_key is None else API_REGISTRY[ApiKey(api_key)][0]
        self._prepared.append(_Prepared(answer, request_class, node_id, disconnected))

    def respond(self, answer: ResponseMessage, node_id: int | None = None) -> None:
        """Answer the oldest unanswered request of the same API, sent to ``node_id`` or to any node.

        The response arrives with the next poll.
        """
        for request in self.unanswered:
            if node_id in (None, request.node_id) and request.message.API_KEY == answer.API_KEY:
                self.unanswered.remove(request)
                self.answer(request, answer)
                return
        raise AssertionError(f"no request waits for {answer.NAME}; waiting requests: {list(self.unanswered)}")

    def answer(self, request: SentRequest, answer: ResponseMessage, version: int | None = None) -> None:
        """Answer a request, by default in the version of the request."""
        version = request.version if version is None else version
        pieces = encode_response(answer, version, request.correlation_id)
        self.selector.receive(request.connection_id, b"".join(pieces))

    def disconnect(self, node_id: int) -> None:
        """Close the connection to a node. The next poll reports that the connection is closed."""
        self.selector.end(self.client.connection_id(node_id))
        self.unanswered = deque(each for each in self.unanswered if each.node_id != node_id)

    def requests_of(self, request_class: type[AnyRequest]) -> list[SentRequest]:
        """Return the requests of one class."""
        return [request for request in self.requests if isinstance(request.message, request_class)]

    def metadata_response(self, request: MetadataRequest) -> MetadataResponse:
        """Return the metadata of the cluster for a request."""
        wanted = list(self.topics) if request.topics is None else [topic.name for topic in request.topics]
        return MetadataResponse(
            cluster_id="mock",
            controller_id=0,
            brokers=[
                MetadataResponse.MetadataResponseBroker(node_id=node.node_id, host=node.host, port=node.port)
                for node in self.nodes
            ],
            topics=[self._topic_metadata(topic) for topic in wanted if topic is not None],
        )

    def _topic_metadata(self, topic: str) -> MetadataResponse.MetadataResponseTopic:
        if topic not in self.topics:
            return MetadataResponse.MetadataResponseTopic(name=topic, error_code=3)
        count = len(self.nodes)
        replicas = [node.node_id for node in self.nodes]
        return MetadataResponse.MetadataResponseTopic(
            name=topic,
            partitions=[
                MetadataResponse.MetadataResponsePartition(
                    partition_index=each,
                    leader_id=each % count,
                    leader_epoch=0,
                    replica_nodes=replicas,
                    isr_nodes=replicas,
                )
                for each in range(self.topics[topic])
            ],
        )

    def _on_request(self, connection_id: str, header: RequestHeader, message: AnyRequest) -> None:
        node_id = self.client.node_id(connection_id)
        request = SentRequest(
            -1 if node_id is None else node_id,
            message,
            header.request_api_version,
            header.correlation_id,
            header.client_id,
            connection_id,
        )
        self.requests.append(request)
        for prepared in self._prepared:
            fits = prepared.request_class is None or isinstance(message, prepared.request_class)
            if fits and prepared.node_id in (None, node_id):
                self._prepared.remove(prepared)
                self._apply(request, prepared)
                return
        if message.API_KEY == ApiKey.API_VERSIONS:
            self.answer(request, self.api_versions)
        elif isinstance(message, MetadataRequest):
            self.answer(request, self.metadata_response(message))
        else:
            self.unanswered.append(request)

    def _apply(self, request: SentRequest, prepared: _Prepared) -> None:
        if prepared.disconnected:
            self.selector.end(request.connection_id)
        elif isinstance(prepared.answer, ResponseMessage):
            self.answer(request, prepared.answer)
        else:
            assert not isinstance(prepared.answer, type), (
                "a response class can be prepared only with disconnected=True"
            )
            self.answer(request, prepared.answer(request))
