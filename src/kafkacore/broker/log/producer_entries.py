"""What is known of an idempotent producer: its last batches. Does not know: what they are good for."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

#: Batches in flight that a producer may have unanswered, and so may send again.
BATCHES_TO_RETAIN = 5
NO_SEQUENCE = -1


class BatchMetadata(NamedTuple):
    """One batch of a producer. Times in milliseconds since the epoch."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


@dataclass(slots=True)
class ProducerStateEntry:
    """The last batches of one producer, oldest first."""

    producer_id: int
    producer_epoch: int
    last_timestamp: int
    coordinator_epoch: int = -1
    current_txn_first_offset: int = -1
    batches: deque[BatchMetadata] = field(default_factory=lambda: deque(maxlen=BATCHES_TO_RETAIN))

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE
