"""The requests of a transactional producer to its coordinators, and the handling of their responses.

A response completes the operation, causes a retry, or fails the transaction (abortable error) or the producer
(fatal error). The rules are those of the handlers in Apache Kafka 4.3's ``TransactionManager`` (KIP-98, 360,
447, 890).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar

from kafkacore import errors
from kafkacore.client import ClientResponse, find_coordinator
from kafkacore.client.cluster import is_address
from kafkacore.client.find_coordinator import coordinator_request
from kafkacore.errors import KafkaError, for_code
from kafkacore.producer.control_request import ControlRequest
from kafkacore.producer.transaction_result import TransactionalRequestResult
from kafkacore.protocol import Request, request_class_of
from kafkacore.protocol.generated.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kafkacore.protocol.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from kafkacore.protocol.generated.end_txn import EndTxnRequest, EndTxnResponse
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorResponse
from kafkacore.protocol.generated.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafkacore.protocol.generated.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from kafkacore.structs import ConsumerGroupMetadata, Node, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafkacore.producer.transaction_manager import TransactionManager

TRANSACTION = "transaction"
GROUP = "group"
#: Coordinator type → its number in FindCoordinator.
KEY_TYPES = {GROUP: find_coordinator.GROUP, TRANSACTION: find_coordinator.TRANSACTION}
#: Newest AddPartitionsToTxn version to use. Later versions are for requests between brokers, and need
#: authorization for such requests.
ADD_PARTITIONS_MAX_VERSION = 3
#: Newest InitProducerId version to use. Version 6 is for two-phase commit and is not stable.
INIT_PRODUCER_ID_MAX_VERSION = 5
#: The last request versions for version 1 of the transaction protocol (KIP-890). Later versions implicitly
#: add partitions and offsets to the transaction.
END_TXN_MAX_VERSION_V1 = 4
TXN_OFFSET_COMMIT_MAX_VERSION_V1 = 4
#: CONCURRENT_TRANSACTIONS mostly means that the previous transaction is still being completed, which takes a
#: few milliseconds. The request is retried after 1, 2, 4 ... milliseconds, up to the fixed back-off of Apache
#: Kafka's producer.
FIRST_CONCURRENT_BACKOFF_MS = 1.0
CONCURRENT_BACKOFF_MS = 20.0

MOVED = (errors.CoordinatorNotAvailableError, errors.NotCoordinatorError)
FENCED = (errors.InvalidProducerEpochError, errors.ProducerFencedError)
#: Errors of a broker that has group coordinators but no transaction coordinators.
NO_SUCH_COORDINATOR = (errors.InvalidRequestError, errors.UnsupportedVersionError)
NO_TRANSACTIONS = (
    "transactional_id needs a broker that supports transactions, such as Apache Kafka 0.11 or newer"
)

#: Explanation of the error INVALID_TXN_STATE in the response to EndTxn.
ENDED_ALREADY = (
    "the broker has already aborted the transaction, probably because it took longer than "
    "transaction_timeout_ms"
)


class Priority(IntEnum):
    """Order of requests, lowest first. The end of a transaction is sent after all other requests."""

    FIND_COORDINATOR = 0
    INIT_PRODUCER_ID = 1
    ADD_PARTITIONS_OR_OFFSETS = 2
    END_TXN = 3


class TransactionalRequest(ControlRequest):
    """A request of a transaction with the handling of its response.

    Parameters
    ----------
    manager:
        Manager whose state the response changes.
    message:
        The request message.
    result:
        The result for which a caller waits.
    """

    priority: Priority = Priority.ADD_PARTITIONS_OR_OFFSETS
    #: Errors that fail the producer.
    fatal_errors: ClassVar[tuple[type[KafkaError], ...]] = (
        errors.TransactionalIdAuthorizationFailedError,
        errors.InvalidTxnStateError,
        errors.InvalidProducerIdMappingError,
    )
    #: Errors that fail the transaction.
    abortable_errors: ClassVar[tuple[type[KafkaError], ...]] = (
        errors.TransactionAbortableError,
        errors.GroupAuthorizationFailedError,
    )

    def __init__(
        self,
        manager: TransactionManager,
        message: Request[Any],
        result: TransactionalRequestResult,
        *,
        coordinator: str | None = TRANSACTION,
        key: str | None = None,
        max_version: int | None = None,
    ) -> None:
        if coordinator == TRANSACTION:
            key = manager.transactional_id
        super().__init__(message, coordinator=coordinator, key=key, max_version=max_version)
        self.manager = manager
        self.result = result

    def on_response(self, response: ClientResponse) -> None:
        with self.manager.lock:
            if self.coordinator == TRANSACTION:
                self.manager.coordinator_answered(response.request.node_id)
            if response.version_mismatch is not None:
                self.fatal(self.version_error(response.version_mismatch))
            elif response.authentication_error is not None:
                self.fatal(response.authentication_error)
            else:
                self.handle(response.message)

    @abstractmethod
    def handle(self, message: Any) -> None:
        """Handle the response of the coordinator. The caller holds the manager's lock."""

    def version_error(self, mismatch: errors.UnsupportedVersionError) -> KafkaError:
        """Return the error for a broker that does not support the request in a suitable version."""
        return mismatch

    # ---- Outcomes ------------------------------------------------------------------------------------------

    def retry(self, error: KafkaError) -> None:
        self.backoff_ms = None
        if isinstance(error, errors.ConcurrentTransactionsError) and self.waits_for_previous_transaction:
            self.backoff_ms = min(FIRST_CONCURRENT_BACKOFF_MS * 2**self.attempts, CONCURRENT_BACKOFF_MS)
        self.manager.retry(self)

    @property
    def waits_for_previous_transaction(self) -> bool:
        """Whether CONCURRENT_TRANSACTIONS can only refer to the previous transaction of this producer."""
        return True

    def retry_elsewhere(self) -> None:
        """Look up the coordinator, then retry the request."""
        self.mark_retry()
        self.manager.lookup_coordinator(self)

    def fatal(self, error: KafkaError) -> None:
        self.result.fail(error)
        self.manager.fail_fatally(error)

    def abortable(self, error: KafkaError) -> None:
        self.result.fail(error)
        self.manager.fail_abortably(error)

    def handle_error(self, error: KafkaError) -> None:
        """Handle an error as most requests do: retry, or fail the transaction or the producer."""
        if isinstance(error, MOVED):
            self.retry_elsewhere()
        elif error.retriable:
            self.retry(error)
        elif isinstance(error, FENCED):
            # Brokers before 2.8 return INVALID_PRODUCER_EPOCH instead of PRODUCER_FENCED.
            self.fatal(self.manager.fenced_error())
        elif isinstance(error, self.fatal_errors):
            self.fatal(error)
        elif isinstance(error, errors.UnknownProducerIdError):
            self.result.fail(error)
            self.manager.fail_abortably_if_possible(error)
        elif isinstance(error, self.abortable_errors):
            self.abortable(error)
        else:
            self.fatal(error)


