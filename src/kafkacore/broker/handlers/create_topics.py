"""CreateTopics: create topics with their partitions and settings.

Versions 2 to 7. All virtual nodes share one log, so a replication factor neither costs disk space nor
protects data; it only determines which nodes may lead a partition. The default (-1) means all nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.handlers.services import (
    ANSWERED_LATER,
    AnsweredLater,
    ApiHandler,
    Request,
    TopicServices,
)
from kafkacore.broker.log import TopicState
from kafkacore.broker.purgatory.response_collector import ResponseCollector
from kafkacore.broker.requests.authorization import allowed, allowed_on_cluster, require
from kafkacore.broker.topics.config_entries import topic_entries
from kafkacore.broker.topics.internal_topics import CLUSTER_METADATA
from kafkacore.errors import (
    InvalidReplicationAssignmentError,
    InvalidReplicationFactorError,
    InvalidRequestError,
    PolicyViolationError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
)
from kafkacore.protocol import ZERO_UUID
from kafkacore.protocol.generated.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kafkacore.wire import Uuid

USE_DEFAULT = -1
#: Maximum number of partitions of all topics in a request, as in Kafka's controller.
MAX_PARTITIONS = 10_000
#: First version in which a client over its ``controller_mutation_rate`` gets an error (KIP-599).
FIRST_STRICT_VERSION = 6

_Result = CreateTopicsResponse.CreatableTopicResult
_Config = CreateTopicsResponse.CreatableTopicConfigs


def handle(
    request: Request[CreateTopicsRequest], services: TopicServices
) -> CreateTopicsResponse | AnsweredLater:
    message = request.message
    requested = Counter(topic.name for topic in message.topics)
    topics = {topic.name: topic for topic in message.topics}.values()
    responses = ResponseCollector[_Result](
        len(topics), lambda results: request.respond(CreateTopicsResponse(topics=results))
    )
    create = ACLOperation.CREATE
    creates_all = allowed_on_cluster(request, services, create, is_asked_for=False)
    is_too_large = sum(_wanted_partitions(topic, services) for topic in topics) > MAX_PARTITIONS
    for index, topic in enumerate(topics):
        answer = responses.place(index)
        try:
            if requested[topic.name] > 1:
                raise InvalidRequestError("Duplicate topic name.")
            if topic.name == CLUSTER_METADATA:
                raise InvalidRequestError(f"Creation of internal topic {topic.name} is prohibited.")
            if not creates_all:
                require(request, services, create, ResourceType.TOPIC, topic.name)
            if is_too_large:
                raise PolicyViolationError("Excessively large number of partitions per request.")
            _create(topic, request, services, answer)
        except Exception as error:  # noqa: BLE001 - fails this topic only; error_code logs bugs
            answer(_refused(topic.name, error))
    return ANSWERED_LATER


def _wanted_partitions(topic: CreateTopicsRequest.CreatableTopic, services: TopicServices) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return (
        services.config.num_partitions
        if topic.num_partitions == USE_DEFAULT
        else max(topic.num_partitions, 0)
    )


def _refused(name: str, error: Exception) -> _Result:
    code, text = error_code(error), error_message(error)
    return _Result(name=name, topic_id=ZERO_UUID, error_code=code, error_message=text)


def _created_without_configs(name: str, topic_id: Uuid) -> _Result:
    """Return the result for a client that may not describe the topic's configuration."""
    return _Result(
        name=name,
        topic_id=topic_id,
        error_message=None,
        topic_config_error_code=TopicAuthorizationFailedError.errno,
    )


def _create(
    topic: CreateTopicsRequest.CreatableTopic,
    request: Request,
    services: TopicServices,
    answer: Callable[[_Result], None],
) -> None:
    # As in Kafka, this is checked before everything else in the request.
    if services.topics.get(topic.name) is not None:
        raise TopicAlreadyExistsError(f"Topic '{topic.name}' already exists.")
    partition_count, replication_factor, assigned = wanted_replicas(topic, services)
    configs = {config.name: config.value for config in topic.configs}

    def result_of(topic_id: Uuid, checked: Mapping[str, str]) -> _Result:
        describe = ACLOperation.DESCRIBE_CONFIGS
        if not allowed(request, services, describe, ResourceType.TOPIC, topic.name, is_asked_for=False):
            return _created_without_configs(topic.name, topic_id)
        return _Result(
            name=topic.name,
            topic_id=topic_id,
            error_message=None,
            num_partitions=partition_count,
            replication_factor=replication_factor,
            configs=[
                _Config(
                    name=entry.name,
                    value=entry.value,
                    read_only=False,
                    config_source=int(entry.source),
                    is_sensitive=False,
                )
                for entry in topic_entries(dict(checked), services, request.node_id)
            ],
        )

    def done(outcome: TopicState | Exception) -> None:
        if isinstance(outcome, Exception):
            answer(_refused(topic.name, outcome))
        else:
            answer(result_of(outcome.topic_id, outcome.configs))

    def record_mutation() -> None:
        services.quotas.record_mutation(request, partition_count, strict_since=FIRST_STRICT_VERSION)

    if request.message.validate_only:
        checked = services.topics.check_new(topic.name, partition_count, configs)
        # As in Kafka, a request that is only validated counts against the quota like a creation.
        record_mutation()
        answer(result_of(ZERO_UUID, checked))
        return

    def on_checked() -> None:
        record_mutation()
        partitions = range(partition_count)
        services.cluster.place_new(topic.name, partitions, replication_factor, assigned)

    services.topics.create_soon(topic.name, partition_count, configs, done, on_checked)


def wanted_replicas(
    topic: CreateTopicsRequest.CreatableTopic, services: TopicServices
) -> tuple[int, int, list[list[int]]]:
    """Return the number of partitions, the replication factor, and the assigned nodes if the request has any.

    Raises
    ------
    InvalidRequestError, InvalidReplicationFactorError, InvalidReplicationAssignmentError
        In the same cases as in Kafka's controller.
    """
    if topic.assignments:
        if topic.num_partitions != USE_DEFAULT or topic.replication_factor != USE_DEFAULT:
            raise InvalidRequestError(
                "Number of partitions and replication factor must be -1 if a replica assignment is given."
            )
        assigned = {one.partition_index: list(one.broker_ids) for one in topic.assignments}
        if len(assigned) != len(topic.assignments) or sorted(assigned) != list(range(len(assigned))):
            raise InvalidReplicationAssignmentError(
                "partitions should be a consecutive 0-based integer sequence"
            )
        replicas = [assigned[partition] for partition in range(len(assigned))]
        services.cluster.check_replicas(replicas)
        return len(replicas), len(replicas[0]), replicas
    factor = topic.replication_factor
    node_count = len(services.cluster.nodes())
    if factor == USE_DEFAULT:
        factor = services.cluster.default_replication_factor
    elif factor < 1:
        raise InvalidReplicationFactorError("Replication factor must be larger than 0.")
    elif factor > node_count:
        brokers = "there is one broker" if node_count == 1 else f"there are {node_count} brokers"
        raise InvalidReplicationFactorError(f"Unable to replicate the partition {factor} time(s): {brokers}.")
    count = services.config.num_partitions if topic.num_partitions == USE_DEFAULT else topic.num_partitions
    return int(count), factor, []


HANDLER = ApiHandler(CreateTopicsRequest, 2, 7, handle)
