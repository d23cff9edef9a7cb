"""What a transactional producer asks its coordinators: one class per request, with what each answer means.

Requests in Apache Kafka's order of importance; an answer either completes what a caller waits for, is tried
again, or fails the transaction (abortable) or the producer (fatal). Source: the handlers of Apache Kafka
4.3's ``TransactionManager`` (KIP-98, 360, 447, 890). Does not know: states, batches, connections.
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
#: Kinds of coordinators as FindCoordinator numbers them.
KEY_TYPES = {GROUP: find_coordinator.GROUP, TRANSACTION: find_coordinator.TRANSACTION}
#: Later versions are for brokers among themselves, and need their rights.
ADD_PARTITIONS_MAX_VERSION = 3
#: Version 6 is of two-phase commits, and not stable.
INIT_PRODUCER_ID_MAX_VERSION = 5
#: The last versions that mean a transaction of version 1 (KIP-890); newer ones add to it what is not in it.
END_TXN_MAX_VERSION_V1 = 4
TXN_OFFSET_COMMIT_MAX_VERSION_V1 = 4
#: The transaction before is mostly still being completed, which takes few milliseconds: asked again after 1,
#: 2, 4 ... milliseconds, up to what Apache Kafka's producer always waits.
FIRST_CONCURRENT_BACKOFF_MS = 1.0
CONCURRENT_BACKOFF_MS = 20.0

MOVED = (errors.CoordinatorNotAvailableError, errors.NotCoordinatorError)
FENCED = (errors.InvalidProducerEpochError, errors.ProducerFencedError)
#: Answers of a broker that has coordinators of groups alone.
NO_SUCH_COORDINATOR = (errors.InvalidRequestError, errors.UnsupportedVersionError)
NO_TRANSACTIONS = (
    "this broker has no transactions, which transactional_id needs: Apache Kafka has them, kafkacore's "
    "embedded broker does not"
)


#: What INVALID_TXN_STATE means for who wants to end a transaction that has begun.
ENDED_ALREADY = "the broker has aborted the transaction already, mostly since it took transaction_timeout_ms"


class Priority(IntEnum):
    """The lower goes first; nothing passes the end of a transaction but what has to be done before it."""

    FIND_COORDINATOR = 0
    INIT_PRODUCER_ID = 1
    ADD_PARTITIONS_OR_OFFSETS = 2
    END_TXN = 3


class TransactionalRequest(ControlRequest):
    """One request with its answer's meaning.

    Parameters
    ----------
    manager:
        What an answer changes.
    message:
        What is asked.
    result:
        What a caller waits for.
    """

    priority: Priority = Priority.ADD_PARTITIONS_OR_OFFSETS
    #: Of the answer, those that end the producer as they are.
    fatal_errors: ClassVar[tuple[type[KafkaError], ...]] = (
        errors.TransactionalIdAuthorizationFailedError,
        errors.InvalidTxnStateError,
        errors.InvalidProducerIdMappingError,
    )
    #: Those after which aborting helps.
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
        """Work in what the coordinator answered, under the manager's lock."""

    def version_error(self, mismatch: errors.UnsupportedVersionError) -> KafkaError:
        """What to say where the broker does not know the request, or not as it is meant."""
        return mismatch

    # ---- What may become of it -----------------------------------------------------------------------------

    def retry(self, error: KafkaError) -> None:
        self.backoff_ms = None
        if isinstance(error, errors.ConcurrentTransactionsError) and self.waits_for_the_one_before:
            self.backoff_ms = min(FIRST_CONCURRENT_BACKOFF_MS * 2**self.attempts, CONCURRENT_BACKOFF_MS)
        self.manager.retry(self)

    @property
    def waits_for_the_one_before(self) -> bool:
        """Whether another transaction can only be the one before, of the same producer."""
        return True

    def retry_elsewhere(self) -> None:
        """Try again once it is known where the coordinator is now."""
        self.mark_retry()
        self.manager.lookup_coordinator(self)

    def fatal(self, error: KafkaError) -> None:
        self.result.fail(error)
        self.manager.fail_fatally(error)

    def abortable(self, error: KafkaError) -> None:
        self.result.fail(error)
        self.manager.fail_abortably(error)

    def handle_error(self, error: KafkaError) -> None:
        """What most requests do with an error."""
        if isinstance(error, MOVED):
            self.retry_elsewhere()
        elif error.retriable:
            self.retry(error)
        elif isinstance(error, FENCED):
            # Brokers before 2.8 say INVALID_PRODUCER_EPOCH here and mean the same.
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
    """The error of an answer, with what was asked; ``None`` for none."""
    if not code:
        return None
    return for_code(code)(
        f"answer to {request_class_of(request.message).NAME}" + (f": {detail}" if detail else "")
    )


