"""CreatePartitions: add partitions to existing topics.

Versions 0 to 3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
    AnsweredLater,
    ApiHandler,
    Request,
    TopicServices,
)
from kafkacore.broker.purgatory.response_collector import ResponseCollector
from kafkacore.broker.requests.authorization import require
from kafkacore.errors import (
    InvalidReplicationAssignmentError,
    InvalidRequestError,
    TopicAuthorizationFailedError,
)
from kafkacore.protocol.generated.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from kafkacore.structs import TopicPartition

#: First version in which a client over its ``controller_mutation_rate`` gets an error (KIP-599).
FIRST_STRICT_VERSION = 3

_Result = CreatePartitionsResponse.CreatePartitionsTopicResult


def handle(
    request: Request[CreatePartitionsRequest], services: TopicServices
) -> CreatePartitionsResponse | AnsweredLater:
    message = request.message
    requested = Counter(topic.name for topic in message.topics)
    topics = {topic.name: topic for topic in message.topics}.values()
    responses = ResponseCollector[_Result](
        len(topics), lambda results: request.respond(CreatePartitionsResponse(results=results))
    )
    for index, topic in enumerate(topics):
        answer = partial(_answer, topic.name, responses.place(index))
        try:
            if requested[topic.name] > 1:
                raise InvalidRequestError("Duplicate topic in request.")
            require(request, services, ACLOperation.ALTER, ResourceType.TOPIC, topic.name)
        except (InvalidRequestError, TopicAuthorizationFailedError) as error:
            answer(error)
        else:
            _grow(topic, request, services, answer)
    return ANSWERED_LATER


def _answer(name: str, answer: Callable[[_Result], None], error: Exception | None) -> None:
    if error is None:
        answer(_Result(name=name))
    else:
        answer(_Result(name=name, error_code=error_code(error), error_message=error_message(error)))


def _grow(
    topic: CreatePartitionsRequest.CreatePartitionsTopic,
    request: Request[CreatePartitionsRequest],
    services: TopicServices,
    answer: Callable[[Exception | None], None],
) -> None:
    def check(added: range) -> None:
        _check_assignments(topic, added, services)
        # As in Kafka, a request that is only validated counts against the quota, too.
        services.quotas.record_mutation(request, len(added), strict_since=FIRST_STRICT_VERSION)

    def place(added: range) -> None:
        check(added)
        factor = len(services.cluster.replicas(TopicPartition(topic.name, 0)))
        assigned = [list(one.broker_ids) for one in topic.assignments or ()]
        services.cluster.place_new(topic.name, added, factor, assigned)

    if not request.message.validate_only:
        services.topics.grow_soon(topic.name, topic.count, answer, place)
        return
    try:
        check(services.topics.check_growth(topic.name, topic.count))
    except Exception as error:  # noqa: BLE001 - fails this topic only; error_code logs bugs
        answer(error)
    else:
        answer(None)


def _check_assignments(
    topic: CreatePartitionsRequest.CreatePartitionsTopic, added: range, services: TopicServices
) -> None:
    if topic.assignments is None:
        return
    if len(topic.assignments) != len(added):
        raise InvalidReplicationAssignmentError(
            f"Attempted to add {len(added)} additional partition(s), but only {len(topic.assignments)} "
            "assignment(s) were specified."
        )
    factor = len(services.cluster.replicas(TopicPartition(topic.name, 0)))
    services.cluster.check_replicas([list(one.broker_ids) for one in topic.assignments], factor)


HANDLER = ApiHandler(CreatePartitionsRequest, 0, 3, handle)
