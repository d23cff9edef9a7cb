"""Decide what happens to batches in flight: acknowledge, retry, split, expire or fail them."""

from __future__ import annotations

import math
from collections.abc import Callable

from kafkacore.clock import Clock
from kafkacore.errors import (
    DuplicateSequenceNumberError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
)
from kafkacore.logs import logger_of
from kafkacore.producer._batch import ProducerBatch
from kafkacore.producer.produce_outcome import may_be_written, produce_error
from kafkacore.producer.produce_request import PartitionResponse
from kafkacore.producer.record_accumulator import RecordAccumulator
from kafkacore.producer.sender_metrics import SenderMetrics
from kafkacore.structs import TopicPartition, partition_name

logger = logger_of("kafkacore.producer")


class BatchCompletion:
    """The batches in flight of one Sender.

    Parameters
    ----------
    accumulator:
        Queues batches for a retry. If the accumulator has a ProducerManager, the manager handles every
        outcome.
    clock:
        Source of the time of each outcome.
    acks:
        0, 1, or -1 for all in-sync replicas.
    retries:
        Maximum number of retries of a batch.
    guarantee_message_order:
        Whether to keep at most one batch of a partition in flight.
    metrics:
        Counts the outcomes of batches.
    """

    def __init__(
        self,
        accumulator: RecordAccumulator,
        clock: Clock,
        *,
        acks: int,
        retries: float,
        guarantee_message_order: bool,
        metrics: SenderMetrics,
    ) -> None:
        self._accumulator = accumulator
        self._clock = clock
        self._idempotence = accumulator.idempotence
        self._acks = acks
        self._retries = retries
        self._guarantee_message_order = guarantee_message_order
        self._metrics = metrics
        #: Batches in flight, in the order in which they were sent.
        self.in_flight: dict[ProducerBatch, None] = {}
        #: Partition → last error of its batches that are retried. The error is kept as text, because an
        #: exception would keep its stack frames alive.
        self._last_errors: dict[TopicPartition, str] = {}
        #: No batch in flight expires before this time.
        self.no_expiry_before_ms = math.inf

    @property
    def has_in_flight(self) -> bool:
        return bool(self.in_flight)

    def begin(self, batch: ProducerBatch) -> None:
        """Add a drained batch to the batches in flight."""
        batch.in_flight = True
        self.in_flight[batch] = None
        self.no_expiry_before_ms = min(self.no_expiry_before_ms, self._accumulator.deadline_ms(batch))
        if self._guarantee_message_order:
            self._accumulator.mute(batch.topic_partition, True)

    def ended_before_request(self, batch: ProducerBatch) -> bool:
        """Return whether the batch was completed before its request was built.

        If so, release the batch's memory, because no request refers to the batch.
        """
        if batch.done:
            self._request_ended(batch)
        return batch.done

    # ---- Responses ---------------------------------------------------------------------------------------

    def handle(self, batch: ProducerBatch, response: PartitionResponse, now_ms: float) -> None:
        """Handle the outcome of the request that contained ``batch``, with or without a response."""
        try:
            self._handle(batch, response, now_ms)
        except Exception as failure:
            # A bug in the handling of one batch must not leave the futures of other batches incomplete.
            logger.exception("unexpected error while handling the produce response for %s", batch)
            if not batch.done:
                self.fail(
                    batch, KafkaError(f"unexpected error while handling the produce response: {failure!r}")
                )

    def _handle(self, batch: ProducerBatch, response: PartitionResponse, now_ms: float) -> None:
        error = response.error
        if self._idempotence is not None and isinstance(error, DuplicateSequenceNumberError):
            # The broker wrote the batch in an earlier attempt, whose response was lost. The broker no longer
            # knows the batch's offset.
            error = None
        if batch.done:
            # The batch has expired or was aborted. Its last request has ended with this response, so release
            # the batch's memory now.
            self._request_ended(batch)
            if error is None and self._idempotence is not None:
                self._idempotence.completed(batch, response.base_offset)
        elif error is None:
            self._acknowledge(batch, response)
        else:
            self._refuse(batch, error, response, now_ms)

    def _acknowledge(self, batch: ProducerBatch, response: PartitionResponse) -> None:
        self._request_ended(batch, release=False)
        self._last_errors.pop(batch.topic_partition, None)
        if self._idempotence is not None:
            self._idempotence.completed(batch, response.base_offset)
        self._metrics.acknowledged(batch)
        self._accumulator.release(batch)
        batch.complete(response.base_offset, response.log_append_time_ms)
        # Remove the batch last, because a flush that begins in the meantime must still wait for the batch.
        self._accumulator.incomplete.pop(batch, None)

    def _refuse(
        self, batch: ProducerBatch, error: KafkaError, response: PartitionResponse, now_ms: float
    ) -> None:
        batch.possibly_persisted |= may_be_written(error, self._acks)
        self._request_ended(batch, release=False)
        if isinstance(error, MessageSizeTooLargeError | RecordListTooLargeError) and batch.record_count > 1:
            logger.warning("%s is too large for the broker (%s): splitting it in two", batch, error)
            self._metrics.split(batch)
            self._accumulator.split_and_reenqueue(batch)
        elif self._can_retry(batch, error, response, now_ms):
            logger.debug("retrying %s: %s", batch, error)
            self._last_errors[batch.topic_partition] = str(error)
            self._metrics.retried(batch)
            self._accumulator.reenqueue(batch, now_ms)
        else:
            self.fail(batch, error, response.record_errors)

    def _can_retry(
        self, batch: ProducerBatch, error: KafkaError, response: PartitionResponse, now_ms: float
    ) -> bool:
        if batch.attempts >= self._retries or self._accumulator.deadline_ms(batch) <= now_ms:
            return False
        if self._idempotence is None:
            return error.retriable
        return self._idempotence.can_retry(batch, error, response.log_start_offset)

    def _request_ended(self, batch: ProducerBatch, *, release: bool = True) -> None:
        self.in_flight.pop(batch, None)
        batch.in_flight = False
        if self._guarantee_message_order:
            self._accumulator.mute(batch.topic_partition, False)
        if release:
            self._accumulator.release(batch)

    # ---- Failure -----------------------------------------------------------------------------------------

    def not_sent(self, batch: ProducerBatch, error: KafkaError) -> None:
        """Fail a drained batch whose request could not be sent."""
        self._request_ended(batch)
        self.fail(batch, error)

    def fail(
        self, batch: ProducerBatch, error: KafkaError, record_errors: dict[int, KafkaError] | None = None
    ) -> None:
        """Fail the batch permanently."""
        self._metrics.failed(batch)
        if self._idempotence is not None:
            error = self._idempotence.failed(batch, error)
        if not batch.in_flight:
            self._accumulator.release(batch)
        for record_error in (record_errors or {}).values():
            produce_error(record_error, batch.possibly_persisted)
        batch.fail(produce_error(error, batch.possibly_persisted), record_errors or None)
        self._accumulator.incomplete.pop(batch, None)

    def abort(self, reason: KafkaError) -> None:
        """Fail each incomplete batch with an error that has the class and text of ``reason``.

        The memory of a batch in flight is released when its request has completed.
        """
        self._accumulator.abort(self._error_of(reason))

    def abort_undrained(self, reason: KafkaError) -> None:
        """Fail the batches that have never been drained."""
        self._accumulator.abort_undrained(self._error_of(reason))

    def _error_of(self, reason: KafkaError) -> Callable[[ProducerBatch], KafkaError]:
        def error_of(batch: ProducerBatch) -> KafkaError:
            written = batch.possibly_persisted or batch.in_flight
            self._metrics.failed(batch)
            error = type(reason)(*reason.args)
            error.__cause__ = reason.__cause__
            return produce_error(error, written)

        return error_of

    # ---- Expiry ------------------------------------------------------------------------------------------

    def expire(self, now_ms: float) -> None:
        """Fail the batches that were not acknowledged in time, both waiting batches and batches in flight."""
        if now_ms >= self._accumulator.no_expiry_before_ms:
            for batch in self._accumulator.expired_batches(now_ms):
                self.fail(batch, self._expired(batch, now_ms))
        if now_ms < self.no_expiry_before_ms:
            return
        for batch in list(self.in_flight):
            if not batch.done and self._accumulator.deadline_ms(batch) <= now_ms:
                # The memory is released when the request has completed, because the socket may have sent only
                # a part of the batch.
                batch.possibly_persisted = True
                self.fail(batch, self._expired(batch, now_ms))
        in_flight = (self._accumulator.deadline_ms(batch) for batch in self.in_flight if not batch.done)
        self.no_expiry_before_ms = min(in_flight, default=math.inf)

    def _expired(self, batch: ProducerBatch, now_ms: float) -> KafkaTimeoutError:
        ended, name = self._last_errors.get(batch.topic_partition), partition_name(batch.topic_partition)
        return KafkaTimeoutError(
            f"{batch.record_count} record(s) for {name} expired: {now_ms - batch.created_ms:.0f} ms "
            f"(delivery_timeout_ms) have passed since the batch was created, with {batch.attempts} retries"
            + (f"; last error: {ended}" if ended else "")
        )

    def next_expiry_ms(self) -> float:
        """Return the time before which no batch expires."""
        return min(self.no_expiry_before_ms, self._accumulator.no_expiry_before_ms)
