"""FindCoordinator: return the coordinator of a group or of a transactional id.

Versions 0 to 6. The coordinator is the leader of the partition of ``__consumer_offsets`` or
``__transaction_state`` that stores the group or id. The first request creates the topic. Share groups are not
supported.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.coordinator.coordinator_log import CoordinatorLog
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.handlers.services import ApiHandler, GroupServices, Request
from kafkacore.broker.log_lines import NameLogger
from kafkacore.broker.requests.authorization import require, require_cluster
from kafkacore.broker.topics.cluster_state import BrokerNode
from kafkacore.errors import (
    CoordinatorNotAvailableError,
    InvalidRequestError,
    UnsupportedVersionError,
)
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkacore.structs import TopicPartition, partition_name

FIRST_BATCHED_VERSION = 4
GROUP, TRANSACTION, SHARE = 0, 1, 2
FIRST_VERSION_WITH_SHARE = 6
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
        node = _coordinator(key, _log_of(request, services), services).for_listener(
            request.context.listener_name
        )
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


def _log_of(request: Request[FindCoordinatorRequest], services: GroupServices) -> CoordinatorLog[Any]:
    """Return the log of the wanted coordinator.

    Raises
    ------
    UnsupportedVersionError, InvalidRequestError
        This broker has no such coordinator. The error is logged, because some clients retry without showing
        the error.
    """
    key_type = request.message.key_type
    if key_type == GROUP:
        return services.coordinator_log
    if key_type == TRANSACTION:
        return services.transaction_log
    what = "share groups" if key_type == SHARE else f"coordinators of type {key_type}"
    logger.warning("client %s uses %s, which this broker does not support", request.client_id, what)
    sentence = f"This broker does not support {what}: use Apache Kafka for them."
    raise UnsupportedVersionError(sentence) if key_type == SHARE else InvalidRequestError(sentence)


def _coordinator(key: str, log: CoordinatorLog[Any], services: GroupServices) -> BrokerNode:
    log.ensure_topic()
    place = TopicPartition(log.topic.name, log.partition_for(key))
    node = services.cluster.node(services.cluster.leader(place))
    if node is None or services.cluster.leader_epoch(place) < 0:
        raise CoordinatorNotAvailableError(f"{partition_name(place)} has no leader")
    return node


HANDLER = ApiHandler(FindCoordinatorRequest, 0, 6, handle)
