"""Complete batches in flight: acknowledge, retry, split, expire or fail them."""

from __future__ import annotations

import logging
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
from kafkacore.producer._batch import ProducerBatch
from kafkacore.producer.produce_outcome import may_be_written, produce_error
from kafkacore.producer.produce_request import PartitionAnswer
from kafkacore.producer.record_accumulator import RecordAccumulator
from kafkacore.producer.sender_metrics import SenderMetrics
from kafkacore.structs import TopicPartition, partition_name

logger = logging.getLogger("kafkacore.producer")


class BatchCompletion:
    """The batches in flight of one Sender.

    Parameters
    ----------
    accumulator:
        Queues retried batches. Its ProducerManager, if it has one, handles every outcome.
    acks:
        0, 1, or -1 for all in-sync replicas.
    retries:
        How often a batch is retried at most.
    guarantee_message_order:
        Keep at most one batch of a partition in flight.
    metrics:
        Counts outcomes of batches.
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
        #: Batches on their way; in the order in which they were sent.
        self._in_flight: dict[ProducerBatch, None] = {}
        #: How the last attempt ended at a batch that is sent again; text, for errors keep frames.
        self._last_refusals: dict[TopicPartition, str] = {}
        #: None of those expires earlier.
        self._no_expiry_before_ms = math.inf

    @property
    def has_in_flight(self) -> bool:
        return bool(self._in_flight)

    def begin(self, batch: ProducerBatch) -> None:
        """The batch has been taken to be sent."""
        batch.in_flight = True
        self._in_flight[batch] = None
        deadline_ms = self._accumulator.deadline_ms(batch)
        if deadline_ms < self._no_expiry_before_ms:
            self._no_expiry_before_ms = deadline_ms
        if self._guarantee_message_order:
            self._accumulator.mute(batch.topic_partition, True)

    def ended_before_request(self, batch: ProducerBatch) -> bool:
        """Whether the batch has an outcome though no request was made; then none holds it any more."""
        if batch.done:
            self._request_ended(batch)
        return batch.done

    # ---- Answers -----------------------------------------------------------------------------------------

    def handle(self, batch: ProducerBatch, answer: PartitionAnswer, now_ms: float) -> None:
        """The request of ``batch`` has ended: answered, or never to be."""
        try:
            self._handle(batch, answer, now_ms)
        except Exception as failure:
            # A bug of ours with one batch shall leave no future of any without an outcome.
            logger.exception("the answer for %s could not be worked in", batch)
            if not batch.done:
                self.fail(batch, KafkaError(f"the broker's answer could not be worked in: {failure!r}"))

    def _handle(self, batch: ProducerBatch, answer: PartitionAnswer, now_ms: float) -> None:
        error = answer.error
        if self._idempotence is not None and isinstance(error, DuplicateSequenceNumberError):
            # The broker has it, from an attempt whose answer was lost, and does not remember where.
            error = None
        if batch.done:
            # Expired or aborted meanwhile: the answer comes too late, but the memory is free now.
            self._request_ended(batch)
            if error is None and self._idempotence is not None:
                self._idempotence.completed(batch, answer.base_offset)
        elif error is None:
            self._acknowledge(batch, answer)
        else:
            self._refuse(batch, error, answer, now_ms)

    def _acknowledge(self, batch: ProducerBatch, answer: PartitionAnswer) -> None:
        self._request_ended(batch, release=False)
        self._last_refusals.pop(batch.topic_partition, None)
        if self._idempotence is not None:
            self._idempotence.completed(batch, answer.base_offset)
        self._metrics.acknowledged(batch)
        self._accumulator.release(batch)
        batch.complete(answer.base_offset, answer.log_append_time_ms)
        # Last, for a flush that begins meanwhile has to find it.
        self._accumulator.incomplete.pop(batch, None)

    def _refuse(
        self, batch: ProducerBatch, error: KafkaError, answer: PartitionAnswer, now_ms: float
    ) -> None:
        batch.possibly_persisted |= may_be_written(error, self._acks)
        self._request_ended(batch, release=False)
        if isinstance(error, MessageSizeTooLargeError | RecordListTooLargeError) and batch.record_count > 1:
            logger.warning("%s is too large for its broker (%s) and is sent in halves", batch, error)
            self._metrics.split(batch)
            self._accumulator.split_and_reenqueue(batch)
        elif self._can_retry(batch, error, answer, now_ms):
            logger.debug("%s is sent again: %s", batch, error)
            self._last_refusals[batch.topic_partition] = str(error)
            self._metrics.retried(batch)
            self._accumulator.reenqueue(batch, now_ms)
        else:
            self.fail(batch, error, answer.record_errors)

    def _can_retry(
        self, batch: ProducerBatch, error: KafkaError, answer: PartitionAnswer, now_ms: float
    ) -> bool:
        if batch.attempts >= self._retries or self._accumulator.deadline_ms(batch) <= now_ms:
            return False
        if self._idempotence is None:
            return error.retriable
        return self._idempotence.can_retry(batch, error, answer.log_start_offset)

    def _request_ended(self, batch: ProducerBatch, *, release: bool = True) -> None:
        self._in_flight.pop(batch, None)
        batch.in_flight = False
        if self._guarantee_message_order:
            self._accumulator.mute(batch.topic_partition, False)
        if release:
            self._accumulator.release(batch)

    # ---- Failure -----------------------------------------------------------------------------------------

    def not_sent(self, batch: ProducerBatch, error: KafkaError) -> None:
        """No request could be made of a batch that had been taken for one."""
        self._request_ended(batch)
        self.fail(batch, error)

    def fail(
        self, batch: ProducerBatch, error: KafkaError, record_errors: dict[int, KafkaError] | None = None
    ) -> None:
        """Give the batch up."""
        self._metrics.failed(batch)
        if self._idempotence is not None:
            self._idempotence.failed(batch, error)
        if not batch.in_flight:
            self._accumulator.release(batch)
        for record_error in (record_errors or {}).values():
            produce_error(record_error, batch.possibly_persisted)
        batch.fail(produce_error(error, batch.possibly_persisted), record_errors or None)
        self._accumulator.incomplete.pop(batch, None)

    def abort(self, reason: KafkaError) -> None:
        """Fail what is incomplete with the class and text of ``reason``; memory of what is on its way stays
        taken until its request has ended.
        """
        self._accumulator.abort(self._error_of(reason))

    def abort_undrained(self, reason: KafkaError) -> None:
        """Fail what has never been taken to be sent."""
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
        """Fail what has not been acknowledged in its time, waiting or on its way."""
        if now_ms >= self._accumulator.no_expiry_before_ms:
            for batch in self._accumulator.expired_batches(now_ms):
                self.fail(batch, self._expired(batch, now_ms))
        if now_ms < self._no_expiry_before_ms:
            return
        for batch in list(self._in_flight):
            if not batch.done and self._accumulator.deadline_ms(batch) <= now_ms:
                # Its memory stays taken until the request has ended: the socket may hold half of it.
                batch.possibly_persisted = True
                self.fail(batch, self._expired(batch, now_ms))
        in_flight = (self._accumulator.deadline_ms(batch) for batch in self._in_flight if not batch.done)
        self._no_expiry_before_ms = min(in_flight, default=math.inf)

    def _expired(self, batch: ProducerBatch, now_ms: float) -> KafkaTimeoutError:
        ended, name = self._last_refusals.get(batch.topic_partition), partition_name(batch.topic_partition)
        return KafkaTimeoutError(
            f"{batch.record_count} record(s) for {name} expired: not acknowledged "
            f"{now_ms - batch.created_ms:.0f} ms (delivery_timeout_ms) after the first of them, "
            f"and {batch.attempts} retries" + (f"; the last one ended with {ended}" if ended else "")
        )

    def next_expiry_ms(self) -> float:
        """Nothing expires earlier."""
        return min(self._no_expiry_before_ms, self._accumulator.no_expiry_before_ms)
