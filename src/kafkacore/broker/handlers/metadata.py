"""Metadata: who leads what, topics by name or id, and topics made on first use.

Versions 0 to 13. Gaps: no rack awareness beyond the configured rack; authorised operations are "all", as in
a Kafka broker without an authorizer.
"""

from __future__ import annotations

from typing import Any

from kafkacore.broker import topic_names
from kafkacore.broker.cluster_state import NO_LEADER
from kafkacore.broker.internal_topics import is_internal
from kafkacore.broker.request import ApiHandler, BrokerServices, CloseConnectionError, Request
from kafkacore.broker.topic_catalog import ZERO_ID
from kafkacore.errors import (
    InvalidTopicError,
    LeaderNotAvailableError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol.generated.metadata import MetadataRequest, MetadataResponse
from kafkacore.structs import TopicPartition

#: Bits of Kafka's ``AclOperation`` codes that a topic, and the cluster, can have.
TOPIC_OPERATIONS = sum(1 << code for code in (3, 4, 5, 6, 7, 8, 10, 11))
CLUSTER_OPERATIONS = sum(1 << code for code in (5, 7, 8, 9, 10, 11, 12))

_Topic = MetadataResponse.MetadataResponseTopic
_Partition = MetadataResponse.MetadataResponsePartition
_Broker = MetadataResponse.MetadataResponseBroker


def handle(request: Request, services: BrokerServices) -> Any:
    message, version = request.message, request.version
    response = MetadataResponse(
        brokers=[
            _Broker(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
            for node in services.cluster.nodes()
        ],
        cluster_id=services.cluster_id,
        controller_id=services.cluster.controller_id,
        topics=_topics(message, version, services),
    )
    if 8 <= version <= 10 and message.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    if version >= 8 and message.include_topic_authorized_operations:
        for topic in response.topics:
            if not topic.error_code:
                topic.topic_authorized_operations = TOPIC_OPERATIONS
    return response


def _topics(message: Any, version: int, services: BrokerServices) -> list[Any]:
    # An empty list means "all" in version 0 and "none" afterwards, when null took over "all".
    if message.topics is None or (version == 0 and not message.topics):
        return [describe_topic(name, services) for name in services.topics.names()]
    by_name: list[str] = []
    described: list[Any] = []
    for topic in message.topics:
        if version >= 10 and (topic.name is None or topic.topic_id != ZERO_ID):
            if version < 12:
                raise CloseConnectionError(f"Metadata v{version} cannot name topics by id")
            described.append(_describe_id(topic.topic_id, services))
        else:
            by_name.append(topic.name)
    names = list(dict.fromkeys(by_name))
    may_create = services.config.auto_create_topics_enable and (
        version < 4 or message.allow_auto_topic_creation
    )
    refused = services.topics.auto_create(names) if may_create else {}
    for name in names:
        if name in refused:
            described.append(_Topic(error_code=refused[name], name=name, is_internal=is_internal(name)))
        else:
            described.append(describe_topic(name, services))
    return described


def _describe_id(topic_id: Any, services: BrokerServices) -> Any:
    name = services.topics.name_of(topic_id)
    if name is None:
        return _Topic(error_code=UnknownTopicIdError.errno, name=None, topic_id=topic_id)
    return describe_topic(name, services)


def describe_topic(name: str, services: BrokerServices) -> Any:
    """A topic with its partitions, or the error that there is none."""
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


def partition_state(topic_partition: TopicPartition, services: BrokerServices) -> Any:
    """Who leads a partition, and who has it."""
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
