"""ConsumerGroupHeartbeat (KIP-848): join a consumer group, stay in it, receive partitions, and leave.

Versions 0 to 1. From version 1 on, a member generates its own id, and can subscribe to a regular expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.group.consumer.heartbeats import ConsumerHeartbeat, HeartbeatResult
from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
    AnsweredLater,
    ApiHandler,
    GroupServices,
    Request,
)
from kafkacore.broker.requests.authorization import allowed, allowed_names, require
from kafkacore.errors import AuthorizationError, TopicAuthorizationFailedError, UnsupportedVersionError
from kafkacore.protocol.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kafkacore.structs import ACLOperation, ResourceType

_Owned = ConsumerGroupHeartbeatRequest.TopicPartitions
_Assignment = ConsumerGroupHeartbeatResponse.Assignment
_Partitions = ConsumerGroupHeartbeatResponse.TopicPartitions


def handle(
    request: Request[ConsumerGroupHeartbeatRequest], services: GroupServices
) -> ConsumerGroupHeartbeatResponse | AnsweredLater:
    if not services.groups.serves_consumer_groups:
        return ConsumerGroupHeartbeatResponse(error_code=UnsupportedVersionError.errno)
    message = request.message

    def may_describe(topic: str) -> bool:
        return allowed(
            request, services, ACLOperation.DESCRIBE, ResourceType.TOPIC, topic, is_asked_for=False
        )

    try:
        require(request, services, ACLOperation.READ, ResourceType.GROUP, message.group_id)
        names = message.subscribed_topic_names
        if names:
            described = allowed_names(request, services, ACLOperation.DESCRIBE, ResourceType.TOPIC, names)
            if len(described) < len(set(names)):
                raise TopicAuthorizationFailedError
        owned = message.topic_partitions
        heartbeat = ConsumerHeartbeat(
            group_id=message.group_id,
            member_id=message.member_id,
            member_epoch=message.member_epoch,
            instance_id=message.instance_id,
            rack_id=message.rack_id,
            rebalance_timeout_ms=message.rebalance_timeout_ms,
            subscribed_topic_names=names,
            subscribed_topic_regex=message.subscribed_topic_regex,
            server_assignor=message.server_assignor,
            topic_partitions=None if owned is None else _by_topic(owned),
            client_id=request.client_id or "",
            client_host=f"/{request.context.host}",
            version=request.version,
            may_describe=may_describe,
        )
        services.groups.consumer_heartbeat(
            heartbeat, request.node_id, lambda code, result: request.respond(_response(code, result))
        )
    except AuthorizationError as error:
        return ConsumerGroupHeartbeatResponse(error_code=error.errno)
    except Exception as error:  # noqa: BLE001 - fails this request only; error_code logs bugs
        return ConsumerGroupHeartbeatResponse(
            error_code=error_code(error), error_message=error_message(error)
        )
    return ANSWERED_LATER


def _by_topic(owned: Sequence[_Owned]) -> dict[UUID, list[int]]:
    """Return the partitions by topic id. A request may contain a topic more than once."""
    partitions: dict[UUID, list[int]] = {}
    for one in owned:
        partitions.setdefault(one.topic_id, []).extend(one.partitions)
    return partitions


def _response(code: int, result: HeartbeatResult) -> ConsumerGroupHeartbeatResponse:
    if code:
        return ConsumerGroupHeartbeatResponse(error_code=code)
    assignment = result.assignment
    return ConsumerGroupHeartbeatResponse(
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=result.heartbeat_interval_ms,
        assignment=None
        if assignment is None
        else _Assignment(
            topic_partitions=[
                _Partitions(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in assignment.items()
            ]
        ),
    )


HANDLER = ApiHandler(ConsumerGroupHeartbeatRequest, 0, 1, handle)
