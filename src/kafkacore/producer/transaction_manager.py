"""All or nothing: what a transaction begins, contains and ends with, asked of its coordinator step by step.

Calls of the application's threads and answers on the network thread in; requests, in order, and whether a
partition may be written to out. Source: Apache Kafka 4.3's ``TransactionManager`` (KIP-98, 360, 447, 654,
890). Does not know: connections, the queues of batches.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import math
from collections.abc import Callable, Collection, Mapping
from threading import RLock
from typing import Protocol

from kafkacore.client import ApiVersions
from kafkacore.clock import Clock
from kafkacore.errors import (
    ClusterAuthorizationFailedError,
    IllegalStateError,
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
from kafkacore.producer._batch import ProducerBatch
from kafkacore.producer._partition_queue import PartitionQueue
from kafkacore.producer._record_appender import RecordAppender
from kafkacore.producer._sender_wakeup import SenderWakeup
from kafkacore.producer.control_request import ControlRequest
from kafkacore.producer.idempotence import NO_EPOCH, NO_PRODUCER_ID, IdempotenceManager
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

logger = logging.getLogger("kafkacore.producer")

#: The feature of a cluster whose level says how transactions are made there (KIP-890).
FEATURE = "transaction.version"
VERSION_2 = 2
#: The last version of Produce that does not add its partitions to the transaction by itself.
PRODUCE_MAX_VERSION_V1 = 11
#: Since when a coordinator gives the next epoch to who has the last one (KIP-360).
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
    """What the manager asks of the RecordAccumulator."""

    @property
    def records(self) -> RecordAppender: ...
    @property
    def sender_wakeup(self) -> SenderWakeup: ...
    #: Partitions with batches that wait, and batches whose outcome is open.
    @property
    def active(self) -> Mapping[PartitionQueue, None]: ...
    @property
    def incomplete(self) -> Mapping[ProducerBatch, None]: ...


class TransactionManager(IdempotenceManager):
    """The transactions of one producer.

    Parameters
    ----------
    transactional_id:
        Whose transactions these are, over all processes that ever use it.
    clock:
        Of the callers' waits.
    api_versions:
        What brokers have said they speak, and what the cluster has agreed on.
    transaction_timeout_ms:
        After which the coordinator aborts by itself.
    max_block_ms:
        For which a close waits for the end of a transaction.

    Attributes
    ----------
    is_version_2:
        Whether the current transaction is one of KIP-890: brokers add to it what is written, and each has an
        epoch of its own.
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
        super().__init__()
        self.transactional_id: str = transactional_id
        self.transaction_timeout_ms = transaction_timeout_ms
        self.is_version_2 = False
        #: Held for each look and change that concerns both threads; never while anything waits, or while
        #: callbacks of the user's run. Reentrant for a finaliser that sends.
        self.lock = RLock()
        self._clock = clock
        self._api_versions = api_versions
        self._max_block_ms = max_block_ms
        self._batches: Batches | None = None
        self._state = TransactionState(transactional_id)
        #: The user's call that has not been seen to return.
        self._pending: PendingCall | None = None
        self._requests: list[tuple[int, int, TransactionalRequest]] = []
        self._numbers = itertools.count()
        self._coordinators: dict[tuple[str, str | None], Node] = {}
        self._coordinator_bumps = False
        self._epoch_bump_required = False
        #: Whether the coordinator knows, or may know, of the transaction.
        self._started = False
        #: Partitions that the coordinator is to be told of, is being told of, knows.
        self._new_partitions: dict[TopicPartition, None] = {}
        self._pending_partitions: set[TopicPartition] = set()
        self._partitions: set[TopicPartition] = set()
        self._is_late_to_close = False

    def attach(self, batches: Batches) -> None:
        """Have ``batches`` ask what may come in; a transaction ends after those whose outcome is open."""
        self._batches = batches
        batches.records.transactions = self

    # ---- Calls of the user's -------------------------------------------------------------------------------

    # A call that waits only notes what is wanted, in one step: the network thread does it. So Ctrl-C cannot
    # leave half of it done.

    def init_transactions(self) -> TransactionalRequestResult:
        """Get an identity, and have what the last producer of this id left open ended."""
        return self._take_up("init_transactions()", State.UNINITIALIZED, self._begin_initialization)

    def begin_transaction(self) -> None:
        with self.lock:
            self._refuse_pending("begin_transaction()")
            self._state.raise_error()
            self._state.check("begin_transaction()", State.IN_TRANSACTION)
            self._become(State.IN_TRANSACTION)

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> TransactionalRequestResult:
        """Have the group's offsets committed with the transaction (KIP-447)."""
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
        return self._take_up("commit_transaction()", State.IN_TRANSACTION, self._begin_commit)

    def begin_abort(self) -> TransactionalRequestResult:
        return self._take_up("abort_transaction()", State.ABORTABLE_ERROR, self._begin_abort)

    def add_partition(self, topic_partition: TopicPartition) -> None:
        """A batch for the partition is about to wait to be sent.

        Raises
        ------
        IllegalStateError
            No transaction is open.
        KafkaError
            Why the one that is has failed.
        """
        with self.lock:
            self._refuse_outside("send()")
            if self.is_version_2:
                # Its first produce request tells the coordinator.
                self._started = True
                self._partitions.add(topic_partition)
            elif topic_partition not in self._partitions and topic_partition not in self._pending_partitions:
                self._new_partitions[topic_partition] = None
                if self._batches is not None:
                    # The coordinator can be told while the batch fills.
                    self._batches.sender_wakeup.wake()

    def fail_transaction(self, error: KafkaError) -> None:
        """A record of the transaction has failed before it came into a batch."""
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
                f"{operation} cannot be called now, for {pending.result.operation} has not returned: call "
                "that again, it takes up what it began"
            )

    def _take_up(
        self, operation: str, source: State, begin: Callable[[TransactionalRequestResult], None]
    ) -> TransactionalRequestResult:
        """What an earlier call of the same has begun and nobody has seen the end of; else begin.

        Parameters
        ----------
        source:
            From which state it can be; in an abortable error also from within the transaction.
        """
        with self.lock:
            pending = self._pending
            if pending is None or pending.result.is_acknowledged:
                self._check(operation, source)
                self._pending = pending = PendingCall(self.new_result(operation), begin)
                # From now on records are asked whether they may come in, and are not.
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
        """Whether an error, or a close, came before what was allowed when it was called."""
        if self._state.may_become(target):
            return False
        result.fail(self._state.error or KafkaError("the producer was closed"))
        return True

    def _begin_end(self, result: TransactionalRequestResult, *, is_commit: bool) -> None:
        self._add_new_partitions()
        # In the version that the transaction has had so far.
        self._enqueue(EndTxn(self, result, is_commit=is_commit))
        self._update_version(is_first=False)

    # ---- Of the sender -------------------------------------------------------------------------------------

    def begin_turn(self, now_ms: float, has_batches: bool) -> None:
        with self.lock:
            self._begin_pending()
            super().begin_turn(now_ms, has_batches)
            if now_ms >= self._turn_due_ms:
                self._is_late_to_close, self._turn_due_ms, self._wants_turn = True, math.inf, True
            state = self._state
            if state.current in (State.ABORTABLE_ERROR, State.ABORTING_TRANSACTION) and has_batches:
                self.abortable_error = self._aborted_error()

    def _aborted_error(self) -> KafkaError:
        reason = self._state.error
        if reason is None:
            return TransactionAbortedError("the transaction was aborted before this was sent")
        error = TransactionAbortedError(f"the transaction has failed before this was sent: {reason}")
        error.__cause__ = reason
        return error

    def may_send_to(self, topic_partition: TopicPartition) -> bool:
        return topic_partition in self._partitions

    def next_request(self, now_ms: float) -> ControlRequest | None:
        with self.lock:
            self._add_new_partitions()
            while self._requests:
                request = self._requests[0][2]
                is_useless = self._is_useless(request)
                end = request if isinstance(request, EndTxn) else None
                if end is not None and not is_useless and self._has_open_batches:
                    return None
                heapq.heappop(self._requests)
                if is_useless:
                    request.result.fail(self._state.error or self._aborted_error())
                elif end is not None and not self._started:
                    logger.debug("a transaction without records and offsets ends here")
                    self._complete_transaction(end)
                else:
                    return request
            return None

    @property
    def _has_open_batches(self) -> bool:
        return self._batches is not None and bool(self._batches.incomplete)

    def _is_useless(self, request: TransactionalRequest) -> bool:
        """Whether the state is one in which it cannot help any more."""
        if self._state.current is State.ABORTABLE_ERROR:
            return not isinstance(request, FindCoordinator)
        if self._state.current is State.ABORTING_TRANSACTION:
            # An abort shall not wait for a group's coordinator, of which it needs nothing.
            return (
                isinstance(request, TxnOffsetCommit) or getattr(request, "kind", TRANSACTION) != TRANSACTION
            )
        return self._state.has_error

    def requeue(self, request: ControlRequest) -> None:
        assert isinstance(request, TransactionalRequest), "all of a transactional producer's are"
        with self.lock:
            if self._state.current is State.FATAL_ERROR:
                assert self._state.error is not None, "an error state has an error"
                request.result.fail(self._state.error)
            else:
                self._enqueue(request)

    def coordinator(self, kind: str, key: str | None) -> Node | None:
        return self._coordinators.get((kind, key))

    def lookup_coordinator(self, request: ControlRequest) -> None:
        assert request.coordinator is not None, "it asks for one"
        assert request.key is not None, "of something"
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

    # ---- What becomes of batches ---------------------------------------------------------------------------

    def failed(self, batch: ProducerBatch, error: KafkaError) -> None:
        with self.lock:
            self._fail_by_record(error)
            self.take_out(batch, error, has_epochs=self._has_epochs)

    def _fail_by_record(self, error: KafkaError) -> None:
        if isinstance(error, FATAL_OF_BATCH):
            self.fail_fatally(error)
            return
        if error.retriable or isinstance(error, InvalidTxnStateError):
            # No more tries or no time left: what failed then is no reason to try the same again.
            exhausted = TransactionAbortableError(f"a record of the transaction has failed for good: {error}")
            exhausted.__cause__ = error
            error = exhausted
        if self._bumps_from_here:
            self._epoch_bump_required = True
        self.fail_abortably(error)

    def _unresolvable(self, topic_partition: TopicPartition) -> None:
        self._unresolved.pop(topic_partition, None)
        self.fail_abortably_if_possible(
            KafkaError(
                f"whether records for {topic_partition} are in the log was not learnt, and they cannot be "
                "sent again"
            )
        )

    # ---- Errors --------------------------------------------------------------------------------------------

    @property
    def _has_epochs(self) -> bool:
        """Whether the next transaction can have an epoch of its own."""
        return self._coordinator_bumps or self.is_version_2

    @property
    def _bumps_from_here(self) -> bool:
        """Whether a new epoch after an error is asked for, and not given with each transaction's end."""
        return self._coordinator_bumps and not self.is_version_2

    def fenced_error(self) -> KafkaError:
        return ProducerFencedError(
            f"a producer with the same transactional_id={self.transactional_id!r} was started after this "
            "one, or this one's transaction took longer than transaction_timeout_ms"
        )

    def fail_abortably(self, error: KafkaError) -> None:
        """The transaction can only be aborted. Nothing new to one that is being aborted."""
        if self._state.current in (State.ABORTING_TRANSACTION, State.FATAL_ERROR):
            logger.debug("the transaction ends already: %s", error)
        elif self._state.may_become(State.ABORTABLE_ERROR):
            logger.info("the transaction has failed and is to be aborted: %s", error)
            self._become(State.ABORTABLE_ERROR, error)
        else:
            self.fail_fatally(error)

    def fail_abortably_if_possible(self, error: KafkaError) -> None:
        """Abortable if the next transaction has an epoch of its own."""
        if not self._has_epochs:
            self.fail_fatally(error)
            return
        if self._bumps_from_here:
            self._epoch_bump_required = True
        self.fail_abortably(error)

    def fail_fatally(self, error: KafkaError) -> None:
        """Nothing more can be done but to close."""
        if self._state.current is State.FATAL_ERROR:
            return
        self._become(State.FATAL_ERROR, error)
        self.fail(error)
        self._fail_waiting(error)

    def _fail_waiting(self, error: KafkaError) -> None:
        requests, self._requests = self._requests, []
        for _, _, request in requests:
            request.result.fail(error)
        if self._pending is not None:
            self._pending.result.fail(error)

    # ---- Answers -------------------------------------------------------------------------------------------

    def coordinator_answered(self, node_id: int) -> None:
        """Learn what the transaction's coordinator speaks."""
        versions = self._api_versions.get(node_id)
        known = None if versions is None else versions.supported_range(ApiKey.INIT_PRODUCER_ID)
        if known is not None:
            self._coordinator_bumps = known[1] >= BUMPS_SINCE

    def found_coordinator(self, kind: str, key: str, node: Node) -> None:
        logger.debug("the %s coordinator of %r is node %d", kind, key, node.node_id)
        self._coordinators[kind, key] = node

    def initialized(self, producer_id: int, producer_epoch: int, is_epoch_bump: bool) -> None:
        self._set_identity(producer_id, producer_epoch)
        if is_epoch_bump:
            self.reset_sequences()
        else:
            self._update_version(is_first=True)
        self._become(State.READY)

    def forget_initialization(self, error: KafkaError) -> None:
        """Rights are missing, which an administrator may grant: the call may be made again."""
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
        """The coordinator has written the transaction's end; of version 2, it gives the next one's epoch."""
        if producer_id >= 0:
            self._set_identity(producer_id, producer_epoch)
            self.reset_sequences()
        self._complete_transaction(end)

    def _complete_transaction(self, end: EndTxn) -> None:
        self._started = False
        self._new_partitions.clear()
        self._pending_partitions.clear()
        self._partitions.clear()
        if self.producer_id < 0:
            # The initialization failed, of which this is the abort.
            self._become(State.READY)
            self._become(State.UNINITIALIZED)
            end.result.done()
        elif self._epoch_bump_required:
            # The caller waits on, for the epoch.
            self._epoch_bump_required = False
            self._become(State.INITIALIZING)
            self._enqueue(InitProducerId(self, end.result, is_epoch_bump=True))
        else:
            self._become(State.READY)
            end.result.done()

    def _set_identity(self, producer_id: int, producer_epoch: int) -> None:
        logger.info("%r is producer %d with epoch %d", self.transactional_id, producer_id, producer_epoch)
        self.producer_id, self.producer_epoch = producer_id, producer_epoch

    # ---- The end -------------------------------------------------------------------------------------------

    def begin_close(self, now_ms: float) -> None:
        """Abort what is open; what is being ended goes on. :attr:`has_work` for ``max_block_ms`` at most."""
        with self.lock:
            self._turn_due_ms = now_ms + self._max_block_ms
            self._begin_pending()
            if self._state.may_become(State.ABORTING_TRANSACTION):
                logger.info("%r is closed in a transaction, which is aborted", self.transactional_id)
                self._begin_abort(self.new_result("close()"))

    def close(self) -> None:
        """Nobody asks for anything any more: whoever waits, waits in vain."""
        closed = KafkaError("the producer was closed")
        with self.lock:
            if self._state.current is not State.FATAL_ERROR:
                self._become(State.FATAL_ERROR, closed)
            self._fail_waiting(closed)

    # ---- States --------------------------------------------------------------------------------------------

    def _become(self, target: State, error: KafkaError | None = None) -> None:
        was_open = self._state.current is State.IN_TRANSACTION
        self._state.become(target, error)
        # What follows from it is not to wait for the next thing to happen.
        self._wants_turn = True
        logger.debug("transactional_id=%r is %s", self.transactional_id, target.value)
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
        """Take over what version of transactions the cluster has agreed on.

        Parameters
        ----------
        is_first:
            No transaction has been made before. Else the first of version 2 needs an epoch of its own.
        """
        before = self.is_version_2
        self.is_version_2 = self._api_versions.finalized_features.get(FEATURE, 0) >= VERSION_2
        if self.is_version_2 and not before and not is_first:
            self._epoch_bump_required = True

    # ---- Sequence numbers: what without transactions begins a new epoch ends the transaction ---------------

    def can_retry(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int) -> bool:
        """Unlike without transactions, what only a new epoch can cure ends the transaction."""
        sequences = self._sequences.get(batch.topic_partition)
        if sequences is not None and isinstance(error, OutOfOrderSequenceNumberError):
            return batch.topic_partition not in self._unresolved and (
                batch.sequence_has_been_reset or batch.base_sequence != sequences.expected
            )
        if sequences is not None and isinstance(error, UnknownProducerIdError):
            if log_start_offset < 0 or batch.sequence_has_been_reset:
                return True
            if sequences.last_offset < log_start_offset:
                # Retention took all that the broker knew this producer by: it begins at 0 there.
                sequences.start_at_beginning(self.producer_id, self.producer_epoch)
                return True
            return False
        return error.retriable

    def take_out(self, batch: ProducerBatch, error: KafkaError, *, has_epochs: bool) -> None:
        """The batch is given up.

        Parameters
        ----------
        has_epochs:
            The next transaction can begin with numbers anew. Without (Kafka before 2.5) those that no broker
            has seen are taken back.
        """
        if has_epochs or not self._leaves_no_gap(batch, error):
            self._give_up(batch)

    def _leaves_no_gap(self, batch: ProducerBatch, error: KafkaError) -> bool:
        sequences = self._sequences.get(batch.topic_partition)
        if sequences is None or not batch.has_sequence:
            return False
        if isinstance(error, UnknownProducerIdError):
            # Nothing is known of the others either: all begin at 0 again.
            sequences.forget()
            return True
        if batch.possibly_persisted or sequences.in_flight != [batch]:
            return False
        sequences.remove(batch)
        sequences.next = batch.base_sequence
        return True

    # ---- Prepared transactions (KIP-939): filled by one producer, ended by another -------------------------

    def change_transactional_id(self, transactional_id: str) -> None:
        """Be as new, under another name, to be initialized.

        Raises
        ------
        IllegalStateError
            Something is under way.
        """
        with self.lock:
            idle: Collection[State] = (State.UNINITIALIZED, State.READY)
            if self._requests or self._has_open_batches or self._state.current not in idle:
                self._state.raise_error()
                raise IllegalStateError(f"transactional_id={self.transactional_id!r} is in use")
            self._reset(transactional_id)

    def prepare(self) -> PreparedTransaction:
        """Leave the open transaction as it is, for another to end. All records have been acknowledged.

        Raises
        ------
        KafkaError
            Why the transaction has failed.
        IllegalStateError
            None is open, or records of it are on their way.
        """
        with self.lock:
            self._state.raise_error()
            if self._state.current is not State.IN_TRANSACTION:
                self._state.refuse("prepare_transaction()")
            if self._requests or self._new_partitions or self._has_open_batches:
                raise IllegalStateError("prepare_transaction() comes after flush(): records are on their way")
            prepared = PreparedTransaction(self.transactional_id, self.producer_id, self.producer_epoch)
            self._reset(self.transactional_id)
            return prepared

    def resume(self, prepared: PreparedTransaction) -> None:
        """Be the producer of that transaction, which is open; it can be given offsets, and ended."""
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
        self.producer_id, self.producer_epoch = NO_PRODUCER_ID, NO_EPOCH
        self._sequences.clear()
        self.reset_sequences()
