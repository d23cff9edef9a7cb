"""TxnOffsetCommit: write offsets of a group, which take effect when a transaction commits (KIP-98).

Versions 0 to 5. The group's partition of ``__consumer_offsets`` must be part of the transaction. Up to
version 4, AddOffsetsToTxn adds the partition, and this handler verifies that. From version 5 on, this request
adds the partition (KIP-890). The response is sent when a crash can no longer lose the offsets.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.coordinator.interfaces import Producer
from kafkacore.broker.error_answer import error_code
from kafkacore.broker.group.offset_manager import Committer, OffsetToCommit
from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
    AnsweredLater,
    ApiHandler,
    GroupServices,
    Request,
)
from kafkacore.broker.requests.authorization import allowed
from kafkacore.errors import (
    BrokerResponseError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    GroupAuthorizationFailedError,
    InvalidGroupIdError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    ProducerFencedError,
    TopicAuthorizationFailedError,
    TransactionAbortableError,
    TransactionalIdAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol.generated.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from kafkacore.structs import TopicPartition

#: First version whose clients handle COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296).
FIRST_VERSION_WITH_LOADING = 2
#: First version whose clients know TRANSACTION_ABORTABLE.
FIRST_VERSION_WITH_ABORTABLE = 4
FIRST_VERSION_THAT_ADDS = 5
#: Transaction protocol version of a client whose request adds the group's partition to the transaction.
CLIENT_VERSION = 2

_RequestedTopic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
_Topic = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
_Partition = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition


class _TransactionalCommit:
    """A TxnOffsetCommit request in progress: the offsets to commit, and the response."""

    def __init__(self, request: Request[TxnOffsetCommitRequest], services: GroupServices) -> None:
        self._request = request
        self._services = services
        message = request.message
        self._producer = Producer(message.producer_id, message.producer_epoch)
        self.response = TxnOffsetCommitResponse()
        self._offsets: list[OffsetToCommit] = []
        #: The responses for the offsets, in the same order.
        self._answers: list[_Partition] = []
        denial = self._denial()
        for topic in message.topics:
            if denial:
                self._refuse(topic, denial)
            else:
                self._add(topic)

    def _denial(self) -> int:
        message, write = self._request.message, ACLOperation.WRITE
        if not self._allowed(write, ResourceType.TRANSACTIONAL_ID, message.transactional_id):
            return TransactionalIdAuthorizationFailedError.errno
        if not self._allowed(ACLOperation.READ, ResourceType.GROUP, message.group_id):
            return GroupAuthorizationFailedError.errno
        return 0

    def _allowed(self, operation: ACLOperation, kind: ResourceType, name: str) -> bool:
        return allowed(self._request, self._services, operation, kind, name)

    def _refuse(self, topic: _RequestedTopic, code: int) -> None:
        answers = [
            _Partition(partition_index=each.partition_index, error_code=code) for each in topic.partitions
        ]
        self.response.topics.append(_Topic(name=topic.name, partitions=answers))

    def _add(self, topic: _RequestedTopic) -> None:
        if not self._allowed(ACLOperation.READ, ResourceType.TOPIC, topic.name):
            self._refuse(topic, TopicAuthorizationFailedError.errno)
            return
        known = self._services.topics.get(topic.name)
        if known is None:
            self._refuse(topic, UnknownTopicOrPartitionError.errno)
            return
        answers = []
        for partition in topic.partitions:
            answer = _Partition(partition_index=partition.partition_index)
            answers.append(answer)
            if 0 <= partition.partition_index < known.partition_count:
                self._answers.append(answer)
                self._offsets.append(
                    OffsetToCommit(
                        topic.name,
                        known.topic_id,
                        partition.partition_index,
                        partition.committed_offset,
                        partition.committed_leader_epoch,
                        partition.committed_metadata,
                    )
                )
            else:
                answer.error_code = UnknownTopicOrPartitionError.errno
        self.response.topics.append(_Topic(name=topic.name, partitions=answers))

    def start(self) -> TxnOffsetCommitResponse | AnsweredLater:
        """Verify that the offsets belong to the transaction, and write them."""
        if not self._offsets:
            return self.response
        log, group_id = self._services.coordinator_log, self._request.message.group_id
        try:
            if not group_id:
                raise InvalidGroupIdError
            log.check(group_id, self._request.node_id)
        except BrokerResponseError as error:
            self._answer_all(error_code(error))
            return ANSWERED_LATER
        if log.has_open_transaction(group_id, self._producer):
            # The transaction was verified for its first offsets, and only a marker can end it, so it still
            # contains the group's partition.
            self._write(0)
        else:
            self._verify(TopicPartition(log.topic.name, log.partition_for(group_id)))
        return ANSWERED_LATER

    def _verify(self, place: TopicPartition) -> None:
        transactions = self._services.transactions
        transactional_id = self._request.message.transactional_id
        if self._request.version >= FIRST_VERSION_THAT_ADDS:
            transactions.add_partitions(
                transactional_id,
                *self._producer,
                [place],
                node_id=None,
                client_version=CLIENT_VERSION,
                on_done=self._write,
            )
        else:
            codes = transactions.verify_partitions(transactional_id, *self._producer, [place], node_id=None)
            self._write(codes[place])

    def _write(self, verification_code: int) -> None:
        if verification_code:
            self._answer_all(verification_code)
            return
        message = self._request.message
        committer = Committer(
            message.group_id,
            message.member_id,
            message.group_instance_id,
            message.generation_id,
            self._request.version,
        )
        self._services.offsets.commit_transactional(
            committer, self._producer, self._request.node_id, self._offsets, self._answer
        )

    def _answer_all(self, code: int) -> None:
        self._answer([code] * len(self._offsets))

    def _answer(self, codes: Sequence[int]) -> None:
        for answer, code in zip(self._answers, codes, strict=True):
            answer.error_code = _known_code(code, self._request.version)
        self._request.respond(self.response)


def _known_code(code: int, version: int) -> int:
    """Return ``code``, or its replacement if clients of ``version`` do not handle ``code`` correctly."""
    if code == ProducerFencedError.errno:
        return InvalidProducerEpochError.errno
    if code == TransactionAbortableError.errno and version < FIRST_VERSION_WITH_ABORTABLE:
        return InvalidTxnStateError.errno
    if code == CoordinatorLoadInProgressError.errno and version < FIRST_VERSION_WITH_LOADING:
        return CoordinatorNotAvailableError.errno
    return code


def handle(
    request: Request[TxnOffsetCommitRequest], services: GroupServices
) -> TxnOffsetCommitResponse | AnsweredLater:
    return _TransactionalCommit(request, services).start()


HANDLER = ApiHandler(TxnOffsetCommitRequest, 0, 5, handle)
