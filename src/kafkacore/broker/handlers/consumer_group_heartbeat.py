"""ConsumerGroupHeartbeat (KIP-848): join a consumer group, stay in it, receive partitions, and leave.

Versions 0 to 1. From version 1 on, a member generates its own id, and can subscribe to a regular expression.
"""

from __future__ import annotations

from functools import partial

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.group.consumer._heartbeat import (
    ConsumerHeartbeat,
    SteadyAnswer,
    encode_heartbeat,
    read_heartbeat,
)
from kafkacore.broker.group.consumer.heartbeats import HeartbeatResult
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

_Assignment = ConsumerGroupHeartbeatResponse.Assignment
_Partitions = ConsumerGroupHeartbeatResponse.TopicPartitions


def handle(
    request: Request[ConsumerHeartbeat], services: GroupServices
) -> ConsumerGroupHeartbeatResponse | SteadyAnswer | AnsweredLater:
    message = request.message
    message.client_id = request.client_id or ""
    message.client_host = f"/{request.context.host}"
    try:
        # Each heartbeat comes here, so avoid calls that would only allow it.
        if services.authorizer is not None and services.groups.serves_consumer_groups:
            require(request, services, ACLOperation.READ, ResourceType.GROUP, message.group_id)
        answer = services.groups.steady_answer(message, request.context.node_id, request.began_ms)
        if answer is not None:
            return answer
        if not services.groups.serves_consumer_groups:
            return ConsumerGroupHeartbeatResponse(error_code=UnsupportedVersionError.errno)
        names = message.subscribed_topic_names
        if names:
            described = allowed_names(request, services, ACLOperation.DESCRIBE, ResourceType.TOPIC, names)
            if len(described) < len(set(names)):
                raise TopicAuthorizationFailedError
        services.groups.consumer_heartbeat(
            message,
            request.node_id,
            partial(_may_describe, request, services),
            partial(_respond, request),
        )
    except AuthorizationError as error:
        return ConsumerGroupHeartbeatResponse(error_code=error.errno)
    except Exception as error:  # noqa: BLE001 - fails this request only; error_code logs bugs
        return ConsumerGroupHeartbeatResponse(
            error_code=error_code(error), error_message=error_message(error)
        )
    return ANSWERED_LATER


def _may_describe(request: Request[ConsumerHeartbeat], services: GroupServices, topic: str) -> bool:
    return allowed(request, services, ACLOperation.DESCRIBE, ResourceType.TOPIC, topic, is_asked_for=False)


def _respond(request: Request[ConsumerHeartbeat], code: int, result: HeartbeatResult) -> None:
    request.respond(_response(code, result))


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


HANDLER: ApiHandler[ConsumerHeartbeat, ConsumerGroupHeartbeatResponse | SteadyAnswer] = ApiHandler(
    ConsumerGroupHeartbeatRequest, 0, 1, handle, read_heartbeat, encode_heartbeat
)
