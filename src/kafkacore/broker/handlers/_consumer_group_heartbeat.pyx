"""Handle ConsumerGroupHeartbeat requests.

This is compiled, because a group of 10,000 members sends 2,000 heartbeats per second. Nearly all of them are
answered without any Python function.
"""

from kafkacore.broker.group.consumer._heartbeat cimport ConsumerHeartbeat
from kafkacore.broker.requests._request cimport Request

from functools import partial

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.handlers.services import ANSWERED_LATER
from kafkacore.broker.requests.authorization import allowed, allowed_names, require
from kafkacore.errors import AuthorizationError, TopicAuthorizationFailedError, UnsupportedVersionError
from kafkacore.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

_Assignment = ConsumerGroupHeartbeatResponse.Assignment
_Partitions = ConsumerGroupHeartbeatResponse.TopicPartitions


def handle(Request request not None, services):
    cdef ConsumerHeartbeat message = request.message
    message.client_id = request.client_id or ""
    message.client_host = request.context.client_host
    try:
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


def _may_describe(request, services, topic):
    return allowed(request, services, ACLOperation.DESCRIBE, ResourceType.TOPIC, topic, is_asked_for=False)


def _respond(request, code, result):
    request.respond(_response(code, result))


def _response(code, result):
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
