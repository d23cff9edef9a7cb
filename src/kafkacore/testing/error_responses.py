"""Responses that contain only an error, as ``getErrorResponse`` of Kafka's requests creates them."""

from __future__ import annotations

from collections.abc import Callable

from kafkacore.broker.handlers.services import Request
from kafkacore.protocol.generated.create_partitions import CreatePartitionsResponse
from kafkacore.protocol.generated.create_topics import CreateTopicsResponse
from kafkacore.protocol.generated.delete_topics import DeleteTopicsResponse
from kafkacore.protocol.generated.describe_cluster import DescribeClusterResponse
from kafkacore.protocol.generated.describe_producers import DescribeProducersResponse
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorResponse
from kafkacore.protocol.generated.init_producer_id import InitProducerIdResponse
from kafkacore.protocol.generated.list_groups import ListGroupsResponse
from kafkacore.protocol.generated.list_transactions import ListTransactionsResponse
from kafkacore.protocol.generated.metadata import MetadataResponse
from kafkacore.protocol.message import ResponseMessage

_FIRST_BATCHED_FIND_COORDINATOR = 4


def _metadata(request: Request, code: int) -> ResponseMessage:
    return MetadataResponse(
        topics=[
            MetadataResponse.MetadataResponseTopic(error_code=code, name=topic.name, topic_id=topic.topic_id)
            for topic in request.message.topics or []
        ]
    )


def _describe_producers(request: Request, code: int) -> ResponseMessage:
    shape = DescribeProducersResponse
    topics = [
        shape.TopicResponse(
            name=topic.name,
            partitions=[
                shape.PartitionResponse(partition_index=index, error_code=code)
                for index in topic.partition_indexes
            ],
        )
        for topic in request.message.topics
    ]
    return shape(topics=topics)


def _find_coordinator(request: Request, code: int) -> ResponseMessage:
    if request.version < _FIRST_BATCHED_FIND_COORDINATOR:
        return FindCoordinatorResponse(error_code=code, node_id=-1, port=-1)
    return FindCoordinatorResponse(
        coordinators=[
            FindCoordinatorResponse.Coordinator(key=key, node_id=-1, port=-1, error_code=code)
            for key in request.message.coordinator_keys
        ]
    )


def _create_topics(request: Request, code: int) -> ResponseMessage:
    results = [
        CreateTopicsResponse.CreatableTopicResult(name=topic.name, error_code=code)
        for topic in request.message.topics
    ]
    return CreateTopicsResponse(topics=results)


def _delete_topics(request: Request, code: int) -> ResponseMessage:
    message = request.message
    topics = message.topics or message.topic_names
    names = [topic if isinstance(topic, str) else topic.name for topic in topics]
    results = [DeleteTopicsResponse.DeletableTopicResult(name=name, error_code=code) for name in names]
    return DeleteTopicsResponse(responses=results)


def _create_partitions(request: Request, code: int) -> ResponseMessage:
    results = [
        CreatePartitionsResponse.CreatePartitionsTopicResult(name=topic.name, error_code=code)
        for topic in request.message.topics
    ]
    return CreatePartitionsResponse(results=results)


#: The function that creates the error response of an API, by Kafka's name of the API.
ERROR_RESPONSES: dict[str, Callable[[Request, int], ResponseMessage]] = {
    "CreatePartitions": _create_partitions,
    "CreateTopics": _create_topics,
    "DeleteTopics": _delete_topics,
    "DescribeCluster": lambda _, code: DescribeClusterResponse(error_code=code),
    "DescribeProducers": _describe_producers,
    "FindCoordinator": _find_coordinator,
    "InitProducerId": lambda _, code: InitProducerIdResponse(error_code=code),
    "ListGroups": lambda _, code: ListGroupsResponse(error_code=code),
    "ListTransactions": lambda _, code: ListTransactionsResponse(error_code=code),
    "Metadata": _metadata,
}
