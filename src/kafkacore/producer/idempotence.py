"""Each record once: who the producer is to the brokers, and how its batches are numbered.

Batches as they are taken, acknowledged and given up in; which may go out, whether one goes again, and what
has to be asked of a broker out. Source: KIP-98, KIP-360, KIP-679; Apache Kafka's ``TransactionManager`` as
far as it has no transactions. Used on the network thread. Does not know: the queues of batches, connections.
"""

from __future__ import annotations

import logging
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
from kafkacore.producer._batch import ProducerBatch
from kafkacore.producer.control_request import ControlRequest
from kafkacore.producer.partition_sequences import NO_SEQUENCE, PartitionSequences, sequence_after
from kafkacore.protocol.generated.init_producer_id import InitProducerIdRequest
from kafkacore.structs import INT32_MAX, Node, TopicPartition

logger = logging.getLogger("kafkacore.producer")

NO_PRODUCER_ID = -1
NO_EPOCH = -1
#: After it there is none: a new producer id begins with epoch 0.
LAST_EPOCH = 2**15 - 1
#: Batches of a producer that a broker remembers for each partition; no more may be open at a time.
MAX_IN_FLIGHT = 5
#: Brokers forget a producer that is silent, by default after a day (``producer.id.expiration.ms``).
KNOWN_FOR_MS = 3_600_000.0
#: What no retry and no other batch can cure.
FATAL = (
    ClusterAuthorizationFailedError,
    TransactionalIdAuthorizationFailedError,
    ProducerFencedError,
    UnsupportedVersionError,
)


class ProducerIdRequest(ControlRequest):
    """A producer id, for a producer without transactions.

    Parameters
    ----------
    handle:
        Called with this request and its response.
    """

    __slots__ = ("_handle",)

    def __init__(self, handle: Callable[[ControlRequest, ClientResponse], None]) -> None:
        super().__init__(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=INT32_MAX))
        self._handle = handle

    def on_response(self, response: ClientResponse) -> None:
        self._handle(self, response)


