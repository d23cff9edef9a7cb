"""CreatePartitions: more partitions for a topic that exists.

Versions 0 to 3.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.request import ApiHandler, BrokerServices, Request
from kafkacore.errors import (
    InvalidPartitionsError,
    InvalidReplicationAssignmentError,
    InvalidRequestError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol.generated.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from kafkacore.structs import TopicPartition

_Result = CreatePartitionsResponse.CreatePartitionsTopicResult


def handle(request: Request, services: BrokerServices) -> Any:
    message = request.message
    asked = Counter(topic.name for topic in message.topics)
    results = []
    for topic in {topic.name: topic for topic in message.topics}.values():
        try:
            if asked[topic.name] > 1:
                raise InvalidRequestError("Duplicate topic in request.")
            _grow(topic, message.validate_only, services)
            results.append(_Result(name=topic.name))
        except Exception as error:  # noqa: BLE001 - one topic's failure is its own; error_code logs surprises
            results.append(
                _Result(name=topic.name, error_code=error_code(error), error_message=error_message(error))
            )
    return CreatePartitionsResponse(results=results)


def _grow(topic: Any, validate_only: bool, services: BrokerServices) -> None:
    found = services.topics.get(topic.name)
    if found is None:
        raise UnknownTopicOrPartitionError(f"Topic '{topic.name}' does not exist.")
    added = topic.count - found.partition_count
    if added <= 0:
        raise InvalidPartitionsError(
            f"The topic {topic.name} currently has {found.partition_count} partition(s); "
            f"{topic.count} would not be an increase."
        )
    if topic.assignments is not None:
        if len(topic.assignments) != added:
            raise InvalidReplicationAssignmentError(
                f"{added} new partition(s) are to be assigned, not {len(topic.assignments)}."
            )
        services.cluster.check_replicas([list(assignment.broker_ids) for assignment in topic.assignments])
    services.topics.grow(topic.name, topic.count, validate_only=validate_only)
    if not validate_only:
        first = found.partition_count
        if topic.assignments is not None:
            replicas = [list(assignment.broker_ids) for assignment in topic.assignments]
        else:
            factor = len(services.cluster.replicas(TopicPartition(topic.name, 0)))
            replicas = services.cluster.spread(topic.name, range(first, topic.count), factor)
        services.cluster.place(topic.name, replicas, first)


HANDLER = ApiHandler(CreatePartitionsRequest, 0, 3, handle)
