"""Send a Metadata request to the least loaded node whenever an update is due.

The behaviour is that of ``DefaultMetadataUpdater`` of Kafka's ``NetworkClient``.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

from kafkacore.client._client_request import ClientRequest
from kafkacore.client.metadata import Metadata, MetadataRequestAndVersion
from kafkacore.client.metadata_merge import nodes_in
from kafkacore.errors import KafkaError, RebootstrapRequiredError, for_code
from kafkacore.logs import logger_of
from kafkacore.protocol import RequestMessage
from kafkacore.protocol.generated.metadata import MetadataResponse
from kafkacore.structs import Node

logger = logger_of(__name__)


class MetadataSender(Protocol):
    """The methods of the network client that a metadata updater calls."""

    def least_loaded_node(self, now_ms: float) -> Node | None: ...

    def can_send_request(self, node_id: int, now_ms: float) -> bool: ...

    def send_internal(self, node_id: int, message: RequestMessage[Any], now_ms: float) -> None: ...

    def is_any_node_preparing(self) -> bool: ...

    def can_connect(self, node: Node, now_ms: float) -> bool: ...

    def initiate_connect(self, node: Node, now_ms: float) -> None: ...

    def rebootstrap(self, now_ms: float) -> None: ...

    def adopt_bootstrap_connections(self) -> None: ...


class MetadataUpdater:
    """Updates the metadata for a network client. At most one Metadata request is in flight.

    Parameters
    ----------
    client:
        The network client that sends the requests.
    metadata:
        The metadata to update.
    request_timeout_ms:
        Timeout of a Metadata request, in milliseconds.
    reconnect_backoff_ms:
        Pause while no node is available, in milliseconds.
    rebootstrap_trigger_ms:
        Time without a successful update, in milliseconds, after which the client starts again from the
        bootstrap servers. Infinity disables this.
    """

    def __init__(
        self,
        client: MetadataSender,
        metadata: Metadata,
        *,
        request_timeout_ms: float,
        reconnect_backoff_ms: float,
        rebootstrap_trigger_ms: float,
    ) -> None:
        self._client = client
        self._metadata = metadata
        self._request_timeout_ms = request_timeout_ms
        self._reconnect_backoff_ms = reconnect_backoff_ms
        self._rebootstrap_trigger_ms = rebootstrap_trigger_ms
        self._in_progress: MetadataRequestAndVersion | None = None
        #: Topics that had a retriable error in their last response. The first such error is normal for a new
        #: topic.
        self._failing_topics: set[str | None] = set()
        #: Time of the first attempt to update the metadata since the last successful update.
        self._wanted_since_ms: float | None = None

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self._metadata.fetch().nodes

    def is_update_due(self, now_ms: float) -> bool:
        """Return whether the next request must be a Metadata request."""
        return self._in_progress is None and self._metadata.time_to_next_update(now_ms) <= 0

    def maybe_update(self, now_ms: float) -> float:
        """Send a request if one is due and a node is available.

        Returns
        -------
        float
            Milliseconds until the next call is needed.
        """
        if self._in_progress is not None:
            return self._request_timeout_ms
        wait_ms = self._metadata.time_to_next_update(now_ms)
        if wait_ms > 0:
            return wait_ms
        self._maybe_rebootstrap(now_ms)
        node = self._client.least_loaded_node(now_ms)
        if node is None:
            logger.debug("no node is available for a metadata request")
            return max(self._reconnect_backoff_ms, 1.0)
        return self._send_request(node, now_ms)

    def _send_request(self, node: Node, now_ms: float) -> float:
        if self._client.can_send_request(node.node_id, now_ms):
            self._in_progress = self._metadata.new_metadata_request(now_ms)
            logger.debug("sending a metadata request to node %d: %r", node.node_id, self._in_progress.request)
            self._client.send_internal(node.node_id, self._in_progress.request, now_ms)
            return self._request_timeout_ms
        if self._client.is_any_node_preparing():
            # There is no need to connect to another node: the poll returns when this connection is ready or
            # fails.
            return max(self._reconnect_backoff_ms, 1.0)
        if self._client.can_connect(node, now_ms):
            self._client.initiate_connect(node, now_ms)
            return max(self._reconnect_backoff_ms, 1.0)
        return math.inf

    def _maybe_rebootstrap(self, now_ms: float) -> None:
        if self._wanted_since_ms is None:
            self._wanted_since_ms = now_ms
        elif now_ms - self._wanted_since_ms >= self._rebootstrap_trigger_ms:
            logger.warning(
                "no metadata update succeeded for %.0f ms; connecting to the bootstrap servers again",
                now_ms - self._wanted_since_ms,
            )
            self._client.rebootstrap(now_ms)
            self._wanted_since_ms = now_ms

    # ---- Results -------------------------------------------------------------------------------------------

    def handle_server_disconnect(self, node_id: int, error: KafkaError | None) -> None:
        """Request an update, because the disconnected node may have left the cluster."""
        if error is not None:
            self._metadata.fatal_error(error)
        self._metadata.request_update()

    def handle_failed_request(self, now_ms: float, error: KafkaError | None = None) -> None:
        """Record that a Metadata request was lost or could not be sent."""
        self._in_progress = None
        self._metadata.failed_update(now_ms)
        if error is not None:
            self._metadata.fatal_error(error)

    def handle_response(self, request: ClientRequest, response: Any, now_ms: float) -> None:
        """Handle the response to the Metadata request."""
        sent, self._in_progress = self._in_progress, None
        assert sent is not None
        self._log_topic_errors(response)
        if response.error_code == RebootstrapRequiredError.errno:
            self._client.rebootstrap(now_ms)
            self._metadata.failed_update(now_ms)
        elif not nodes_in(response):
            # The response contains no brokers. A broker that has just started does not know any broker yet,
            # not even itself.
            self._metadata.failed_update(now_ms)
        else:
            self._wanted_since_ms = None
            self._metadata.update(sent.request_version, response, sent.is_partial, now_ms, request.version)
            self._client.adopt_bootstrap_connections()

    def _log_topic_errors(self, response: MetadataResponse) -> None:
        for topic in response.topics:
            failed_before = topic.name in self._failing_topics
            self._failing_topics.discard(topic.name)
            if not topic.error_code:
                continue
            error = for_code(topic.error_code)
            if error.retriable:
                self._failing_topics.add(topic.name)
            log = logger.debug if error.retriable and not failed_before else logger.warning
            log("topic %r: %s", topic.name, error.message)

    def forget_request(self) -> None:
        """Forget the request in flight, whose connection was closed, so that a new request can be sent."""
        self._in_progress = None
