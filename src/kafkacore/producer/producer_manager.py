"""The interface between the network thread and the manager of an idempotent or transactional producer."""

from __future__ import annotations

from typing import Protocol

from kafkacore.errors import KafkaError
from kafkacore.producer._batch import ProducerBatch
from kafkacore.producer.control_request import ControlRequest
from kafkacore.structs import Node


class ProducerManager(Protocol):
    """The methods of a manager that the Sender, the ControlChannel and the RecordAccumulator call.

    IdempotenceManager and TransactionManager implement this interface.

    Attributes
    ----------
    abortable_error:
        The error with which the Sender fails the waiting records. The Sender then resets this attribute, and
        later records may succeed.
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
        """The newest version of a produce request to use; ``None`` for no limit."""

    @property
    def is_completing(self) -> bool:
        """Whether every batch has to be sent at once because its transaction is ending."""

    @property
    def has_work(self) -> bool:
        """Whether the producer's ``close()`` has to wait for the manager's requests."""

    # ---- Batches -------------------------------------------------------------------------------------------

    def may_send(self) -> bool:
        """Return whether batches may be drained: the producer has an id and no fatal error."""

    def may_drain(self, batch: ProducerBatch) -> bool:
        """Return whether the first batch of a queue may be drained now."""

    def assign(self, batch: ProducerBatch) -> None:
        """Assign sequence numbers to a drained batch that has no numbers yet."""

    def completed(self, batch: ProducerBatch, base_offset: int) -> None:
        """Handle a batch that the broker has written, even if the batch has failed before.

        Parameters
        ----------
        base_offset:
            Offset of the first record, or -1 if it is unknown because the batch is a duplicate.
        """

    def can_retry(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int) -> bool:
        """Return whether to retry a rejected batch. The caller has checked that attempts and time are left.

        Parameters
        ----------
        log_start_offset:
            First offset of the partition; -1 if the response does not contain it.
        """

    def failed(self, batch: ProducerBatch, error: KafkaError) -> KafkaError:
        """Handle a batch that has failed: it was rejected, has expired, or has no retries left.

        Returns
        -------
        KafkaError
            The error to set for the batch's records, which may be more specific than the broker's error.
        """

    def split(self, batch: ProducerBatch, halves: list[ProducerBatch]) -> None:
        """Replace ``batch`` by ``halves``, which have the same sequence numbers."""

    def reset_sequences(self) -> None:
        """Start every partition at sequence 0."""

    # ---- Iterations of the network thread ------------------------------------------------------------------

    def begin_turn(self, now_ms: float, has_batches: bool) -> None:
        """Do the work that the last responses require, at the start of an iteration.

        Parameters
        ----------
        has_batches:
            Whether batches wait to be sent.
        """

    def next_turn_ms(self, now_ms: float) -> float:
        """Return the milliseconds after which :meth:`begin_turn` must be called even without an event."""

    def begin_close(self, now_ms: float) -> None:
        """Begin to close the producer. :attr:`has_work` is true while ``close()`` has to wait."""

    def close(self) -> None:
        """Fail all waiting calls and requests, because no more requests will be sent."""

    # ---- Requests ------------------------------------------------------------------------------------------

    def next_request(self, now_ms: float) -> ControlRequest | None:
        """Remove and return the next request to send.

        The caller passes the request to :meth:`requeue`, :meth:`retry` or :meth:`lookup_coordinator`, or
        calls the request's ``on_response``.
        """

    def requeue(self, request: ControlRequest) -> None:
        """Put a request back into the queue, because it could not be sent yet."""

    def retry(self, request: ControlRequest) -> None:
        """Put a request back into the queue, to be retried after a back-off."""

    def coordinator(self, kind: str, key: str | None) -> Node | None:
        """Return the coordinator of ``key``, or ``None`` if the coordinator is unknown.

        Parameters
        ----------
        kind:
            ``"transaction"`` or ``"group"``.
        key:
            Transactional id or group id.
        """

    def lookup_coordinator(self, request: ControlRequest) -> None:
        """Look up the coordinator of ``request``, then send the request."""
