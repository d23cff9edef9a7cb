"""Send the control requests of a producer's manager, one at a time and with back-off.

This is ``maybeSendAndPollTransactionalRequest`` of Apache Kafka's ``Sender``. Control requests never delay
batches.
"""

from __future__ import annotations

import math

from kafkacore.client import ClientRequest, ClientResponse, NetworkClient
from kafkacore.client.exponential_backoff import ExponentialBackoff
from kafkacore.logs import logger_of
from kafkacore.producer.control_request import ControlRequest
from kafkacore.producer.producer_manager import ProducerManager
from kafkacore.structs import Node

logger = logger_of("kafkacore.producer")


class ControlChannel:
    """Sends the requests of the Sender's manager to brokers and coordinators.

    Parameters
    ----------
    client:
        Network client, whose ``poll`` runs the callbacks.
    manager:
        Queues the requests and handles their responses.
    backoff:
        Pause before a request is retried.
    request_timeout_ms:
        How long to wait for a response.
    """

    def __init__(
        self,
        client: NetworkClient,
        manager: ProducerManager,
        backoff: ExponentialBackoff,
        request_timeout_ms: float,
    ) -> None:
        self._client = client
        self.manager = manager
        self._backoff = backoff
        self._request_timeout_ms = request_timeout_ms
        self._in_flight: ControlRequest | None = None
        #: Whether the last turn could not send the manager's next request yet.
        self.has_unsent = False

    @property
    def is_busy(self) -> bool:
        """Whether a request is in flight."""
        return self._in_flight is not None

    def turn(self, now_ms: float) -> float:
        """Send the manager's next request if possible.

        Returns
        -------
        float
            Milliseconds until the next call is due; infinity if only a network event requires another call.
        """
        self.has_unsent = False
        if self._in_flight is not None:
            return math.inf
        request = self.manager.next_request(now_ms)
        if request is None:
            return math.inf
        if request.is_retry and request.not_before_ms is None:
            request.not_before_ms = now_ms + self._backoff_ms(request)
        wait_ms = 0.0 if request.not_before_ms is None else request.not_before_ms - now_ms
        if wait_ms > 0:
            self._put_back(request)
            return wait_ms
        if request.coordinator is None:
            return self._send_to_any(request, now_ms)
        return self._send_to_coordinator(request, request.coordinator, now_ms)

    def _put_back(self, request: ControlRequest) -> None:
        self.has_unsent = True
        self.manager.requeue(request)

    def _backoff_ms(self, request: ControlRequest) -> float:
        if request.backoff_ms is not None:
            return request.backoff_ms
        return self._backoff.backoff_ms(request.attempts - 1)

    def _send_to_any(self, request: ControlRequest, now_ms: float) -> float:
        node = self._client.least_loaded_node(now_ms)
        if node is None:
            self._put_back(request)
            return self._backoff.backoff_ms(0)
        if not self._client.ready(node, now_ms):
            self._put_back(request)
            return self._client.poll_delay_ms(node, now_ms)
        self._send(request, node, now_ms)
        return math.inf

    def _send_to_coordinator(self, request: ControlRequest, kind: str, now_ms: float) -> float:
        node = self.manager.coordinator(kind, request.key)
        if node is None:
            self.manager.lookup_coordinator(request)
            return 0.0
        if not self._client.ready(node, now_ms):
            if self._client.connection_failed(node):
                request.mark_retry()
                self.manager.lookup_coordinator(request)
                return 0.0
            self._put_back(request)
            return self._client.poll_delay_ms(node, now_ms)
        self._send(request, node, now_ms)
        return math.inf

    def _send(self, request: ControlRequest, node: Node, now_ms: float) -> None:
        def on_response(response: ClientResponse) -> None:
            self._handle(request, response)

        client_request: ClientRequest = self._client.new_client_request(
            node.node_id,
            request.message,
            now_ms,
            request_timeout_ms=self._request_timeout_ms,
            callback=on_response,
            max_version=request.max_version,
        )
        logger.debug("sending %r to node %d", request, node.node_id)
        self._in_flight = request
        self._client.send(client_request, now_ms)

    def _handle(self, request: ControlRequest, response: ClientResponse) -> None:
        self._in_flight = None
        if not response.disconnected or response.authentication_error is not None:
            request.on_response(response)
        elif request.coordinator is None:
            self.manager.retry(request)
        else:
            request.mark_retry()
            self.manager.lookup_coordinator(request)
