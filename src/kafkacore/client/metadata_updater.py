"""Keeps the metadata fresh from within the network client's poll: one request at a time, to the idlest node.

The time in; a request when it is due, and how long to wait, out. Does not know: sockets, what the metadata
are for. Source of the behaviour: ``DefaultMetadataUpdater`` of Kafka's ``NetworkClient``.
"""

from __future__ import annotations

import logging
import math
from typing import Any, Protocol

from kafkacore.client.metadata import Metadata, MetadataRequestAndVersion
from kafkacore.client.metadata_merge import nodes_in
from kafkacore.client.requests import ClientRequest
from kafkacore.errors import KafkaError, RebootstrapRequiredError, for_code
from kafkacore.protocol import RequestMessage
from kafkacore.protocol.generated.metadata import MetadataResponse
from kafkacore.structs import Node

logger = logging.getLogger(__name__)


class MetadataSender(Protocol):
    """What an updater needs of the network client that owns it."""

    def least_loaded_node(self, now_ms: float) -> Node | None: ...

    def can_send_request(self, node_id: int, now_ms: float) -> bool: ...

    def send_internal(self, node_id: int, message: RequestMessage[Any], now_ms: float) -> None: ...

    def is_any_node_preparing(self) -> bool: ...

    def can_connect(self, node: Node, now_ms: float) -> bool: ...

    def initiate_connect(self, node: Node, now_ms: float) -> None: ...

    def rebootstrap(self, now_ms: float) -> None: ...

    def adopt_bootstrap_connections(self) -> None: ...


class MetadataUpdater:
    """Owned by a network client, which sends for it.

    Parameters
    ----------
    request_timeout_ms:
        Of the requests for metadata.
    reconnect_backoff_ms:
        The wait when no node can be asked.
    rebootstrap_trigger_ms:
        Without any node to ask for longer, begin with the bootstrap addresses again; infinity for never.
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
        #: Topics that had a retriable error in their last response. The first one is usual: the topic is new.
        self._failing_topics: set[str | None] = set()
        #: Since when an update has been wanted without a success.
        self._wanted_since_ms: float | None = None

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self._metadata.fetch().nodes

    def is_update_due(self, now_ms: float) -> bool:
        """Whether the next request has to be one for metadata."""
        return self._in_progress is None and self._metadata.time_to_next_update(now_ms) <= 0

    def maybe_update(self, now_ms: float) -> float:
        """Ask if it is time, and if a node can be asked; how long may be waited for news, in milliseconds."""
        if self._in_progress is not None:
            return self._request_timeout_ms
        wait_ms = self._metadata.time_to_next_update(now_ms)
        if wait_ms > 0:
            return wait_ms
        self._maybe_rebootstrap(now_ms)
        node = self._client.least_loaded_node(now_ms)
        if node is None:
            logger.debug("no node can be asked for metadata now")
            return max(self._reconnect_backoff_ms, 1.0)
        return self._ask(node, now_ms)

    def _ask(self, node: Node, now_ms: float) -> float:
        if self._client.can_send_request(node.node_id, now_ms):
            self._in_progress = self._metadata.new_metadata_request(now_ms)
            logger.debug("asking node %d for metadata: %r", node.node_id, self._in_progress.request)
            self._client.send_internal(node.node_id, self._in_progress.request, now_ms)
            return self._request_timeout_ms
        if self._client.is_any_node_preparing():
            # What becomes of it ends the wait.
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
                "no broker told about the cluster for too long; asking the bootstrap servers again"
            )
            self._client.rebootstrap(now_ms)
            self._wanted_since_ms = now_ms

    # ---- What became of it ---------------------------------------------------------------------------------

    def handle_server_disconnect(self, node_id: int, error: KafkaError | None) -> None:
        """The connection may have ended because the node is not there any more."""
        if error is not None:
            self._metadata.fatal_error(error)
        self._metadata.request_update()

    def handle_failed_request(self, now_ms: float, error: KafkaError | None = None) -> None:
        """The request for metadata was lost, or could not be sent."""
        self._in_progress = None
        self._metadata.failed_update(now_ms)
        if error is not None:
            self._metadata.fatal_error(error)

    def handle_response(self, request: ClientRequest, response: Any, now_ms: float) -> None:
        """The answer to the request for metadata."""
        asked, self._in_progress = self._in_progress, None
        assert asked is not None
        self._log_topic_errors(response)
        if response.error_code == RebootstrapRequiredError.errno:
            self._client.rebootstrap(now_ms)
            self._metadata.failed_update(now_ms)
        elif not nodes_in(response):
            # A broker that has just started does not know any broker yet, not even itself.
            self._metadata.failed_update(now_ms)
        else:
            self._wanted_since_ms = None
            self._metadata.update(asked.request_version, response, asked.is_partial, now_ms, request.version)
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
            level = logging.DEBUG if error.retriable and not failed_before else logging.WARNING
            logger.log(level, "topic %r: %s", topic.name, error.message)

    def forget_request(self) -> None:
        """The request in flight will not be answered; another may be sent."""
        self._in_progress = None
