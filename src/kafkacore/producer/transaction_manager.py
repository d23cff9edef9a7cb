"""The manager of a transactional producer: the state of its transaction and the requests to coordinators.

Application threads begin and end transactions. The network thread sends the requests and handles their
responses. See Apache Kafka 4.3's ``TransactionManager`` (KIP-98, 360, 447, 654, 890).
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Collection, Mapping
from threading import RLock
from typing import Protocol

from kafkacore.client import ApiVersions
from kafkacore.clock import Clock
from kafkacore.errors import (
    ClusterAuthorizationFailedError,
    IllegalStateError,
    InvalidProducerEpochError,
    InvalidProducerIdMappingError,
    InvalidTxnStateError,
    KafkaError,
    OutOfOrderSequenceNumberError,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionAbortedError,
    TransactionalIdAuthorizationFailedError,
    UnknownProducerIdError,
    UnsupportedVersionError,
)
from kafkacore.logs import logger_of
from kafkacore.producer._batch import ProducerBatch
from kafkacore.producer._partition_queue import PartitionQueue
from kafkacore.producer._producer_id_state import ProducerIdState
from kafkacore.producer._record_appender import RecordAppender
from kafkacore.producer._sender_wakeup import SenderWakeup
from kafkacore.producer.control_request import ControlRequest
from kafkacore.producer.prepared_transaction import PreparedTransaction
from kafkacore.producer.transaction_requests import (
    TRANSACTION,
    AddOffsetsToTxn,
    AddPartitionsToTxn,
    EndTxn,
    FindCoordinator,
    InitProducerId,
    TransactionalRequest,
    TxnOffsetCommit,
)
from kafkacore.producer.transaction_result import PendingCall, TransactionalRequestResult
from kafkacore.producer.transaction_state import State, TransactionState
from kafkacore.protocol import ApiKey
from kafkacore.structs import ConsumerGroupMetadata, Node, OffsetAndMetadata, TopicPartition

logger = logger_of("kafkacore.producer")

#: The cluster feature whose level is the version of the transaction protocol (KIP-890).
FEATURE = "transaction.version"
VERSION_2 = 2
#: The last version of Produce that does not add its partitions to the transaction.
PRODUCE_MAX_VERSION_V1 = 11
#: First InitProducerId version whose coordinator bumps the epoch of the current owner (KIP-360).
BUMPS_SINCE = 3
#: Errors of a batch after which no transaction of this producer can succeed.
FATAL_OF_BATCH = (
    ClusterAuthorizationFailedError,
    TransactionalIdAuthorizationFailedError,
    ProducerFencedError,
    UnsupportedVersionError,
    InvalidProducerIdMappingError,
)


class Batches(Protocol):
    """The part of the RecordAccumulator that the manager uses."""

    @property
    def records(self) -> RecordAppender: ...
    @property
    def sender_wakeup(self) -> SenderWakeup: ...
    #: Partitions with waiting batches.
    @property
    def active(self) -> Mapping[PartitionQueue, None]: ...
    #: Incomplete batches.
    @property
    def incomplete(self) -> Mapping[ProducerBatch, None]: ...


class TransactionManager:
    """The ProducerManager of a transactional producer.

    Parameters
    ----------
    transactional_id:
        Identifies the producer across process restarts.
    clock:
        Measures the time that callers wait.
    api_versions:
        The versions that brokers support, and the features that the cluster has finalized.
    transaction_timeout_ms:
        After this time the coordinator aborts the transaction.
    max_block_ms:
        How long a close waits for the end of a transaction.

    Attributes
    ----------
    id_state:
        Producer id, epoch and sequence numbers.
    error:
        The fatal error, which every later ``send()`` raises, or ``None``.
    abortable_error:
        The error with which the Sender fails the waiting records. The Sender then sets this attribute to
        ``None``.
    is_version_2:
        Whether the current transaction uses version 2 of the protocol (KIP-890): a produce request adds its
        partitions to the transaction, and every transaction has its own epoch.
    """

    is_transactional = True

    def __init__(
        self,
        transactional_id: str,
        clock: Clock,
        api_versions: ApiVersions,
        *,
        transaction_timeout_ms: int,
        max_block_ms: float,
    ) -> None:
        self.transactional_id: str = transactional_id
        self.transaction_timeout_ms = transaction_timeout_ms
        self.is_version_2 = False
        self.id_state = ProducerIdState()
        self.error: KafkaError | None = None
        self.abortable_error: KafkaError | None = None
        #: Protects the state that application threads and the network thread share. No thread holds the lock
        #: during a wait or a user's callback. The lock is reentrant because a finalizer may call ``send()``
        #: on the thread that holds the lock.
        self.lock = RLock()
        self._clock = clock
        self._api_versions = api_versions
        self._max_block_ms = max_block_ms
        self._batches: Batches | None = None
        self._state = TransactionState(transactional_id)
        #: The user's last call. The call is pending until its outcome has been returned to a caller.
        self._pending: PendingCall | None = None
        self._requests: list[tuple[int, int, TransactionalRequest]] = []
        self._numbers = itertools.count()
        self._coordinators: dict[tuple[str, str | None], Node] = {}
        self._coordinator_bumps = False
        self._epoch_bump_required = False
        #: Whether the coordinator has, or may have, started the transaction.
        self._started = False
        #: Partitions of the transaction in three sets: not yet requested to be added, requested, and added.
        self._new_partitions: dict[TopicPartition, None] = {}
        self._pending_partitions: set[TopicPartition] = set()
        self._partitions: set[TopicPartition] = set()
        self._is_late_to_close = False
        #: Whether begin_turn() has something to do now, and the time by which the network thread must call
        #: begin_turn().
        self._wants_turn = False
        self._turn_due_ms = math.inf
        self._now_ms = 0.0

    @property
    def producer_id(self) -> int:
        """Producer id; -1 until the coordinator has assigned an id."""
        return self.id_state.producer_id

    @property
    def producer_epoch(self) -> int:
        """Producer epoch; -1 until the coordinator has assigned an epoch."""
        return self.id_state.producer_epoch

    def attach(self, batches: Batches) -> None:
        """Make ``batches`` call :meth:`add_partition`. EndTxn then waits for all batches to complete."""
        self._batches = batches
        batches.records.transactions = self

    # ---- Calls of the user ---------------------------------------------------------------------------------

    # A blocking call registers its operation in one step and then waits. The network thread performs the
    # operation, so Ctrl-C cannot interrupt it halfway.

    def init_transactions(self) -> TransactionalRequestResult:
        """Request a producer id. The coordinator aborts an open transaction of this transactional id."""
        return self._begin_or_resume("init_transactions()", State.UNINITIALIZED, self._begin_initialization)

    def begin_transaction(self) -> None:
        with self.lock:
            self._refuse_pending("begin_transaction()")
            self._state.raise_error()
            self._state.check("begin_transaction()", State.IN_TRANSACTION)
            self._become(State.IN_TRANSACTION)

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> TransactionalRequestResult:
        """Commit the group's offsets with the transaction (KIP-447)."""
        with self.lock:
            self._refuse_outside("send_offsets_to_transaction()")
            result = self.new_result("send_offsets_to_transaction()")
            if self.is_version_2:
                self._started = True
                self._enqueue(TxnOffsetCommit(self, result, offsets, group))
            else:
                self._enqueue(AddOffsetsToTxn(self, result, offsets, group))
            return result

    def begin_commit(self) -> TransactionalRequestResult:
        return self._begin_or_resume("commit_transaction()", State.IN_TRANSACTION, self._begin_commit)

    def begin_abort(self) -> TransactionalRequestResult:
        return self._begin_or_resume("abort_transaction()", State.ABORTABLE_ERROR, self._begin_abort)

    def add_partition(self, topic_partition: TopicPartition) -> None:
        """Add the partition of a new batch to the transaction.

        Raises
        ------
        IllegalStateError
            No transaction is open.
        KafkaError
            The transaction has failed with this error.
        """
        with self.lock:
            self._refuse_outside("send()")
            if self.is_version_2:
                # With version 2, the first produce request to a partition adds the partition to the
                # transaction.
                self._started = True
                self._partitions.add(topic_partition)
            elif topic_partition not in self._partitions and topic_partition not in self._pending_partitions:
                self._new_partitions[topic_partition] = None
                if self._batches is not None:
                    # Wake up the sender, so that it sends AddPartitionsToTxn while the batch fills.
                    self._batches.sender_wakeup.wake()

    def fail_transaction(self, error: KafkaError) -> None:
        """Fail the transaction because a record failed before it was added to a batch."""
        with self.lock:
            if self._state.current is State.IN_TRANSACTION:
                self._fail_by_record(error)

    def _refuse_outside(self, operation: str) -> None:
        self._refuse_pending(operation)
        self._state.raise_error()
        if self._state.current is not State.IN_TRANSACTION:
            self._state.refuse(operation)

    def _refuse_pending(self, operation: str) -> None:
        pending = self._pending
        if pending is not None and not pending.result.is_acknowledged:
            raise IllegalStateError(
                f"{operation} cannot be called now, because {pending.result.operation} has not finished: "
                f"call {pending.result.operation} again to wait for it"
            )

    def _begin_or_resume(
        self, operation: str, source: State, begin: Callable[[TransactionalRequestResult], None]
    ) -> TransactionalRequestResult:
        """Begin a call and return its result, or return the result of the same call if it is already pending.

        Parameters
        ----------
        source:
            The state in which the call may begin. An abort may also begin while a transaction is open.
        """
        with self.lock:
            pending = self._pending
            if pending is None or pending.result.is_acknowledged:
                self._check(operation, source)
                self._pending = pending = PendingCall(self.new_result(operation), begin)
                # Without an open batch, the next record needs a new batch, which add_partition() rejects.
                self._close_open_batches()
            elif pending.result.operation != operation:
                self._refuse_pending(operation)
            return pending.result

    def _check(self, operation: str, source: State) -> None:
        current = self._state.current
        if current is source or (source is State.ABORTABLE_ERROR and current is State.IN_TRANSACTION):
            return
        self._state.raise_error()
        self._state.refuse(operation)

    def _begin_pending(self) -> None:
        pending = self._pending
        if pending is not None and not pending.has_begun:
            pending.has_begun = True
            pending.begin(pending.result)

    def _begin_initialization(self, result: TransactionalRequestResult) -> None:
        if self._changed_meanwhile(State.INITIALIZING, result):
            return
        self._become(State.INITIALIZING)
        self._enqueue(InitProducerId(self, result, is_epoch_bump=False))

    def _begin_commit(self, result: TransactionalRequestResult) -> None:
        if self._changed_meanwhile(State.COMMITTING_TRANSACTION, result):
            return
        self._become(State.COMMITTING_TRANSACTION)
        self._begin_end(result, is_commit=True)

    def _begin_abort(self, result: TransactionalRequestResult) -> None:
        if self._changed_meanwhile(State.ABORTING_TRANSACTION, result):
            return
        self._become(State.ABORTING_TRANSACTION)
        self._new_partitions.clear()
        self._begin_end(result, is_commit=False)

    def _changed_meanwhile(self, target: State, result: TransactionalRequestResult) -> bool:
        """Fail an accepted call that an error or a close now prevents. Return whether it has failed."""
        if self._state.may_become(target):
            return False
        result.fail(self._state.error or KafkaError("the producer was closed"))
        return True

    def _begin_end(self, result: TransactionalRequestResult, *, is_commit: bool) -> None:
        self._add_new_partitions()
        # EndTxn uses the protocol version with which the transaction began.
        self._enqueue(EndTxn(self, result, is_commit=is_commit))
        self._update_version(is_first=False)

    # ---- Turns of the network thread -----------------------------------------------------------------------

    def begin_turn(self, now_ms: float, has_batches: bool) -> None:
        with self.lock:
            self._begin_pending()
            self._now_ms = now_ms
            if self.id_state.unresolved:
                self._resolve()
            self._wants_turn = False
            if now_ms >= self._turn_due_ms:
                self._is_late_to_close, self._turn_due_ms, self._wants_turn = True, math.inf, True
            state = self._state
            if state.current in (State.ABORTABLE_ERROR, State.ABORTING_TRANSACTION) and has_batches:
                self.abortable_error = self._aborted_error()

    def next_turn_ms(self, now_ms: float) -> float:
        return 0.0 if self._wants_turn else max(self._turn_due_ms - now_ms, 0.0)

    def _resolve(self) -> None:
        for topic_partition in self.id_state.resolve():
            del self.id_state.unresolved[topic_partition]
            self.fail_abortably_if_possible(
                KafkaError(
                    f"cannot tell whether records for {topic_partition} were written: they failed without "
                    "a response and cannot be retried"
                )
            )

    def _aborted_error(self) -> KafkaError:
        reason = self._state.error
        if reason is None:
            return TransactionAbortedError("the transaction was aborted before this record was sent")
        error = TransactionAbortedError(f"the transaction failed before this record was sent: {reason}")
        error.__cause__ = reason
        return error

    # ---- Requests ------------------------------------------------------------------------------------------

    def next_request(self, now_ms: float) -> ControlRequest | None:
        with self.lock:
            self._add_new_partitions()
            while self._requests:
                request = self._requests[0][2]
                is_obsolete = self._is_obsolete(request)
                end = request if isinstance(request, EndTxn) else None
                if end is not None and not is_obsolete and self._has_open_batches:
                    return None
                heapq.heappop(self._requests)
                if is_obsolete:
                    request.result.fail(self._state.error or self._aborted_error())
                elif end is not None and not self._started:
                    logger.debug("the transaction has no records or offsets and ends without a request")
                    self._complete_transaction(end)
                else:
                    return request
            return None

    @property
    def _has_open_batches(self) -> bool:
        return self._batches is not None and bool(self._batches.incomplete)

    def _is_obsolete(self, request: TransactionalRequest) -> bool:
        """Return whether the current state has made the request unnecessary."""
        if self._state.current is State.ABORTABLE_ERROR:
            return not isinstance(request, FindCoordinator)
        if self._state.current is State.ABORTING_TRANSACTION:
            # An abort does not need the coordinator of a group, and must not wait for the lookup of that
            # coordinator.
            return (
                isinstance(request, TxnOffsetCommit) or getattr(request, "kind", TRANSACTION) != TRANSACTION
            )
        return self._state.has_error

    def requeue(self, request: ControlRequest) -> None:
        assert isinstance(request, TransactionalRequest), "the request is not a TransactionalRequest"
        with self.lock:
            if self._state.current is State.FATAL_ERROR:
                assert self._state.error is not None, "the error state has no error"
                request.result.fail(self._state.error)
            else:
                self._enqueue(request)

    def retry(self, request: ControlRequest) -> None:
        request.mark_retry()
        self.requeue(request)

    def coordinator(self, kind: str, key: str | None) -> Node | None:
        return self._coordinators.get((kind, key))

    def lookup_coordinator(self, request: ControlRequest) -> None:
        assert request.coordinator is not None, "the request has no coordinator"
        assert request.key is not None, "the request has no key"
        with self.lock:
            self._coordinators.pop((request.coordinator, request.key), None)
            self._enqueue(FindCoordinator(self, request.coordinator, request.key))
            self.requeue(request)

    def _enqueue(self, request: TransactionalRequest) -> None:
        heapq.heappush(self._requests, (request.priority, next(self._numbers), request))

    def _add_new_partitions(self) -> None:
        if self._new_partitions and not self._state.has_error:
            self._pending_partitions.update(self._new_partitions)
            self._enqueue(AddPartitionsToTxn(self, self._new_partitions))
            self._new_partitions.clear()

    def new_result(self, operation: str) -> TransactionalRequestResult:
        return TransactionalRequestResult(operation, self._clock)

    # ---- Batches -------------------------------------------------------------------------------------------

    def may_send(self) -> bool:
        return self.id_state.producer_id >= 0 and self.error is None

    def may_drain(self, batch: ProducerBatch) -> bool:
        return batch.topic_partition in self._partitions and self.id_state.may_drain(batch, self._now_ms)

    def assign(self, batch: ProducerBatch) -> None:
        self.id_state.assign(batch, True)

    def completed(self, batch: ProducerBatch, base_offset: int) -> None:
        self.id_state.acknowledge(batch, base_offset, self._now_ms)

    def split(self, batch: ProducerBatch, halves: list[ProducerBatch]) -> None:
        self.id_state.split(batch, halves)

    def reset_sequences(self) -> None:
        self.id_state.reset_sequences()

    def can_retry(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int) -> bool:
        """Return whether a rejected batch may be retried if it has attempts and time left.

        An error that requires a new epoch fails the transaction. A producer without transactions would bump
        its epoch instead.
        """
        state = self.id_state
        sequences = state.sequences.get(batch.topic_partition)
        if sequences is not None and isinstance(error, OutOfOrderSequenceNumberError):
            return batch.topic_partition not in state.unresolved and (
                batch.sequence_has_been_reset or batch.base_sequence != sequences.expected
            )
        if sequences is not None and isinstance(error, UnknownProducerIdError):
            if log_start_offset < 0 or batch.sequence_has_been_reset:
                return True
            if sequences.last_offset < log_start_offset:
                # Retention deleted every batch of this producer, so the broker expects sequence 0.
                sequences.start_at_beginning(state.producer_id, state.producer_epoch)
                return True
            return False
        return error.retriable

    def failed(self, batch: ProducerBatch, error: KafkaError) -> KafkaError:
        with self.lock:
            if isinstance(error, InvalidProducerEpochError):
                # The error is not fatal, because its cause may be a transaction that took too long. In that
                # case the producer can continue after an abort.
                cause, error = error, self.fenced_error()
                error.__cause__ = cause
                self._fail_transaction(error)
            else:
                self._fail_by_record(error)
            # Without epoch bumps (Kafka before 2.5), the next batch has to reuse the failed batch's numbers.
            if (self._has_epochs or not self._take_back(batch, error)) and self.id_state.give_up(batch):
                self._wants_turn = True
            return error

    def _take_back(self, batch: ProducerBatch, error: KafkaError) -> bool:
        """Remove a failed batch so that its sequence numbers can be reused. Return whether that succeeded."""
        sequences = self.id_state.sequences.get(batch.topic_partition)
        if sequences is None or not batch.has_sequence:
            return False
        if isinstance(error, UnknownProducerIdError):
            # The broker has no state of the producer, so the sequence numbers of the partition's other
            # batches restart at 0 too.
            sequences.forget()
            return True
        return self.id_state.take_back(batch)

    def _fail_by_record(self, error: KafkaError) -> None:
        if isinstance(error, FATAL_OF_BATCH):
            self.fail_fatally(error)
            return
        if error.retriable or isinstance(error, InvalidTxnStateError):
            # The batch has no retries or time left. A retriable error would mislead the caller into a retry.
            exhausted = TransactionAbortableError(f"a record of the transaction failed: {error}")
            exhausted.__cause__ = error
            error = exhausted
        self._fail_transaction(error)

    def _fail_transaction(self, error: KafkaError) -> None:
        if self._bumps_from_here:
            self._epoch_bump_required = True
        self.fail_abortably(error)

    # ---- Errors --------------------------------------------------------------------------------------------

    @property
    def _has_epochs(self) -> bool:
        """Whether the coordinator can bump the epoch for the next transaction."""
        return self._coordinator_bumps or self.is_version_2

    @property
    def _bumps_from_here(self) -> bool:
        """Whether the producer requests a new epoch after an error.

        With version 2 of the protocol, such a request is not necessary: every transaction ends with a new
        epoch.
        """
        return self._coordinator_bumps and not self.is_version_2

    def fenced_error(self) -> KafkaError:
        return ProducerFencedError(
            f"another producer with transactional_id={self.transactional_id!r} has started, or the "
            "transaction took longer than transaction_timeout_ms"
        )

    def fail_abortably(self, error: KafkaError) -> None:
        """Fail the transaction, so that the user can only abort it.

        An error is ignored while the transaction is being aborted.
        """
        if self._state.current in (State.ABORTING_TRANSACTION, State.FATAL_ERROR):
            logger.debug(
                "ignored an error during an abort or after a fatal error: %s",
                error,
            )
        elif self._state.may_become(State.ABORTABLE_ERROR):
            logger.info("the transaction failed and must be aborted: %s", error)
            self._become(State.ABORTABLE_ERROR, error)
        else:
            self.fail_fatally(error)

    def fail_abortably_if_possible(self, error: KafkaError) -> None:
        """Fail the transaction if the epoch can be bumped; otherwise fail the producer."""
        if not self._has_epochs:
            self.fail_fatally(error)
            return
        if self._bumps_from_here:
            self._epoch_bump_required = True
        self.fail_abortably(error)

    def fail_fatally(self, error: KafkaError) -> None:
        """Fail the producer, so that the user can only close it."""
        if self._state.current is State.FATAL_ERROR:
            return
        self._become(State.FATAL_ERROR, error)
        logger.error("fatal error, the producer must be closed: %s", error)
        self.error = error
        self._fail_waiting(error)

    def _fail_waiting(self, error: KafkaError) -> None:
        requests, self._requests = self._requests, []
        for _, _, request in requests:
            request.result.fail(error)
        if self._pending is not None:
            self._pending.result.fail(error)

    # ---- Responses -----------------------------------------------------------------------------------------

    def coordinator_answered(self, node_id: int) -> None:
        """Record whether the transaction coordinator, which is node ``node_id``, can bump epochs."""
        versions = self._api_versions.get(node_id)
        known = None if versions is None else versions.supported_range(ApiKey.INIT_PRODUCER_ID)
        if known is not None:
            self._coordinator_bumps = known[1] >= BUMPS_SINCE

    def found_coordinator(self, kind: str, key: str, node: Node) -> None:
        logger.debug("the %s coordinator of %r is node %d", kind, key, node.node_id)
        self._coordinators[kind, key] = node

    def initialized(self, producer_id: int, producer_epoch: int, is_epoch_bump: bool) -> None:
        self._set_producer_id_and_epoch(producer_id, producer_epoch)
        if is_epoch_bump:
            self.reset_sequences()
        else:
            self._update_version(is_first=True)
        self._become(State.READY)

    def forget_initialization(self, error: KafkaError) -> None:
        """Allow another ``init_transactions()`` after an authorization error: rights may be granted later."""
        self._become(State.ABORTABLE_ERROR, error)
        self._become(State.UNINITIALIZED)
        self._fail_waiting(error)

    def partitions_answered(self, partitions: frozenset[TopicPartition], *, added: bool) -> None:
        self._pending_partitions -= partitions
        if added:
            self._partitions |= partitions
            self._started = True

    @property
    def has_partitions(self) -> bool:
        """Whether any partition has been added to this transaction."""
        return bool(self._partitions)

    def group_added(self, commit: TxnOffsetCommit) -> None:
        self._started = True
        self._enqueue(commit)

    def ended(self, end: EndTxn, producer_id: int, producer_epoch: int) -> None:
        """Complete a transaction. With version 2 of the protocol, the response has the next epoch."""
        if producer_id >= 0:
            self._set_producer_id_and_epoch(producer_id, producer_epoch)
            self.reset_sequences()
        self._complete_transaction(end)

    def _complete_transaction(self, end: EndTxn) -> None:
        self._started = False
        self._new_partitions.clear()
        self._pending_partitions.clear()
        self._partitions.clear()
        if self.producer_id < 0:
            # The producer has no id yet, because the abort followed a failed initialization.
            self._become(State.READY)
            self._become(State.UNINITIALIZED)
            end.result.done()
        elif self._epoch_bump_required:
            # The caller waits until the new epoch has been assigned.
            self._epoch_bump_required = False
            self._become(State.INITIALIZING)
            self._enqueue(InitProducerId(self, end.result, is_epoch_bump=True))
        else:
            self._become(State.READY)
            end.result.done()

    def _set_producer_id_and_epoch(self, producer_id: int, producer_epoch: int) -> None:
        logger.info(
            "transactional_id=%r now has producer id %d and epoch %d",
            self.transactional_id,
            producer_id,
            producer_epoch,
        )
        self.id_state.set_producer_id_and_epoch(producer_id, producer_epoch)

    # ---- Close ---------------------------------------------------------------------------------------------

    def begin_close(self, now_ms: float) -> None:
        """Abort an open transaction. :attr:`has_work` stays true for at most ``max_block_ms``."""
        with self.lock:
            self._turn_due_ms = now_ms + self._max_block_ms
            self._begin_pending()
            if self._state.may_become(State.ABORTING_TRANSACTION):
                logger.info(
                    "transactional_id=%r: aborting the open transaction, because the producer is closed",
                    self.transactional_id,
                )
                self._begin_abort(self.new_result("close()"))

    def close(self) -> None:
        """Fail every waiting call and request."""
        closed = KafkaError("the producer was closed")
        with self.lock:
            if self._state.current is not State.FATAL_ERROR:
                self._become(State.FATAL_ERROR, closed)
            self._fail_waiting(closed)

    # ---- States --------------------------------------------------------------------------------------------

    def _become(self, target: State, error: KafkaError | None = None) -> None:
        was_open = self._state.current is State.IN_TRANSACTION
        self._state.become(target, error)
        # The network thread has to act on the new state at once.
        self._wants_turn = True
        logger.debug("transactional_id=%r is now %s", self.transactional_id, target.value)
        if was_open:
            self._close_open_batches()

    def _close_open_batches(self) -> None:
        if self._batches is not None:
            for queue in list(self._batches.active):
                queue.close_open()

    @property
    def is_completing(self) -> bool:
        return self._state.is_completing

    @property
    def has_work(self) -> bool:
        return self._state.is_ongoing and not self._is_late_to_close

    @property
    def produce_max_version(self) -> int | None:
        return None if self.is_version_2 else PRODUCE_MAX_VERSION_V1

    def _update_version(self, *, is_first: bool) -> None:
        """Use the version of the transaction protocol that the cluster has finalized.

        Parameters
        ----------
        is_first:
            Whether no transaction has begun yet. After a transaction, a switch to version 2 needs a new
            epoch.
        """
        before = self.is_version_2
        self.is_version_2 = self._api_versions.finalized_features.get(FEATURE, 0) >= VERSION_2
        if self.is_version_2 and not before and not is_first:
            self._epoch_bump_required = True

    # ---- Prepared transactions (KIP-939): one producer prepares, another one ends them ---------------------

    def change_transactional_id(self, transactional_id: str) -> None:
        """Reset the manager to an uninitialized producer with another transactional id.

        Raises
        ------
        IllegalStateError
            A transaction is open, or requests or batches are in flight.
        """
        with self.lock:
            idle: Collection[State] = (State.UNINITIALIZED, State.READY)
            if self._requests or self._has_open_batches or self._state.current not in idle:
                self._state.raise_error()
                raise IllegalStateError(
                    f"transactional_id={self.transactional_id!r} cannot be changed now: a transaction or "
                    "a request is in progress"
                )
            self._reset(transactional_id)

    def prepare(self) -> PreparedTransaction:
        """Detach the open transaction, so that another producer can end it.

        Every record must be acknowledged.

        Raises
        ------
        KafkaError
            The transaction has failed with this error.
        IllegalStateError
            No transaction is open, or records are in flight.
        """
        with self.lock:
            self._state.raise_error()
            if self._state.current is not State.IN_TRANSACTION:
                self._state.refuse("prepare_transaction()")
            if self._requests or self._new_partitions or self._has_open_batches:
                raise IllegalStateError(
                    "call flush() before prepare_transaction(): records are still being sent"
                )
            prepared = PreparedTransaction(self.transactional_id, self.producer_id, self.producer_epoch)
            self._reset(self.transactional_id)
            return prepared

    def resume(self, prepared: PreparedTransaction) -> None:
        """Continue a prepared transaction: send offsets, then commit or abort it."""
        with self.lock:
            self.change_transactional_id(prepared.transactional_id)
            self._become(State.INITIALIZING)
            self.initialized(prepared.producer_id, prepared.producer_epoch, False)
            self._become(State.IN_TRANSACTION)
            self._started = True

    def _reset(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self._state = TransactionState(transactional_id)
        self._pending = None
        self._started = self._epoch_bump_required = False
        self._new_partitions.clear()
        self._pending_partitions.clear()
        self._partitions.clear()
        self.id_state = ProducerIdState()
