"""Requests of a producer that contain no records: for a producer id, or for a step of a transaction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from kafkacore.client import ClientResponse
from kafkacore.protocol import Request, request_class_of


class ControlRequest(ABC):
    """One control request, which exists until its response has been handled.

    Parameters
    ----------
    message:
        The request message.
    coordinator:
        Type of the coordinator that receives the request, ``"transaction"`` or ``"group"``. With ``None``,
        the least loaded node receives the request.
    key:
        Transactional id or group id whose coordinator receives the request.
    max_version:
        Newest version to use; ``None`` for the newest version of the message.
    backoff_ms:
        Fixed pause before a retry; ``None`` for the exponential back-off of the producer.

    Attributes
    ----------
    is_retry, attempts:
        Whether the request has been sent before, and how many times.
    not_before_ms:
        Time before which a retry must not be sent, by the producer's clock. The ControlChannel sets it.
    """

    __slots__ = (
        "attempts", "backoff_ms", "coordinator", "is_retry", "key", "max_version", "message",
        "not_before_ms",
    )  # fmt: skip

    def __init__(
        self,
        message: Request[Any],
        *,
        coordinator: str | None = None,
        key: str | None = None,
        max_version: int | None = None,
        backoff_ms: float | None = None,
    ) -> None:
        self.message = message
        self.coordinator = coordinator
        self.key = key
        self.max_version = max_version
        self.backoff_ms = backoff_ms
        self.is_retry = False
        self.attempts = 0
        self.not_before_ms: float | None = None

    @abstractmethod
    def on_response(self, response: ClientResponse) -> None:
        """Handle the response, on the network thread.

        A response without a message has a ``version_mismatch`` or an ``authentication_error``. If the
        connection was closed before the response arrived, the request is retried, and this method is not
        called.
        """

    def mark_retry(self) -> None:
        """Mark the request for a retry after a back-off."""
        self.is_retry = True
        self.attempts += 1
        self.not_before_ms = None

    def __repr__(self) -> str:
        return f"ControlRequest({request_class_of(self.message).NAME}, attempts={self.attempts})"