def error_of(code: int, request: ControlRequest, detail: str | None = None) -> KafkaError | None:
    """Return the error of a response, with the name of the request, or ``None`` for code 0."""
    if not code:
        return None
    return for_code(code)(
        f"response to {request_class_of(request.message).NAME}" + (f": {detail}" if detail else "")
    )


def no_transactions(reason: object) -> errors.UnsupportedVersionError:
    """Return the error for a broker that does not support transactions."""
    return errors.UnsupportedVersionError(f"{NO_TRANSACTIONS} ({reason})")


class FindCoordinator(TransactionalRequest):
    """Finds the coordinator of the transactional id or of a group."""

    priority = Priority.FIND_COORDINATOR
    fatal_errors = (errors.TransactionalIdAuthorizationFailedError,)

    def __init__(self, manager: TransactionManager, kind: str, of_key: str) -> None:
        message = coordinator_request(of_key, KEY_TYPES[kind])
        super().__init__(manager, message, manager.new_result("FindCoordinator"), coordinator=None)
        self.kind = kind
        self.of_key = of_key

    def version_error(self, mismatch: errors.UnsupportedVersionError) -> KafkaError:
        return no_transactions(mismatch)

    def handle(self, message: FindCoordinatorResponse) -> None:
        found: FindCoordinatorResponse | FindCoordinatorResponse.Coordinator = message
        if message.coordinators:
            entry = next((each for each in message.coordinators if each.key == self.of_key), None)
            if entry is None:
                self.fatal(
                    errors.UnknownError(f"the FindCoordinator response does not contain {self.of_key!r}")
                )
                return
            found = entry
        error = error_of(found.error_code, self, found.error_message)
        if error is None and not is_address(found.node_id, found.host, found.port):
            self.fatal(
                errors.MalformedMessageError(
                    f"the FindCoordinator response has an invalid node for {self.of_key!r}: "
                    f"id {found.node_id}, address {found.host!r}:{found.port}"
                )
            )
        elif error is None:
            self.manager.found_coordinator(
                self.kind, self.of_key, Node(found.node_id, found.host, found.port)
            )
            self.result.done()
        elif error.retriable:
            # This request is itself the lookup of a coordinator, so it is retried without another lookup.
            self.retry(error)
        elif self.kind == TRANSACTION and isinstance(error, NO_SUCH_COORDINATOR):
            self.fatal(no_transactions(error))
        else:
            self.handle_error(error)


