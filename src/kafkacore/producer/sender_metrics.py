"""What the Sender tells of its work, batch by batch; here nobody listens.

Does not know: what becomes of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkacore.producer.batch import ProducerBatch


class SenderMetrics:
    """Called on the network thread; this one counts nothing."""

    def sent(self, batches: Sequence[ProducerBatch], now_ms: float) -> None:
        """A request with ``batches`` is about to be sent."""

    def acknowledged(self, batch: ProducerBatch) -> None:
        """The records of ``batch`` are in the log, or nobody was to be asked (``acks=0``)."""

    def retried(self, batch: ProducerBatch) -> None:
        """``batch`` is to be sent again."""

    def split(self, batch: ProducerBatch) -> None:
        """``batch`` is too large for its broker, and its halves are to be sent."""

    def failed(self, batch: ProducerBatch) -> None:
        """The records of ``batch`` are given up."""
