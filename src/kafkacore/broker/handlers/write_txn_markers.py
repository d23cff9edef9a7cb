"""WriteTxnMarkers: write the ends of transactions to partitions (KIP-98).

Versions 1 and 2. In a Kafka cluster, brokers send this request to each other. Here, administrators send it to
abort a transaction that has no coordinator (KIP-664).
"""

from __future__ import annotations

from kafkacore.access_control import ACLOperation
from kafkacore.broker.coordinator.interfaces import EndTransactionMarker
from kafkacore.broker.error_answer import error_code
from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
    AnsweredLater,
    ApiHandler,
    Request,
    TransactionHandlerServices,
)
from kafkacore.broker.log.unified_log import UnifiedLog
from kafkacore.broker.purgatory.delayed_operation import NEVER_MS, DelayedProduce
from kafkacore.broker.requests.authorization import allowed_on_cluster
from kafkacore.errors import (
    ClusterAuthorizationFailedError,
    CoordinatorLoadInProgressError,
    KafkaStorageError,
    NotCoordinatorError,
    NotLeaderForPartitionError,
)
from kafkacore.protocol.generated.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kafkacore.structs import TopicPartition

_Marker = WriteTxnMarkersResponse.WritableTxnMarkerResult
_Topic = WriteTxnMarkersResponse.WritableTxnMarkerTopicResult
_Partition = WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult


class _Pending:
    """An appended marker that the high watermark has not passed yet."""

    def __init__(
        self, answer: _Partition, topic_partition: TopicPartition, log: UnifiedLog, required: int
    ) -> None:
        self.topic_partition = topic_partition
        self._answer = answer
        self._log = log
        self._required = required

    def outcome(self) -> int | None:
        if self._log.high_watermark >= self._required:
            return 0
        is_lost = self._log.failure is not None or self._log.is_closed
        return KafkaStorageError.errno if is_lost else None

    def settle(self) -> None:
        self._answer.error_code = self.outcome() or 0


def handle(
    request: Request[WriteTxnMarkersRequest], services: TransactionHandlerServices
) -> WriteTxnMarkersResponse | AnsweredLater:
    if not allowed_on_cluster(request, services, ACLOperation.ALTER, is_asked_for=False) and not (
        allowed_on_cluster(request, services, ACLOperation.CLUSTER_ACTION)
    ):
        return _refused(request.message)
    pending: list[_Pending] = []
    response = WriteTxnMarkersResponse(
        markers=[
            _Marker(
                producer_id=wanted.producer_id,
                topics=[
                    _Topic(
                        name=topic.name,
                        partitions=[
                            _append(wanted, TopicPartition(topic.name, index), request, services, pending)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in wanted.topics
                ],
            )
            for wanted in request.message.markers
        ]
    )
    if not pending:
        return response

    def answer() -> None:
        for each in pending:
            each.settle()
        request.respond(response)

    request.operation = DelayedProduce(NEVER_MS, pending, answer)
    services.replica_manager.produce_purgatory.try_complete_else_watch(
        request.operation, [each.topic_partition for each in pending]
    )
    return ANSWERED_LATER


def _refused(message: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    """Return the response to a client that may not write markers."""
    code = ClusterAuthorizationFailedError.errno
    return WriteTxnMarkersResponse(
        markers=[
            _Marker(
                producer_id=wanted.producer_id,
                topics=[
                    _Topic(
                        name=topic.name,
                        partitions=[
                            _Partition(partition_index=index, error_code=code)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in wanted.topics
                ],
            )
            for wanted in message.markers
        ]
    )


def _append(
    wanted: WriteTxnMarkersRequest.WritableTxnMarker,
    topic_partition: TopicPartition,
    request: Request,
    services: TransactionHandlerServices,
    pending: list[_Pending],
) -> _Partition:
    marker = EndTransactionMarker(
        wanted.producer_id,
        wanted.producer_epoch,
        wanted.transaction_result,
        wanted.coordinator_epoch,
        wanted.transaction_version,
    )
    answer = _Partition(partition_index=topic_partition.partition)
    try:
        services.cluster.led_log(topic_partition, request.node_id)
        log, required = services.append_marker(topic_partition, marker)
    except (CoordinatorLoadInProgressError, NotCoordinatorError):
        # Return this error as Kafka does, because a transaction coordinator retries after this error.
        answer.error_code = NotLeaderForPartitionError.errno
    except Exception as error:  # noqa: BLE001 - fails this partition only; error_code logs bugs
        answer.error_code = error_code(error)
    else:
        pending.append(_Pending(answer, topic_partition, log, required))
    return answer


HANDLER = ApiHandler(WriteTxnMarkersRequest, 1, 2, handle)