class InitProducerId(TransactionalRequest):
    """Requests a producer id and epoch for the transactional id.

    The coordinator fences the previous producer and aborts its open transaction.

    Parameters
    ----------
    is_epoch_bump:
        Whether the producer requests the next epoch after an aborted transaction (KIP-360).
    """

    priority = Priority.INIT_PRODUCER_ID
    fatal_errors = ()
    abortable_errors = (errors.TransactionAbortableError,)

    def __init__(
        self, manager: TransactionManager, result: TransactionalRequestResult, *, is_epoch_bump: bool
    ) -> None:
        message = InitProducerIdRequest(
            transactional_id=manager.transactional_id,
            transaction_timeout_ms=manager.transaction_timeout_ms,
            producer_id=manager.producer_id if is_epoch_bump else -1,
            producer_epoch=manager.producer_epoch if is_epoch_bump else -1,
        )
        super().__init__(manager, message, result, max_version=INIT_PRODUCER_ID_MAX_VERSION)
        self.is_epoch_bump = is_epoch_bump

    def version_error(self, mismatch: errors.UnsupportedVersionError) -> KafkaError:
        return no_transactions(mismatch)

    def handle(self, message: InitProducerIdResponse) -> None:
        error = error_of(message.error_code, self)
        if error is None and min(message.producer_id, message.producer_epoch) < 0:
            self.fatal(
                errors.MalformedMessageError(
                    f"the InitProducerId response is invalid: producer id {message.producer_id}, epoch "
                    f"{message.producer_epoch}"
                )
            )
        elif error is None:
            self.manager.initialized(message.producer_id, message.producer_epoch, self.is_epoch_bump)
            self.result.done()
        elif isinstance(
            error, errors.TransactionalIdAuthorizationFailedError | errors.ClusterAuthorizationFailedError
        ):
            self.result.fail(error)
            self.manager.forget_initialization(error)
        else:
            self.handle_error(error)


class AddPartitionsToTxn(TransactionalRequest):
    """Adds partitions to the transaction before records are written to them (transaction version 1)."""

    def __init__(self, manager: TransactionManager, partitions: Iterable[TopicPartition]) -> None:
        self.partitions = frozenset(partitions)
        topic_class = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        message = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=manager.transactional_id,
            v3_and_below_producer_id=manager.producer_id,
            v3_and_below_producer_epoch=manager.producer_epoch,
            v3_and_below_topics=[
                topic_class(name=topic, partitions=numbers)
                for topic, numbers in by_topic(self.partitions).items()
            ],
        )
        super().__init__(
            manager, message, manager.new_result("AddPartitionsToTxn"), max_version=ADD_PARTITIONS_MAX_VERSION
        )

    def handle(self, message: AddPartitionsToTxnResponse) -> None:
        refused: dict[TopicPartition, KafkaError] = {}
        unanswered = set(self.partitions)
        for partition, code in self._codes(message):
            if partition not in unanswered:
                continue
            unanswered.discard(partition)
            error = error_of(code, self, f"partition {partition}")
            if error is None:
                continue
            if isinstance(error, errors.TopicAuthorizationFailedError) or not self._concerns_transaction(
                error
            ):
                refused[partition] = error
                continue
            self.handle_error(error)
            return
        if unanswered and not refused:
            self.retry(errors.UnknownError("the AddPartitionsToTxn response does not contain all partitions"))
            return
        self.manager.partitions_answered(self.partitions, added=not refused)
        if not refused:
            self.result.done()
            return
        # OPERATION_NOT_ATTEMPTED is only the consequence of another partition's error. Report the other
        # error.
        first = min(refused.values(), key=lambda error: isinstance(error, errors.OperationNotAttemptedError))
        self.abortable(first)

    @property
    def waits_for_previous_transaction(self) -> bool:
        return not self.manager.has_partitions

    def _concerns_transaction(self, error: KafkaError) -> bool:
        """Return whether a partition's error concerns the whole transaction."""
        of_transaction: tuple[type[KafkaError], ...] = (
            *FENCED, *self.fatal_errors, errors.UnknownProducerIdError, errors.TransactionAbortableError,
        )  # fmt: skip
        return error.retriable or isinstance(error, of_transaction)

    @staticmethod
    def _codes(message: AddPartitionsToTxnResponse) -> Iterator[tuple[TopicPartition, int]]:
        for topic in message.results_by_topic_v3_and_below:
            for result in topic.results_by_partition:
                yield TopicPartition(topic.name, result.partition_index), result.partition_error_code


class AddOffsetsToTxn(TransactionalRequest):
    """Adds a group to the transaction before its offsets are committed (transaction version 1)."""

    def __init__(
        self,
        manager: TransactionManager,
        result: TransactionalRequestResult,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: ConsumerGroupMetadata,
    ) -> None:
        message = AddOffsetsToTxnRequest(
            transactional_id=manager.transactional_id,
            producer_id=manager.producer_id,
            producer_epoch=manager.producer_epoch,
            group_id=group.group_id or "",
        )
        super().__init__(manager, message, result)
        self.offsets = offsets
        self.group = group

    def handle(self, message: AddOffsetsToTxnResponse) -> None:
        error = error_of(message.error_code, self, f"group {self.group.group_id!r}")
        if error is not None:
            self.handle_error(error)
            return
        # The result stays pending until the TxnOffsetCommit, which is sent next, has committed the offsets.
        self.manager.group_added(TxnOffsetCommit(self.manager, self.result, self.offsets, self.group))


