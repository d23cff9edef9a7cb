"""One request, one answer: a protocol message in, the broker's message out, or an error within the deadline.

Runs on the caller's thread. Does not know: what is asked.
"""

from __future__ import annotations

import logging

from kafkacore.client import ClientResponse, NetworkClient
from kafkacore.clock import Clock
from kafkacore.errors import KafkaError, KafkaTimeoutError, RetriableError, UnsupportedVersionError
from kafkacore.protocol.message import RequestMessage, ResponseMessage, ResponseT

logger = logging.getLogger(__name__)


class Requester:
    """Sends a request to a broker that can take it and waits for the answer.

    Parameters
    ----------
    client:
        Used by one thread at a time.
    bootstrap_servers:
        As text, for the message of a time-out.
    """

    def __init__(self, client: NetworkClient, clock: Clock, bootstrap_servers: str) -> None:
        self._client = client
        self._clock = clock
        self._bootstrap_servers = bootstrap_servers

    def ask(self, request: RequestMessage[ResponseT], timeout_ms: float) -> ResponseT:
        """The answer to ``request`` by any broker (one that is not the controller passes it on).

        Raises
        ------
        KafkaTimeoutError
            No broker answered within ``timeout_ms``. The request may have been carried out all the same.
        AuthenticationFailedError
            A broker does not let us in, or we do not believe that it is one.
        UnsupportedVersionError
            The broker does not know the request.
        """
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        while (left_ms := deadline_ms - self._clock.monotonic_ms()) > 0:
            response = self._try_once(request, left_ms)
            if response is not None:
                _raise_final(response.authentication_error)
            if response is None or response.disconnected:
                logger.debug("%s: asking again", type(request).__name__)
                continue
            if response.version_mismatch is not None:
                raise UnsupportedVersionError(str(response.version_mismatch))
            answer: ResponseT = response.message
            return answer
        troubles = self._client.connection_errors.summary()
        raise KafkaTimeoutError(
            f"no broker of {self._bootstrap_servers} answered {type(request).__name__} within "
            f"{timeout_ms:.0f} ms: is it running, and is the address right?"
            + (f" ({troubles})" if troubles else "")
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
        asked = self._client.new_client_request(
            node.node_id, request, now_ms, request_timeout_ms=int(max(left_ms, 1))
        )
        self._client.send(asked, now_ms)
        while True:
            now_ms = self._clock.monotonic_ms()
            for response in self._client.poll(100.0, now_ms):
                if response.request is asked:
                    return response


def _raise_final(error: KafkaError | None) -> None:
    """What another try does not mend."""
    if error is not None and not isinstance(error, RetriableError):
        raise error
