"""Send one request and wait for its response, in the thread of the caller."""

from __future__ import annotations

import logging

from kafkacore.client import ClientResponse, NetworkClient
from kafkacore.clock import Clock
from kafkacore.errors import KafkaError, KafkaTimeoutError, RetriableError, UnsupportedVersionError
from kafkacore.protocol.message import RequestMessage, ResponseMessage, ResponseT

logger = logging.getLogger(__name__)


class Requester:
    """Sends requests to any available broker and waits for their responses.

    Parameters
    ----------
    client:
        Network client. It must be used by one thread at a time.
    clock:
        Measures the time limits.
    bootstrap_servers:
        Addresses for the message of a time-out.
    """

    def __init__(self, client: NetworkClient, clock: Clock, bootstrap_servers: str) -> None:
        self._client = client
        self._clock = clock
        self._bootstrap_servers = bootstrap_servers

    def send(self, request: RequestMessage[ResponseT], timeout_ms: float) -> ResponseT:
        """Send ``request`` to any broker and return its response.

        A broker that is not the controller forwards the request to the controller.

        Raises
        ------
        KafkaTimeoutError
            No broker responded within ``timeout_ms``. A broker may have executed the request nevertheless.
        AuthenticationFailedError
            The broker rejected the client's credentials, or its own certificate is not valid.
        UnsupportedVersionError
            The broker does not support the request.
        """
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        while (left_ms := deadline_ms - self._clock.monotonic_ms()) > 0:
            response = self._try_once(request, left_ms)
            if response is not None:
                _raise_final(response.authentication_error)
            if response is None or response.disconnected:
                logger.debug("%s: no response, retrying", type(request).__name__)
                continue
            if response.version_mismatch is not None:
                raise UnsupportedVersionError(str(response.version_mismatch))
            answer: ResponseT = response.message
            return answer
        connection_errors = self._client.connection_errors.summary()
        raise KafkaTimeoutError(
            f"no broker of {self._bootstrap_servers} answered {type(request).__name__} within "
            f"{timeout_ms:.0f} ms: is it running, and is the address right?"
            + (f" ({connection_errors})" if connection_errors else "")
        )

    def _try_once(self, request: RequestMessage[ResponseMessage], left_ms: float) -> ClientResponse | None:
        now_ms = self._clock.monotonic_ms()
        node = self._client.least_loaded_node(now_ms)
        if node is None or not self._client.ready(node, now_ms):
            wait_ms = 100.0 if node is None else self._client.connection_delay(node, now_ms)
            self._client.poll(min(left_ms, max(wait_ms, 1.0), 100.0), now_ms)
            if node is not None:
                _raise_final(self._client.authentication_error(node))
            return None
        client_request = self._client.new_client_request(
            node.node_id, request, now_ms, request_timeout_ms=int(max(left_ms, 1))
        )
        self._client.send(client_request, now_ms)
        while True:
            now_ms = self._clock.monotonic_ms()
            for response in self._client.poll(100.0, now_ms):
                if response.request is client_request:
                    return response


def _raise_final(error: KafkaError | None) -> None:
    """Raise an error that a retry cannot resolve."""
    if error is not None and not isinstance(error, RetriableError):
        raise error
