"""DescribeTransactions: return the state of transactional ids (KIP-664).

Version 0. Topics that the client may not describe are left out, as in Kafka.
"""

from __future__ import annotations

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.error_answer import error_code
from kafkacore.broker.handlers.services import ApiHandler, Request, TransactionHandlerServices
from kafkacore.broker.requests.authorization import allowed_names, require
from kafkacore.protocol.generated.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)

_State = DescribeTransactionsResponse.TransactionState
_Topic = DescribeTransactionsResponse.TopicData


def handle(
    request: Request[DescribeTransactionsRequest], services: TransactionHandlerServices
) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[_describe(name, request, services) for name in request.message.transactional_ids]
    )


def _describe(transactional_id: str, request: Request, services: TransactionHandlerServices) -> _State:
    describe = ACLOperation.DESCRIBE
    try:
        require(request, services, describe, ResourceType.TRANSACTIONAL_ID, transactional_id)
        metadata = services.transactions.describe(transactional_id, request.node_id)
    except Exception as error:  # noqa: BLE001 - fails this id only; error_code logs bugs
        return _State(transactional_id=transactional_id, error_code=error_code(error))
    names = {each.topic for each in metadata.partitions}
    shown = allowed_names(request, services, describe, ResourceType.TOPIC, sorted(names))
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(metadata.partitions):
        if topic in shown:
            topics.setdefault(topic, []).append(partition)
    return _State(
        transactional_id=transactional_id,
        transaction_state=metadata.state.title,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_start_time_ms=metadata.start_ms,
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        topics=[_Topic(topic=name, partitions=partitions) for name, partitions in topics.items()],
    )


HANDLER = ApiHandler(DescribeTransactionsRequest, 0, 0, handle)
