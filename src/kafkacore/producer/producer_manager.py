"""The interface between the network thread and the manager of an idempotent or transactional producer."""

from __future__ import annotations

from typing import Protocol

from kafkacore.errors import KafkaError
from kafkacore.producer._batch import ProducerBatch
from kafkacore.producer.control_request import ControlRequest
from kafkacore.structs import Node


class ProducerManager(Protocol):
    """The interface of a manager to the Sender, the ControlChannel and the RecordAccumulator.

    IdempotenceManager and TransactionManager implement it.

    Attributes
    ----------
    abortable_error:
        The error with which the Sender fails the waiting records. The Sender then resets it, and later
        records may succeed.
    """

    abortable_error: KafkaError | None

    @property
    def error(self) -> KafkaError | None:
        """The fatal error, which every later ``send()`` raises, or ``None``."""

    @property
    def is_transactional(self) -> bool:
        """Whether records are sent in transactions."""

    @property
    def transactional_id(self) -> str | None:
        """The transactional id of produce requests; ``None`` without transactions."""

    @property
    def produce_max_version(self) -> int | None:
        """The newest version of a produce request; ``None`` for any."""

    @property
    def is_completing(self) -> bool:
        """Whether every batch has to be sent at once because its transaction is ending."""

    @property
    def has_work(self) -> bool:
        """Whether the producer's ``close()`` has to wait for the manager's requests."""

    # ---- Batches -------------------------------------------------------------------------------------------

    def may_send(self) -> bool:
        """Return whether batches may be drained: there is a producer id and no fatal error."""

    def may_drain(self, batch: ProducerBatch) -> bool:
        """Return whether the first batch of a queue may be drained now."""

    def assign(self, batch: ProducerBatch) -> None:
        """Assign sequence numbers to a drained batch that has none."""

    def completed(self, batch: ProducerBatch, base_offset: int) -> None:
        """Handle a batch that the broker has written, even if the batch has failed before.

        Parameters
        ----------
        base_offset:
            Offset of the first record. -1 if unknown, because the batch is a duplicate of an old one.
        """

    def can_retry(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int) -> bool:
        """Return whether to retry a rejected batch that has attempts and time left.

        Parameters
        ----------
        log_start_offset:
            First offset of the partition; -1 if the response does not have it.
        """

    def failed(self, batch: ProducerBatch, error: KafkaError) -> KafkaError:
        """Handle a batch that has failed: it was rejected, has expired, or has no retries left.

        Returns
        -------
        KafkaError
            The error of its records, which may be more specific than the broker's.
        """

    def split(self, batch: ProducerBatch, halves: list[ProducerBatch]) -> None:
        """Replace ``batch`` by ``halves``, which have its sequence numbers."""

    def reset_sequences(self) -> None:
        """Start every partition at sequence 0."""

    # ---- Iterations of the network thread ------------------------------------------------------------------

    def begin_turn(self, now_ms: float, has_batches: bool) -> None:
        """Do what the last responses require, at the start of an iteration.

        Parameters
        ----------
        has_batches:
            Whether batches wait to be sent.
        """

    def next_turn_ms(self, now_ms: float) -> float:
        """Return the milliseconds after which :meth:`begin_turn` must be called even if nothing happens."""

    def begin_close(self, now_ms: float) -> None:
        """Begin to close the producer. :attr:`has_work` is true while the close has to wait."""

    def close(self) -> None:
        """Fail all waiting calls and requests, because nothing will be sent any more."""

    # ---- Requests ------------------------------------------------------------------------------------------

    def next_request(self, now_ms: float) -> ControlRequest | None:
        """Remove and return the next request to send.

        The caller passes it to :meth:`requeue`, :meth:`retry` or :meth:`lookup_coordinator`, or calls its
        ``on_response``.
        """

    def requeue(self, request: ControlRequest) -> None:
        """Put a request that could not be sent yet back into the queue."""

    def retry(self, request: ControlRequest) -> None:
        """Put a request back into the queue, to be retried after a back-off."""

    def coordinator(self, kind: str, key: str | None) -> Node | None:
        """Return the coordinator of ``key``, or ``None`` if it is unknown.

        Parameters
        ----------
        kind:
            ``"transaction"`` or ``"group"``.
        key:
            Transactional id or group id.
        """

    def lookup_coordinator(self, request: ControlRequest) -> None:
        """Look up the coordinator of ``request``, then send the request."""