class IdempotenceManager:
    """The producer's identity and the numbers of its batches.

    Attributes
    ----------
    producer_id, producer_epoch:
        -1 until a broker has given one.
    error:
        Why nothing can be sent any more; every later ``send()`` raises it. ``None`` while all is well.
    abortable_error:
        Why what waits now cannot be sent; the sender takes it and fails that. Later records may do better.
    """

    is_transactional = False
    transactional_id: str | None = None

    def __init__(self) -> None:
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = NO_EPOCH
        self.error: KafkaError | None = None
        self.abortable_error: KafkaError | None = None
        self._sequences: dict[TopicPartition, PartitionSequences] = {}
        #: Partitions of which a numbered batch was given up → the number after it. Whether the broker has it
        #: is not known before a later one has been answered.
        self._unresolved: dict[TopicPartition, int] = {}
        #: Partitions that need a new epoch.
        self._to_bump: dict[TopicPartition, None] = {}
        #: There is something for begin_turn() to settle: now; and when there will be, at the latest.
        self._wants_turn = False
        self._turn_due_ms = math.inf
        self._queued: ControlRequest | None = None
        self._wants_id = True
        self._now_ms = 0.0

    @property
    def produce_max_version(self) -> int | None:
        """Newest version of a produce request; ``None`` for any."""
        return None

    @property
    def is_completing(self) -> bool:
        """Whether everything is ready to be sent at once."""
        return False

    @property
    def has_work(self) -> bool:
        """Whether something is to be asked that a close has to wait for."""
        return False

    # ---- What may go out -----------------------------------------------------------------------------------

    def may_send(self) -> bool:
        """Whether batches may be taken at all: the producer has an identity, and nothing is the matter."""
        return self.producer_id >= 0 and self.error is None

    def may_send_to(self, topic_partition: TopicPartition) -> bool:
        """Whether the partition may be sent to; for those who know more than sequences."""
        return True

    def may_drain(self, batch: ProducerBatch) -> bool:
        """Whether the first batch of a queue may be taken now."""
        topic_partition = batch.topic_partition
        if not self.may_send_to(topic_partition):
            return False
        sequences = self._sequences.get(topic_partition)
        if sequences is None:
            return True
        in_flight = sequences.in_flight
        if batch.has_sequence:
            # One at a time, in order, until those that had gone before are through.
            return not in_flight or in_flight[0] is batch
        if topic_partition in self._unresolved:
            return False
        if not in_flight:
            return True
        # A broker that does not know the producer takes any number for the first: until it is known to know
        # it, a second batch could be taken before the first. And number 0 of a new epoch must not overtake
        # what has numbers of the old one.
        return (
            sequences.known_by_id == self.producer_id
            and self._now_ms - sequences.known_at_ms < KNOWN_FOR_MS
            and len(in_flight) < MAX_IN_FLIGHT
            and sequences.is_of(self.producer_id, self.producer_epoch)
        )

    def assign(self, batch: ProducerBatch) -> None:
        """Number a batch that has been taken for the first time; one that goes again keeps its number, or
        the broker could not see that it has it already.
        """
        if batch.has_sequence:
            return
        sequences = self._sequences.get(batch.topic_partition)
        if sequences is None:
            sequences = self._sequences[batch.topic_partition] = PartitionSequences()
        if not sequences.in_flight and not sequences.is_of(self.producer_id, self.producer_epoch):
            sequences.start_at_beginning(self.producer_id, self.producer_epoch)
        sequences.number(batch, self.is_transactional)

    # ---- What has become of it -----------------------------------------------------------------------------

    def completed(self, batch: ProducerBatch, base_offset: int) -> None:
        """The broker has the batch; also one that was given up meanwhile.

        Parameters
        ----------
        base_offset:
            -1 if it does not say where: the batch is a duplicate of an old one.
        """
        sequences = self._sequences.get(batch.topic_partition)
        if sequences is not None:
            sequences.acknowledge(batch, base_offset, self._now_ms)

    def can_retry(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int) -> bool:
        """Whether a batch that the broker refused goes again, if it has attempts and time left.

        Parameters
        ----------
        log_start_offset:
            Of the partition, -1 if the answer does not say.
        """
        if isinstance(error, OutOfOrderSequenceNumberError):
            if self._is_gap_before(batch):
                self._request_bump(batch.topic_partition)
            return True
        if isinstance(error, UnknownProducerIdError):
            # All of the partition's batches get this answer, and the first has had them numbered anew.
            if log_start_offset >= 0 and not batch.sequence_has_been_reset:
                self._request_bump(batch.topic_partition)
            return True
        return error.retriable

    def _is_gap_before(self, batch: ProducerBatch) -> bool:
        """Whether the broker waits for a number that nobody will send; else for one that is on its way."""
        sequences = self._sequences.get(batch.topic_partition)
        if sequences is None or batch.sequence_has_been_reset or not sequences.is_first(batch):
            return False
        given_up = self._unresolved.get(batch.topic_partition)
        return batch.base_sequence in (sequences.expected, given_up)

    def failed(self, batch: ProducerBatch, error: KafkaError) -> None:
        """The batch is given up: refused for good, expired, or out of attempts."""
        if isinstance(error, FATAL):
            self.fail(error)
        self._give_up(batch)

    def _give_up(self, batch: ProducerBatch) -> None:
        sequences = self._sequences.get(batch.topic_partition)
        if sequences is None or not batch.has_sequence or not sequences.remove(batch):
            return
        following = sequence_after(batch.last_sequence)
        given_up = self._unresolved.get(batch.topic_partition, NO_SEQUENCE)
        if given_up == NO_SEQUENCE or sequences.is_later(following, given_up):
            self._unresolved[batch.topic_partition] = following
        self._wants_turn = True
        logger.debug("whether the log has %s is open until a later batch is answered", batch)

    def split(self, batch: ProducerBatch, halves: list[ProducerBatch]) -> None:
        """The halves go instead of the batch, with its numbers."""
        sequences = self._sequences.get(batch.topic_partition)
        if sequences is not None:
            sequences.replace(batch, halves)

    def fail(self, error: KafkaError) -> None:
        """Nothing can be sent any more. The first reason stays."""
        if self.error is None:
            logger.error("the producer cannot go on: %s", error)
            self.error = error
            self._wants_turn = True

    def begin_close(self, now_ms: float) -> None:
        """The user asks for nothing more; :attr:`has_work` says whether a close has to wait."""

    def close(self) -> None:
        """Nothing will be sent any more."""

    def reset_sequences(self) -> None:
        """Begin every partition anew."""
        for sequences in self._sequences.values():
            sequences.forget()
        self._unresolved.clear()
        self._to_bump.clear()

    # ---- Epochs --------------------------------------------------------------------------------------------

    def begin_turn(self, now_ms: float, has_batches: bool) -> None:
        """What a turn of the sender begins with: settle what the last answers have left open.

        Parameters
        ----------
        has_batches:
            Whether something waits to be sent.
        """
        self._now_ms = now_ms
        if has_batches and self.abortable_error is None:
            self._wants_id = True
        if self._unresolved:
            self._resolve()
        if self._to_bump and self.producer_id >= 0:
            self._bump_epoch()
        self._wants_turn = False

    def next_turn_ms(self, now_ms: float) -> float:
        """Milliseconds until :meth:`begin_turn` has something to settle, whatever happens meanwhile."""
        return 0.0 if self._wants_turn else max(self._turn_due_ms - now_ms, 0.0)

    def _resolve(self) -> None:
        for topic_partition, following in list(self._unresolved.items()):
            sequences = self._sequences[topic_partition]
            if not sequences.is_later(following, sequences.expected):
                # It was accepted after all, or a later one, which says that it had been.
                del self._unresolved[topic_partition]
            elif not sequences.in_flight:
                self._unresolvable(topic_partition)

    def _unresolvable(self, topic_partition: TopicPartition) -> None:
        """Nothing is left that would tell whether the broker has what was given up."""
        self._request_bump(topic_partition)

    def _request_bump(self, topic_partition: TopicPartition) -> None:
        self._to_bump[topic_partition] = None
        self._wants_turn = True

    def _bump_epoch(self) -> None:
        """Go on with the next epoch, which brokers let begin at number 0 (KIP-360)."""
        if self.producer_epoch == LAST_EPOCH:
            self.producer_id, self.producer_epoch = NO_PRODUCER_ID, NO_EPOCH
            return
        self.producer_epoch += 1
        logger.info("epoch %d of producer %d begins", self.producer_epoch, self.producer_id)
        self._renumber()

    def _renumber(self) -> None:
        for topic_partition in self._to_bump:
            sequences = self._sequences.get(topic_partition)
            if sequences is not None:
                sequences.start_at_beginning(self.producer_id, self.producer_epoch)
            self._unresolved.pop(topic_partition, None)
        self._to_bump.clear()

    # ---- Requests ------------------------------------------------------------------------------------------

    def next_request(self, now_ms: float) -> ControlRequest | None:
        """Take what is to be asked next; the caller brings it back by :meth:`requeue` or :meth:`retry`, or
        calls its ``on_response``.
        """
        request, self._queued = self._queued, None
        if request is None and self.producer_id < 0 and self._wants_id and self.error is None:
            return self._init_request()
        return request

    def _init_request(self) -> ControlRequest:
        return ProducerIdRequest(self._handle_init)

    def requeue(self, request: ControlRequest) -> None:
        """It could not be sent yet."""
        self._queued = request

    def retry(self, request: ControlRequest) -> None:
        """It has not been answered, or not in a way that helps: to be asked again after a back-off."""
        request.mark_retry()
        self.requeue(request)

    def coordinator(self, kind: str, key: str | None) -> Node | None:
        """Who answers requests for a ``"transaction"``'s or ``"group"``'s ``key``; ``None`` if that is to be
        found out.
        """
        return None

    def lookup_coordinator(self, request: ControlRequest) -> None:
        """Find the coordinator of ``request``, then send it."""
        raise AssertionError(f"{request!r} has no coordinator")

    def _handle_init(self, request: ControlRequest, response: ClientResponse) -> None:
        message = response.message
        if response.authentication_error is not None:
            self.fail(response.authentication_error)
        elif message is None:
            self.fail(
                UnsupportedVersionError(
                    f"the broker gives no producer ids ({response.version_mismatch}); "
                    "with enable_idempotence=False the producer does without"
                )
            )
        elif not message.error_code and min(message.producer_id, message.producer_epoch) < 0:
            self.fail(
                MalformedMessageError(
                    f"InitProducerId gives producer id {message.producer_id} and epoch "
                    f"{message.producer_epoch}"
                )
            )
        elif not message.error_code:
            self.producer_id, self.producer_epoch = message.producer_id, message.producer_epoch
            logger.info("this is producer %d with epoch %d", self.producer_id, self.producer_epoch)
            self._renumber()
        elif for_code(message.error_code).retriable:
            self.retry(request)
        elif message.error_code == ClusterAuthorizationFailedError.errno:
            # An administrator may grant it: what is sent later asks again.
            self._wants_id = False
            self.abortable_error = ClusterAuthorizationFailedError(
                "the user may not write idempotently: grant Write on a topic, or set enable_idempotence=False"
            )
        else:
            self.fail(KafkaError(f"no producer id: {for_code(message.error_code).__name__}"))
