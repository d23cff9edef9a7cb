"""A request of the producer that carries no records: its identity, or a step of a transaction.

What has to be asked in, its answer to whoever asks out. Does not know: nodes, connections, when it is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkacore.client import ClientResponse
from kafkacore.protocol import RequestMessage


class ControlRequest:
    """One question, until it is answered.

    Parameters
    ----------
    message:
        What is asked.
    on_response:
        Called on the network thread with the answer; or with a response without one, whose
        ``version_mismatch`` or ``authentication_error`` says why there never will be. Not called where the
        connection ended first: then it is asked again.
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
        "not_before_ms", "on_response",
    )  # fmt: skip

    def __init__(
        self,
        message: RequestMessage[Any],
        on_response: Callable[[ClientResponse], None],
        *,
        coordinator: str | None = None,
        key: str | None = None,
        max_version: int | None = None,
        backoff_ms: float | None = None,
    ) -> None:
        self.message = message
        self.on_response = on_response
        self.coordinator = coordinator
        self.key = key
        self.max_version = max_version
        self.backoff_ms = backoff_ms
        self.is_retry = False
        self.attempts = 0
        self.not_before_ms: float | None = None

    def mark_retry(self) -> None:
        """It has been asked in vain: the next time after a back-off."""
        self.is_retry = True
        self.attempts += 1
        self.not_before_ms = None

    def __repr__(self) -> str:
        return f"ControlRequest({self.message.NAME}, attempts={self.attempts})"
