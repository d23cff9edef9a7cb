"""The manager of an idempotent producer, which makes the broker write each record exactly once and in order.

See KIP-98, KIP-360 and KIP-679, and the parts of Apache Kafka's ``TransactionManager`` that do not concern
transactions.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from kafkacore.client import ClientResponse
from kafkacore.errors import (
    ClusterAuthorizationFailedError,
    KafkaError,
    MalformedMessageError,
    OutOfOrderSequenceNumberError,
    ProducerFencedError,
    TransactionalIdAuthorizationFailedError,
    UnknownProducerIdError,
    UnsupportedVersionError,
    for_code,
)
from kafkacore.logs import logger_of
from kafkacore.producer._batch import ProducerBatch
from kafkacore.producer._producer_id_state import ProducerIdState
from kafkacore.producer.control_request import ControlRequest
from kafkacore.protocol.generated.init_producer_id import InitProducerIdRequest
from kafkacore.structs import INT32_MAX, Node, TopicPartition

logger = logger_of("kafkacore.producer")

#: Errors of a batch after which the producer cannot send any more records.
FATAL = (
    ClusterAuthorizationFailedError,
    TransactionalIdAuthorizationFailedError,
    ProducerFencedError,
    UnsupportedVersionError,
)


class ProducerIdRequest(ControlRequest):
    """Requests a producer id for a producer without transactions.

    Parameters
    ----------
    handle:
        Function that is called with the request and its response.
    """

    __slots__ = ("_handle",)

    def __init__(self, handle: Callable[[ControlRequest, ClientResponse], None]) -> None:
        super().__init__(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=INT32_MAX))
        self._handle = handle

    def on_response(self, response: ClientResponse) -> None:
        self._handle(self, response)


class IdempotenceManager:
    """The ProducerManager of an idempotent producer without transactions.

    Only the network thread uses this object.

    Attributes
    ----------
    id_state:
        Producer id, epoch and sequence numbers.
    error:
        The fatal error, which every later ``send()`` raises, or ``None``.
    abortable_error:
        The error with which the Sender fails the waiting records. The Sender then resets this attribute, and
        later records may succeed.
    """

    is_transactional = False
    transactional_id: str | None = None
    produce_max_version: int | None = None
    is_completing = False
    has_work = False

    def __init__(self) -> None:
        self.id_state = ProducerIdState()
        self.error: KafkaError | None = None
        self.abortable_error: KafkaError | None = None
        #: Partitions whose errors require a new producer epoch.
        self._to_bump: dict[TopicPartition, None] = {}
        #: Whether begin_turn() has work to do.
        self.wants_turn = False
        self._queued: ControlRequest | None = None
        self._wants_id = True
        self._now_ms = 0.0

    @property
    def producer_id(self) -> int:
        """The producer id; -1 until a broker has assigned an id."""
        return self.id_state.producer_id

    @property
    def producer_epoch(self) -> int:
        """The producer epoch; -1 until a broker has assigned an epoch."""
        return self.id_state.producer_epoch

    # ---- Batches -------------------------------------------------------------------------------------------

    def may_send(self) -> bool:
        return self.id_state.producer_id >= 0 and self.error is None

    def may_drain(self, batch: ProducerBatch) -> bool:
        return self.id_state.may_drain(batch, self._now_ms)

    def assign(self, batch: ProducerBatch) -> None:
        self.id_state.assign(batch, False)

    def completed(self, batch: ProducerBatch, base_offset: int) -> None:
        self.id_state.acknowledge(batch, base_offset, self._now_ms)

    def can_retry(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int) -> bool:
        if isinstance(error, OutOfOrderSequenceNumberError):
            if self.id_state.is_next(batch):
                self._request_bump(batch.topic_partition)
            return True
        if isinstance(error, UnknownProducerIdError):
            # The broker returns UNKNOWN_PRODUCER_ID for every batch of the partition. The first of these
            # errors resets the sequence numbers of all the batches.
            if log_start_offset >= 0 and not batch.sequence_has_been_reset:
                self._request_bump(batch.topic_partition)
            return True
        return error.retriable

    def failed(self, batch: ProducerBatch, error: KafkaError) -> KafkaError:
        if isinstance(error, FATAL):
            self.fail(error)
        if self.id_state.give_up(batch):
            self.wants_turn = True
        return error

    def split(self, batch: ProducerBatch, halves: list[ProducerBatch]) -> None:
        self.id_state.split(batch, halves)

    def fail(self, error: KafkaError) -> None:
        """Stop sending permanently. The first error is kept."""
        if self.error is None:
            logger.error("the producer cannot send any more records and must be closed: %s", error)
            self.error = error
            self.wants_turn = True

    def begin_close(self, now_ms: float) -> None:
        """Do nothing: when a producer without transactions closes, it waits only for batches."""

    def close(self) -> None:
        """Do nothing, because no thread waits for this manager."""

    def reset_sequences(self) -> None:
        self.id_state.reset_sequences()
        self._to_bump.clear()

    # ---- Epochs --------------------------------------------------------------------------------------------

    def begin_turn(self, now_ms: float, has_batches: bool) -> None:
        self._now_ms = now_ms
        if has_batches and self.abortable_error is None:
            self._wants_id = True
        state = self.id_state
        if state.unresolved:
            for topic_partition in state.resolve():
                self._request_bump(topic_partition)
        if self._to_bump and state.producer_id >= 0:
            self._bump_epoch()
        self.wants_turn = False

    def next_turn_ms(self, now_ms: float) -> float:
        return 0.0 if self.wants_turn else math.inf

    def _request_bump(self, topic_partition: TopicPartition) -> None:
        self._to_bump[topic_partition] = None
        self.wants_turn = True

    def _bump_epoch(self) -> None:
        state = self.id_state
        if state.bump_epoch():
            logger.info("producer id %d: starting epoch %d", state.producer_id, state.producer_epoch)
            self._start_at_beginning()

    def _start_at_beginning(self) -> None:
        for topic_partition in self._to_bump:
            self.id_state.start_at_beginning(topic_partition)
        self._to_bump.clear()

    # ---- Requests ------------------------------------------------------------------------------------------

    def next_request(self, now_ms: float) -> ControlRequest | None:
        request, self._queued = self._queued, None
        if request is None and self.producer_id < 0 and self._wants_id and self.error is None:
            return ProducerIdRequest(self._handle_init)
        return request

    def requeue(self, request: ControlRequest) -> None:
        self._queued = request

    def retry(self, request: ControlRequest) -> None:
        request.mark_retry()
        self.requeue(request)

    def coordinator(self, kind: str, key: str | None) -> Node | None:
        """Return ``None``, because any broker assigns producer ids."""
        return None

    def lookup_coordinator(self, request: ControlRequest) -> None:
        raise AssertionError(f"{request!r} has no coordinator")

    def _handle_init(self, request: ControlRequest, response: ClientResponse) -> None:
        message = response.message
        if response.authentication_error is not None:
            self.fail(response.authentication_error)
        elif message is None:
            self.fail(
                UnsupportedVersionError(
                    f"the broker does not support idempotent producers ({response.version_mismatch}); "
                    "set enable_idempotence=False"
                )
            )
        elif not message.error_code and min(message.producer_id, message.producer_epoch) < 0:
            self.fail(
                MalformedMessageError(
                    f"the InitProducerId response is invalid: producer id {message.producer_id}, epoch "
                    f"{message.producer_epoch}"
                )
            )
        elif not message.error_code:
            self.id_state.set_producer_id_and_epoch(message.producer_id, message.producer_epoch)
            logger.info("received producer id %d, epoch %d", self.producer_id, self.producer_epoch)
            self._start_at_beginning()
        elif for_code(message.error_code).retriable:
            self.retry(request)
        elif message.error_code == ClusterAuthorizationFailedError.errno:
            # An administrator may grant the right later, so the next record requests a producer id again.
            self._wants_id = False
            self.abortable_error = ClusterAuthorizationFailedError(
                "not authorized to write idempotently: grant Write on a topic, or set "
                "enable_idempotence=False"
            )
        else:
            self.fail(KafkaError(f"failed to obtain a producer id: {for_code(message.error_code).__name__}"))
