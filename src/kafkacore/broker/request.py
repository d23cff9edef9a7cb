"""One request on its way through the broker, and what the handlers of requests are given to work with.

Does not know: sockets, how a message is encoded, what any API does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkacore.broker.config import BrokerConfig
from kafkacore.broker.delayed_operation import DelayedOperation
from kafkacore.broker.timer import Timer
from kafkacore.clock import Clock

if TYPE_CHECKING:
    from kafkacore.broker.cluster_state import ClusterState
    from kafkacore.broker.producer_ids import ProducerIdManager
    from kafkacore.broker.replica_manager import ReplicaManager
    from kafkacore.broker.topic_catalog import TopicCatalog


class RequestContext:
    """Where requests come from: one connection, as the handlers see it.

    Parameters
    ----------
    connection_id:
        Unique as long as the broker runs.
    node_id:
        The node on whose listener it was accepted.
    host:
        The client's address.
    """

    __slots__ = ("connection_id", "host", "node_id", "software_name", "software_version")

    def __init__(self, connection_id: str, node_id: int, host: str = "") -> None:
        self.connection_id = connection_id
        self.node_id = node_id
        self.host = host
        #: What the client calls itself in ApiVersions (KIP-511).
        self.software_name = ""
        self.software_version = ""


class Request:
    """A decoded request that waits for its answer.

    Parameters
    ----------
    context:
        Where it came from.
    api_key, version, correlation_id, client_id:
        Its header.
    message:
        Its body: the protocol's message object of that API.
    on_response:
        Called once with the request and its response message; ``None`` when there is none to send (acks=0).
    """

    __slots__ = (
        "api_key",
        "client_id",
        "context",
        "correlation_id",
        "message",
        "on_response",
        "operation",
        "version",
    )

    def __init__(
        self,
        context: RequestContext,
        api_key: int,
        version: int,
        correlation_id: int,
        client_id: str | None,
        message: Any,
        on_response: Callable[[Request, Any], None],
    ) -> None:
        self.context = context
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.message = message
        self.on_response = on_response
        #: What it waits for in a purgatory, so that a closed connection can call it off.
        self.operation: DelayedOperation | None = None

    @property
    def node_id(self) -> int:
        """The node that was asked."""
        return self.context.node_id

    def respond(self, response: Any) -> None:
        """Answer. ``None``: there is nothing to send, go on with the connection's next request."""
        self.operation = None
        self.on_response(self, response)


#: Answers a frame: the request, and the pieces of its response without the size; ``None`` when there is none.
OnResponse = Callable[[Request, "list[Any] | None"], None]


class CloseConnectionError(Exception):
    """The only answer left is to hang up: an error on acks=0, or a request that cannot be answered."""


@dataclass(slots=True)
class BrokerServices:
    """What a handler works with. ``listener_port`` is the one listened on."""

    config: BrokerConfig
    clock: Clock
    cluster_id: str
    listener_port: int
    topics: TopicCatalog
    cluster: ClusterState
    replica_manager: ReplicaManager
    timer: Timer
    producer_ids: ProducerIdManager


#: Returned by a handler that answers later, by ``request.respond``.
ANSWERED_LATER = object()


class ApiHandler(NamedTuple):
    """One API as this broker serves it: the versions it speaks, and what it does.

    ``handle`` returns the response message, or :data:`ANSWERED_LATER`.
    """

    request_class: Any
    min_version: int
    max_version: int
    handle: Callable[[Request, BrokerServices], Any]
