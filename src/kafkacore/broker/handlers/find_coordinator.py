"""FindCoordinator: return the coordinator of a group, which is the leader of the group's offsets partition.

Versions 0 to 6. The first request creates ``__consumer_offsets``. Transactions and share groups are not
supported. A request for their coordinator is answered with an error that every known client treats as fatal.
"""

from __future__ import annotations

from typing import NamedTuple

from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.handlers.services import ApiHandler, GroupServices, Request
from kafkacore.broker.log_lines import NameLogger
from kafkacore.broker.requests.authorization import require, require_cluster
from kafkacore.broker.topics.cluster_state import BrokerNode
from kafkacore.broker.topics.internal_topics import OFFSETS_TOPIC
from kafkacore.errors import (
    BrokerResponseError,
    CoordinatorNotAvailableError,
    InvalidRequestError,
    TransactionalIdAuthorizationFailedError,
    UnsupportedVersionError,
)
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkacore.structs import ACLOperation, ResourceType, TopicPartition, partition_name

FIRST_BATCHED_VERSION = 4
GROUP, TRANSACTION, SHARE = 0, 1, 2
FIRST_VERSION_WITH_SHARE = 6
#: Unsupported coordinator types, with the feature that needs them.
NOT_SERVED = {TRANSACTION: "transactions", SHARE: "share groups"}
#: The version that librdkafka uses. librdkafka reports a failed authorization together with the broker's
#: message. After any other error it retries until ``init_transactions`` times out.
LIBRDKAFKA_VERSION = 2

logger = NameLogger(__name__)

_Coordinator = FindCoordinatorResponse.Coordinator


def handle(request: Request[FindCoordinatorRequest], services: GroupServices) -> FindCoordinatorResponse:
    message = request.message
    if request.version < FIRST_BATCHED_VERSION:
        return FindCoordinatorResponse(**_found(request, message.key, services)._asdict())
    return FindCoordinatorResponse(
        coordinators=[
            _Coordinator(key=key, **_found(request, key, services)._asdict())
            for key in message.coordinator_keys
        ]
    )


class _Found(NamedTuple):
    """The coordinator fields that responses of all versions have in common."""

    node_id: int
    host: str
    port: int
    error_code: int = 0
    error_message: str | None = None


def _found(request: Request[FindCoordinatorRequest], key: str, services: GroupServices) -> _Found:
    try:
        _authorize(request, key, services)
        if request.message.key_type != GROUP:
            raise _refusal(request)
        node = _coordinator(key, services).for_listener(request.context.listener_name)
    except Exception as error:  # noqa: BLE001 - fails this key only; error_code logs bugs
        return _Found(-1, "", -1, error_code(error), error_message(error))
    return _Found(node.node_id, node.host, node.port)


def _authorize(request: Request[FindCoordinatorRequest], key: str, services: GroupServices) -> None:
    kind, describe = request.message.key_type, ACLOperation.DESCRIBE
    if kind == GROUP:
        require(request, services, describe, ResourceType.GROUP, key)
    elif kind == TRANSACTION:
        require(request, services, describe, ResourceType.TRANSACTIONAL_ID, key)
    elif kind == SHARE and request.version >= FIRST_VERSION_WITH_SHARE:
        require_cluster(request, services, ACLOperation.CLUSTER_ACTION)


def _refusal(request: Request[FindCoordinatorRequest]) -> BrokerResponseError:
    """Return the error for the client, and log it, because some clients retry without showing the message."""
    key_type = request.message.key_type
    what = NOT_SERVED.get(key_type, f"coordinators of type {key_type}")
    logger.warning("client %s uses %s, which this broker does not support", request.client_id, what)
    sentence = f"This broker does not support {what}: use Apache Kafka for them."
    if key_type not in NOT_SERVED:
        return InvalidRequestError(sentence)
    if key_type == TRANSACTION and request.version == LIBRDKAFKA_VERSION:
        return TransactionalIdAuthorizationFailedError(sentence)
    return UnsupportedVersionError(sentence)


def _coordinator(group_id: str, services: GroupServices) -> BrokerNode:
    services.coordinator_log.ensure_topic()
    place = TopicPartition(OFFSETS_TOPIC, services.coordinator_log.partition_for(group_id))
    node = services.cluster.node(services.cluster.leader(place))
    if node is None or services.cluster.leader_epoch(place) < 0:
        raise CoordinatorNotAvailableError(f"{partition_name(place)} has no leader")
    return node


HANDLER = ApiHandler(FindCoordinatorRequest, 0, 6, handle)
