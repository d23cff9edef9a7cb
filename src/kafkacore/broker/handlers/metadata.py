"""Metadata: return brokers, topics and partition leaders; create missing topics if allowed.

Versions 0 to 13. A topic that the client may not describe is refused whether or not it exists. A list of all
topics omits such topics. For a topic requested by ID, the error does not contain the topic's name.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkacore.access_control import ACLOperation, ResourceType
from kafkacore.broker.config import topic_names
from kafkacore.broker.handlers.services import ApiHandler, CloseConnectionError, Request, TopicServices
from kafkacore.broker.requests.authorization import (
    allowed_names,
    allowed_on_cluster,
    authorized_operations,
    cluster_operations,
)
from kafkacore.broker.topics.cluster_state import NO_LEADER
from kafkacore.broker.topics.internal_topics import is_internal
from kafkacore.errors import (
    InvalidTopicError,
    LeaderNotAvailableError,
    ThrottlingQuotaExceededError,
    TopicAuthorizationFailedError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol import ZERO_UUID
from kafkacore.protocol.generated.metadata import MetadataRequest, MetadataResponse
from kafkacore.structs import TopicPartition
from kafkacore.wire import Uuid

_Topic = MetadataResponse.MetadataResponseTopic
_Partition = MetadataResponse.MetadataResponsePartition
_Broker = MetadataResponse.MetadataResponseBroker


def handle(request: Request[MetadataRequest], services: TopicServices) -> MetadataResponse:
    message, version = request.message, request.version
    response = MetadataResponse(
        brokers=[
            _Broker(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
            for node in services.cluster.alive_nodes(request.context.listener_name)
        ],
        cluster_id=services.cluster_id,
        controller_id=services.cluster.controller_id,
        topics=_topics(request, services),
    )
    if 8 <= version <= 10 and message.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(request, services)
    if version >= 8 and message.include_topic_authorized_operations:
        for topic in response.topics:
            # As in Kafka, the allowed operations are set even for topics that do not exist.
            if topic.name is not None and topic.error_code != TopicAuthorizationFailedError.errno:
                topic.topic_authorized_operations = authorized_operations(
                    request, services, ResourceType.TOPIC, topic.name
                )
    return response


def _topics(request: Request, services: TopicServices) -> list[_Topic]:
    message, version = request.message, request.version
    # In version 0, an empty list requests all topics. In later versions, an empty list requests no topics,
    # and null requests all topics.
    if message.topics is None or (version == 0 and not message.topics):
        names = services.topics.names()
        visible = visible_topics(names, request, services, is_asked_for=False)
        return [describe_topic(name, services) for name in names if name in visible]
    by_name: list[str] = []
    described: list[_Topic] = []
    for topic in message.topics:
        if version >= 10 and (topic.name is None or topic.topic_id != ZERO_UUID):
            if version < 12:
                raise CloseConnectionError(f"Metadata v{version} cannot name topics by id")
            described.append(_describe_id(topic.topic_id, request, services))
        else:
            by_name.append(topic.name)
    names = list(dict.fromkeys(by_name))
    may_create = services.config.auto_create_topics_enable and (
        version < 4 or message.allow_auto_topic_creation
    )
    visible = visible_topics(names, request, services)
    refused = _create_missing(visible, request, services) if may_create else {}
    for name in names:
        if name not in visible:
            described.append(_Topic(error_code=TopicAuthorizationFailedError.errno, name=name))
        elif name in refused:
            described.append(_Topic(error_code=refused[name], name=name, is_internal=is_internal(name)))
        else:
            described.append(describe_topic(name, services))
    return described


def visible_topics(
    names: Iterable[str], request: Request, services: TopicServices, *, is_asked_for: bool = True
) -> set[str]:
    """Return the names of the topics that the client may describe, whether or not they exist."""
    describe, topic = ACLOperation.DESCRIBE, ResourceType.TOPIC
    return allowed_names(request, services, describe, topic, names, is_asked_for=is_asked_for)


def _create_missing(names: Iterable[str], request: Request, services: TopicServices) -> dict[str, int]:
    """Create the topics that do not exist, and return the error codes of failures by name."""
    missing, create = [name for name in names if services.topics.get(name) is None], ACLOperation.CREATE
    refused = {}
    if missing and not allowed_on_cluster(request, services, create, is_asked_for=False):
        creatable = allowed_names(request, services, create, ResourceType.TOPIC, missing)
        denied = [name for name in missing if name not in creatable]
        refused = dict.fromkeys(denied, TopicAuthorizationFailedError.errno)

    def place(name: str, partitions: range) -> None:
        try:
            services.quotas.record_mutation(request, len(partitions), strict_since=0)
        except ThrottlingQuotaExceededError:
            # Do not throttle the client, which retries anyway. Kafka does not throttle the client either: in
            # Kafka, the broker sends the request that creates the topic.
            request.throttled_until_ms = 0.0
            raise UnknownTopicOrPartitionError(
                f"Topic '{name}' was not created: its client exceeds the quota controller_mutation_rate."
            ) from None
        services.cluster.place_new(name, partitions, services.cluster.default_replication_factor, ())

    return refused | services.topics.auto_create([name for name in missing if name not in refused], place)


def _describe_id(topic_id: Uuid, request: Request, services: TopicServices) -> _Topic:
    name = services.topics.name_of(topic_id)
    if name is None:
        return _Topic(error_code=UnknownTopicIdError.errno, name=None, topic_id=topic_id)
    if not visible_topics([name], request, services):
        return _Topic(error_code=TopicAuthorizationFailedError.errno, name=None, topic_id=topic_id)
    return describe_topic(name, services)


def describe_topic(name: str, services: TopicServices) -> _Topic:
    """Return a topic with its partitions, or an error if it does not exist."""
    topic = services.topics.get(name)
    if topic is None:
        return _Topic(error_code=_error_of_missing(name), name=name, is_internal=is_internal(name))
    return _Topic(
        name=name,
        topic_id=topic.topic_id,
        is_internal=is_internal(name),
        partitions=[
            partition_state(TopicPartition(name, partition), services)
            for partition in range(topic.partition_count)
        ],
    )


def partition_state(topic_partition: TopicPartition, services: TopicServices) -> _Partition:
    """Return the leader and the replicas of a partition."""
    cluster = services.cluster
    leader = cluster.leader(topic_partition)
    replicas = cluster.replicas(topic_partition)
    return _Partition(
        error_code=LeaderNotAvailableError.errno if leader == NO_LEADER else 0,
        partition_index=topic_partition.partition,
        leader_id=leader,
        leader_epoch=cluster.leader_epoch(topic_partition),
        replica_nodes=replicas,
        isr_nodes=cluster.in_sync(topic_partition),
        offline_replicas=[node for node in replicas if cluster.node(node) is None],
    )


def _error_of_missing(name: str) -> int:
    try:
        topic_names.validate(name)
    except InvalidTopicError as error:
        return error.errno
    return UnknownTopicOrPartitionError.errno


HANDLER = ApiHandler(MetadataRequest, 0, 13, handle)