def no_transactions(reason: object) -> errors.UnsupportedVersionError:
    """What to say of a broker that does not know the first things of transactions."""
    return errors.UnsupportedVersionError(f"{NO_TRANSACTIONS} ({reason})")


class FindCoordinator(TransactionalRequest):
    """Which broker coordinates the transactional id, or a group."""

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
                self.fatal(errors.UnknownError(f"the answer to FindCoordinator leaves {self.of_key!r} out"))
                return
            found = entry
        error = error_of(found.error_code, self, found.error_message)
        if error is None and not is_address(found.node_id, found.host, found.port):
            self.fatal(
                errors.MalformedMessageError(
                    f"FindCoordinator names node {found.node_id} at {found.host!r}:{found.port} "
                    f"for {self.of_key!r}"
                )
            )
        elif error is None:
            self.manager.found_coordinator(
                self.kind, self.of_key, Node(found.node_id, found.host, found.port)
            )
            self.result.done()
        elif error.retriable:
            # Not to be looked up: it is what looks up.
            self.retry(error)
        elif self.kind == TRANSACTION and isinstance(error, NO_SUCH_COORDINATOR):
            self.fatal(no_transactions(error))
        else:
            self.handle_error(error)


class InitProducerId(TransactionalRequest):
    """A producer id and epoch for the transactional id; fences who had them before, ends what he left open.

    Parameters
    ----------
    is_epoch_bump:
        Not the first one, but to go on after an aborted transaction with the next epoch (KIP-360).
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
                    f"InitProducerId gives producer id {message.producer_id} and epoch "
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
    """Partitions that the transaction writes to, before anything is written there (version 1)."""

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
            if isinstance(error, errors.TopicAuthorizationFailedError) or not self._ends_it(error):
                refused[partition] = error
                continue
            self.handle_error(error)
            return
        if unanswered and not refused:
            self.retry(errors.UnknownError("the response to AddPartitionsToTxn leaves partitions out"))
            return
        self.manager.partitions_answered(self.partitions, added=not refused)
        if not refused:
            self.result.done()
            return
        # One that says why before one that was only not attempted for it.
        first = min(refused.values(), key=lambda error: isinstance(error, errors.OperationNotAttemptedError))
        self.abortable(first)

    @property
    def waits_for_the_one_before(self) -> bool:
        return not self.manager.has_partitions

    def _ends_it(self, error: KafkaError) -> bool:
        """Whether the error says something of the transaction and not only of its partition."""
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
    """The group whose offsets the transaction commits, before they are (version 1)."""

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
        # The caller waits on, for the offsets themselves.
        self.manager.group_added(TxnOffsetCommit(self.manager, self.result, self.offsets, self.group))


class TxnOffsetCommit(TransactionalRequest):
    """Offsets that become the group's with the commit (KIP-447: fenced by the group's generation too)."""

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
                place = TopicPartition(topic.name, partition.partition_index)
                if place not in self.uncommitted:
                    continue
                error = error_of(partition.error_code, self, f"group {self.group.group_id!r}, {place}")
                if error is None:
                    self.uncommitted.discard(place)
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
            self.retry(again or errors.UnknownError("the answer leaves partitions out"))

    def _refused(self, error: KafkaError) -> None:
        if isinstance(error, errors.UnknownMemberIdError | errors.IllegalGenerationError):
            failed = errors.CommitFailedError(
                "the group has gone on without this consumer, whose offsets the transaction cannot commit: "
                f"{error}"
            )
            failed.__cause__ = error
            self.abortable(failed)
        elif isinstance(error, errors.UnknownProducerIdError):
            self.fatal(error)
        else:
            self.handle_error(error)


class EndTxn(TransactionalRequest):
    """Commit or abort."""

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
            # Nothing comes after an abort that could help.
            self.fatal(error)
        else:
            self.handle_error(error)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Topic → numbers of its partitions, ascending."""
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
