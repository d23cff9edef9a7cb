"""The state that a partition keeps of an idempotent producer: its most recent batches."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

#: Number of batches kept per producer. A producer may have this many batches in flight, and may retry each of
#: them.
BATCHES_TO_RETAIN = 5
NO_SEQUENCE = -1


class BatchMetadata(NamedTuple):
    """Sequence numbers and offsets of one batch of a producer."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    #: Milliseconds since the epoch.
    timestamp: int


@dataclass(slots=True)
class ProducerStateEntry:
    """The state of one producer."""

    producer_id: int
    producer_epoch: int
    #: Timestamp of the last batch, in milliseconds since the epoch.
    last_timestamp: int
    coordinator_epoch: int = -1
    #: First offset of the open transaction, or -1.
    current_txn_first_offset: int = -1
    #: Most recent batches, oldest first.
    batches: deque[BatchMetadata] = field(default_factory=lambda: deque(maxlen=BATCHES_TO_RETAIN))

    @property
    def last_sequence(self) -> int:
        """Last sequence number of the last batch, or -1 if no batch is known."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE
