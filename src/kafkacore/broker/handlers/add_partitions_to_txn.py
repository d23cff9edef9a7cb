"""AddPartitionsToTxn: add partitions to transactions, or check that they were added (KIP-98, KIP-890).

Versions 0 to 5. Producers use versions 0 to 3. Versions 4 and 5 are requests between brokers. Such a request
may name several transactions, and may ask only for the check.
"""

from __future__ import annotations

from functools import partial

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
    AnsweredLater,
    ApiHandler,
    Request,
    TransactionHandlerServices,
)
from kafkacore.broker.requests.authorization import allowed, allowed_names, require_cluster
from kafkacore.broker.topics.internal_topics import is_internal
from kafkacore.errors import (
    BrokerResponseError,
    InvalidProducerEpochError,
    OperationNotAttemptedError,
    ProducerFencedError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from kafkacore.structs import TopicPartition

FIRST_VERSION_OF_BROKERS = 4
#: First version whose clients understand PRODUCER_FENCED.
FIRST_VERSION_WITH_FENCED = 2

_Transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
_Result = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
_TopicResult = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
_PartitionResult = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult


class _Add:
    """An AddPartitionsToTxn request in progress, with the results so far."""

    def __init__(
        self, request: Request[AddPartitionsToTxnRequest], services: TransactionHandlerServices
    ) -> None:
        self._request = request
        self._services = services
        message = request.message
        self._is_of_client = request.version < FIRST_VERSION_OF_BROKERS
        self._transactions = list(message.transactions)
        if self._is_of_client:
            self._transactions = [
                _Transaction(
                    transactional_id=message.v3_and_below_transactional_id,
                    producer_id=message.v3_and_below_producer_id,
                    producer_epoch=message.v3_and_below_producer_epoch,
                    topics=message.v3_and_below_topics,
                )
            ]
        self._codes: dict[int, dict[TopicPartition, int]] = {}

    def start(self) -> None:
        if not self._transactions:
            self._respond()
        for number, transaction in enumerate(self._transactions):
            self._add(number, transaction)

    def _add(self, number: int, transaction: _Transaction) -> None:
        partitions = [
            TopicPartition(topic.name, index) for topic in transaction.topics for index in topic.partitions
        ]
        refused = self._refused(transaction.transactional_id, partitions)
        if refused:
            self._done(number, refused)
            return
        producer = (transaction.transactional_id, transaction.producer_id, transaction.producer_epoch)
        transactions, node_id = self._services.transactions, self._request.node_id
        if transaction.verify_only:
            self._done(number, transactions.verify_partitions(*producer, partitions, node_id))
            return
        on_done = partial(self._added, number, partitions)
        # As in Kafka's TransactionVersion, a request from a broker implies a client with version 2.
        client_version = 0 if self._is_of_client else 2
        transactions.add_partitions(*producer, partitions, node_id, client_version, on_done)

    def _refused(self, transactional_id: str, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the error code of each partition if any of them may not be added, else an empty dict."""
        request, services, write = self._request, self._services, ACLOperation.WRITE
        names = {each.topic for each in partitions}
        if self._is_of_client:
            if not allowed(request, services, write, ResourceType.TRANSACTIONAL_ID, transactional_id):
                return dict.fromkeys(partitions, TransactionalIdAuthorizationFailedError.errno)
            names = {name for name in names if not is_internal(name)}
            names = allowed_names(request, services, write, ResourceType.TOPIC, names)
        codes = {}
        for each in partitions:
            topic = services.topics.get(each.topic)
            if each.topic not in names:
                codes[each] = TopicAuthorizationFailedError.errno
            elif topic is None or not 0 <= each.partition < topic.partition_count:
                codes[each] = UnknownTopicOrPartitionError.errno
        if not codes:
            return {}
        return {each: codes.get(each, OperationNotAttemptedError.errno) for each in partitions}

    def _added(self, number: int, partitions: list[TopicPartition], code: int) -> None:
        if code == ProducerFencedError.errno and self._request.version < FIRST_VERSION_WITH_FENCED:
            code = InvalidProducerEpochError.errno
        self._done(number, dict.fromkeys(partitions, code))

    def _done(self, number: int, codes: dict[TopicPartition, int]) -> None:
        self._codes[number] = codes
        if len(self._codes) == len(self._transactions):
            self._respond()

    def _respond(self) -> None:
        results = [self._topics(self._codes[number]) for number in range(len(self._transactions))]
        if self._is_of_client:
            self._request.respond(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0]))
            return
        self._request.respond(
            AddPartitionsToTxnResponse(
                results_by_transaction=[
                    _Result(transactional_id=transaction.transactional_id, topic_results=topics)
                    for transaction, topics in zip(self._transactions, results, strict=True)
                ]
            )
        )

    @staticmethod
    def _topics(codes: dict[TopicPartition, int]) -> list[_TopicResult]:
        by_topic: dict[str, list[_PartitionResult]] = {}
        for (topic, partition), code in codes.items():
            result = _PartitionResult(partition_index=partition, partition_error_code=code)
            by_topic.setdefault(topic, []).append(result)
        return [_TopicResult(name=name, results_by_partition=results) for name, results in by_topic.items()]


def handle(
    request: Request[AddPartitionsToTxnRequest], services: TransactionHandlerServices
) -> AddPartitionsToTxnResponse | AnsweredLater:
    if request.version >= FIRST_VERSION_OF_BROKERS:
        try:
            require_cluster(request, services, ACLOperation.CLUSTER_ACTION)
        except BrokerResponseError as error:
            return AddPartitionsToTxnResponse(error_code=error.errno)
    _Add(request, services).start()
    return ANSWERED_LATER


HANDLER = ApiHandler(AddPartitionsToTxnRequest, 0, 5, handle)
