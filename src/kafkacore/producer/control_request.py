"""A request of the producer that carries no records: for its identity, or for a step of a transaction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from kafkacore.client import ClientResponse
from kafkacore.protocol import Request, request_class_of


class ControlRequest(ABC):
    """One question, until it is answered.

    Parameters
    ----------
    message:
        What is asked.
    coordinator:
        ``None``: the least loaded node is asked. ``"transaction"`` or ``"group"``: the coordinator of
        ``key``.
    max_version:
        Newest version to ask in; ``None`` for the message's own.
    backoff_ms:
        Fixed wait before it is asked again; ``None`` for the producer's, which grows.

    Attributes
    ----------
    is_retry, attempts:
        Whether it has been asked before; how often.
    not_before_ms:
        By the producer's clock; set by the channel once it knows that it is a retry.
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
        """Work in the response, on the network thread.

        A response without a message has a ``version_mismatch`` or an ``authentication_error``. Where the
        connection was closed first, this is not called and the request is sent again.
        """

    def mark_retry(self) -> None:
        """It has been asked in vain: the next time after a back-off."""
        self.is_retry = True
        self.attempts += 1
        self.not_before_ms = None

    def __repr__(self) -> str:
        return f"ControlRequest({request_class_of(self.message).NAME}, attempts={self.attempts})"
