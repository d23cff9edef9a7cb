"""AddOffsetsToTxn: add a group's partition of ``__consumer_offsets`` to a transaction (KIP-98).

Versions 0 to 4. Clients of transaction version 2 do not send this request: their TxnOffsetCommit adds the
partition (KIP-890).
"""

from __future__ import annotations

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
    AnsweredLater,
    ApiHandler,
    GroupServices,
    Request,
)
from kafkacore.broker.requests.authorization import allowed
from kafkacore.errors import (
    GroupAuthorizationFailedError,
    InvalidProducerEpochError,
    ProducerFencedError,
    TransactionalIdAuthorizationFailedError,
)
from kafkacore.protocol.generated.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kafkacore.structs import TopicPartition

#: First AddOffsetsToTxn version whose clients know the error PRODUCER_FENCED.
FIRST_VERSION_WITH_FENCED = 2
#: Transaction version of a client that sends this request.
CLIENT_VERSION = 0


def handle(
    request: Request[AddOffsetsToTxnRequest], services: GroupServices
) -> AddOffsetsToTxnResponse | AnsweredLater:
    message = request.message
    transactional_id, group_id = message.transactional_id, message.group_id
    if not allowed(request, services, ACLOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return AddOffsetsToTxnResponse(error_code=TransactionalIdAuthorizationFailedError.errno)
    if not allowed(request, services, ACLOperation.READ, ResourceType.GROUP, group_id):
        return AddOffsetsToTxnResponse(error_code=GroupAuthorizationFailedError.errno)

    def on_done(code: int) -> None:
        if code == ProducerFencedError.errno and request.version < FIRST_VERSION_WITH_FENCED:
            code = InvalidProducerEpochError.errno
        request.respond(AddOffsetsToTxnResponse(error_code=code))

    log = services.coordinator_log
    services.transactions.add_partitions(
        transactional_id,
        message.producer_id,
        message.producer_epoch,
        [TopicPartition(log.topic.name, log.partition_for(group_id))],
        node_id=request.node_id,
        client_version=CLIENT_VERSION,
        on_done=on_done,
    )
    return ANSWERED_LATER


HANDLER = ApiHandler(AddOffsetsToTxnRequest, 0, 4, handle)
