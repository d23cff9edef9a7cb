"""CreateTopics: topics with their partitions and configs.

Versions 2 to 7. Gaps: the node is the only place for a replica, so a replication factor other than 1 (or
-1, "the default") is refused as Kafka refuses it in a cluster of one.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from kafkacore.broker.config_entries import topic_entries
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.internal_topics import CLUSTER_METADATA
from kafkacore.broker.request import ApiHandler, BrokerServices, Request
from kafkacore.broker.topic_catalog import ZERO_ID
from kafkacore.errors import (
    InvalidReplicationAssignmentError,
    InvalidReplicationFactorError,
    InvalidRequestError,
)
from kafkacore.protocol.generated.create_topics import CreateTopicsRequest, CreateTopicsResponse

USE_DEFAULT = -1

_Result = CreateTopicsResponse.CreatableTopicResult
_Config = CreateTopicsResponse.CreatableTopicConfigs


def handle(request: Request, services: BrokerServices) -> Any:
    message = request.message
    asked = Counter(topic.name for topic in message.topics)
    results = []
    for topic in {topic.name: topic for topic in message.topics}.values():
        try:
            if asked[topic.name] > 1:
                raise InvalidRequestError("Duplicate topic name.")
            if topic.name == CLUSTER_METADATA:
                raise InvalidRequestError(f"Creation of internal topic {topic.name} is prohibited.")
            results.append(_create(topic, message.validate_only, request.node_id, services))
        except Exception as error:  # noqa: BLE001 - one topic's failure is its own; error_code logs surprises
            code, text = error_code(error), error_message(error)
            results.append(
                _Result(name=topic.name, topic_id=ZERO_ID, error_code=code, error_message=text, configs=None)
            )
    return CreateTopicsResponse(topics=results)


def _create(topic: Any, validate_only: bool, node_id: int, services: BrokerServices) -> Any:
    partition_count = wanted_partition_count(topic, services)
    configs = {config.name: config.value for config in topic.configs}
    topic_id = ZERO_ID
    if validate_only:
        checked = services.topics.check_new(topic.name, partition_count, configs)
    else:
        created = services.topics.create(topic.name, partition_count, configs)
        topic_id, checked = created.topic_id, dict(created.configs)
    return _Result(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=partition_count,
        replication_factor=1,
        configs=[
            _Config(
                name=entry.name,
                value=entry.value,
                read_only=False,
                config_source=int(entry.source),
                is_sensitive=False,
            )
            for entry in topic_entries(checked, services, node_id)
        ],
    )


def wanted_partition_count(topic: Any, services: BrokerServices) -> int:
    """How many partitions a request means, from its number or its replica assignment.

    Raises
    ------
    InvalidRequestError, InvalidReplicationFactorError, InvalidReplicationAssignmentError
        As Kafka's controller with one broker.
    """
    if topic.assignments:
        if topic.num_partitions != USE_DEFAULT or topic.replication_factor != USE_DEFAULT:
            raise InvalidRequestError(
                "A replica assignment was given, so number of partitions and replication factor must be -1."
            )
        node = services.config.node_id
        indexes = sorted(assignment.partition_index for assignment in topic.assignments)
        if indexes != list(range(len(indexes))):
            raise InvalidReplicationAssignmentError(
                "partitions should be a consecutive 0-based integer sequence"
            )
        if any(list(assignment.broker_ids) != [node] for assignment in topic.assignments):
            raise InvalidReplicationAssignmentError(f"the only replica there can be is [{node}]")
        return len(indexes)
    if topic.replication_factor not in (1, USE_DEFAULT):
        if topic.replication_factor < 1:
            raise InvalidReplicationFactorError("Replication factor must be larger than 0.")
        raise InvalidReplicationFactorError(
            f"Unable to replicate the partition {topic.replication_factor} time(s): there is one broker."
        )
    if topic.num_partitions == USE_DEFAULT:
        return services.config.num_partitions
    return int(topic.num_partitions)


HANDLER = ApiHandler(CreateTopicsRequest, 2, 7, handle)