class TxnOffsetCommit(TransactionalRequest):
    """Commits offsets of a group as part of the transaction.

    The coordinator checks the generation and the member id of the group (KIP-447).
    """

    fatal_errors = (
        errors.TransactionalIdAuthorizationFailedError,
        errors.UnsupportedForMessageFormatError,
    )
    abortable_errors = (*TransactionalRequest.abortable_errors, errors.FencedInstanceIdError)

    def __init__(
        self,
        manager: TransactionManager,
        result: TransactionalRequestResult,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: ConsumerGroupMetadata,
    ) -> None:
        message = TxnOffsetCommitRequest(
            transactional_id=manager.transactional_id,
            group_id=group.group_id or "",
            producer_id=manager.producer_id,
            producer_epoch=manager.producer_epoch,
            generation_id=group.generation_id,
            member_id=group.member_id,
            group_instance_id=group.group_instance_id,
            topics=_offsets_by_topic(offsets),
        )
        super().__init__(
            manager,
            message,
            result,
            coordinator=GROUP,
            key=group.group_id,
            max_version=None if manager.is_version_2 else TXN_OFFSET_COMMIT_MAX_VERSION_V1,
        )
        self.group = group
        self.uncommitted = set(offsets)

    def handle(self, message: TxnOffsetCommitResponse) -> None:
        has_moved = False
        again: KafkaError | None = None
        for topic in message.topics:
            for partition in topic.partitions:
                topic_partition = TopicPartition(topic.name, partition.partition_index)
                if topic_partition not in self.uncommitted:
                    continue
                error = error_of(
                    partition.error_code, self, f"group {self.group.group_id!r}, {topic_partition}"
                )
                if error is None:
                    self.uncommitted.discard(topic_partition)
                elif isinstance(error, (*MOVED, errors.RequestTimedOutError)):
                    has_moved = True
                elif error.retriable:
                    again = error
                else:
                    self._refused(error)
                    return
        if not self.uncommitted:
            self.result.done()
        elif has_moved:
            self.retry_elsewhere()
        else:
            self.retry(
                again or errors.UnknownError("the TxnOffsetCommit response does not contain all partitions")
            )

    def _refused(self, error: KafkaError) -> None:
        if isinstance(error, errors.UnknownMemberIdError | errors.IllegalGenerationError):
            failed = errors.CommitFailedError(
                "the transaction cannot commit these offsets, because the consumer was removed from its "
                f"group: {error}"
            )
            failed.__cause__ = error
            self.abortable(failed)
        elif isinstance(error, errors.UnknownProducerIdError):
            self.fatal(error)
        else:
            self.handle_error(error)


class EndTxn(TransactionalRequest):
    """Commits or aborts the transaction."""

    priority = Priority.END_TXN

    def __init__(
        self, manager: TransactionManager, result: TransactionalRequestResult, *, is_commit: bool
    ) -> None:
        message = EndTxnRequest(
            transactional_id=manager.transactional_id,
            producer_id=manager.producer_id,
            producer_epoch=manager.producer_epoch,
            committed=is_commit,
        )
        super().__init__(
            manager, message, result, max_version=None if manager.is_version_2 else END_TXN_MAX_VERSION_V1
        )
        self.is_commit = is_commit

    def handle(self, message: EndTxnResponse) -> None:
        has_ended = message.error_code == errors.InvalidTxnStateError.errno
        error = error_of(message.error_code, self, ENDED_ALREADY if has_ended else None)
        if error is None:
            self.manager.ended(self, message.producer_id, message.producer_epoch)
        elif isinstance(error, errors.TransactionAbortableError) and not self.is_commit:
            # The abort itself failed, so aborting again would not help.
            self.fatal(error)
        else:
            self.handle_error(error)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return topic → sorted partition numbers."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics


def _offsets_by_topic(
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
) -> list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic]:
    topic_class = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    partition_class = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
    return [
        topic_class(
            name=topic,
            partitions=[
                partition_class(
                    partition_index=number,
                    committed_offset=offsets[TopicPartition(topic, number)].offset,
                    committed_leader_epoch=offsets[TopicPartition(topic, number)].leader_epoch,
                    committed_metadata=offsets[TopicPartition(topic, number)].metadata,
                )
                for number in numbers
            ],
        )
        for topic, numbers in by_topic(offsets).items()
    ]
