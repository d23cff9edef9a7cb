"""The purgatory, which holds requests that cannot be answered yet, and its operations."""

from __future__ import annotations

from typing import Protocol

from kafkacore.broker.purgatory._delayed_operation import (
    NEVER_MS,
    DelayedFetch,
    DelayedOperation,
    DelayedOperationPurgatory,
    DelayedProduce,
)

__all__ = [
    "NEVER_MS",
    "DelayedFetch",
    "DelayedOperation",
    "DelayedOperationPurgatory",
    "DelayedProduce",
    "PendingPartition",
]


class PendingPartition(Protocol):
    """A partition to which a Produce request has appended records."""

    def outcome(self) -> int | None:
        """Return 0 if the records are safe, an error code if they are lost, ``None`` until this is known."""
        ...
