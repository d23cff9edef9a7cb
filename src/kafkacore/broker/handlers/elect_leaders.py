"""ElectLeaders: elect the preferred leader of partitions, or any live replica if none leads (KIP-460).

Versions 0 to 2. As in Kafka, a request for all partitions returns only the partitions that had an election.
Nodes share their logs, so an unclean election loses no records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kafkacore.access_control import ACLOperation
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.handlers.services import ApiHandler, Request, TopicServices
from kafkacore.broker.requests.authorization import require_cluster
from kafkacore.broker.topics.cluster_state import NO_LEADER
from kafkacore.errors import (
    ClusterAuthorizationFailedError,
    ElectionNotNeededError,
    EligibleLeadersNotAvailableError,
    InvalidRequestError,
    PreferredLeaderNotAvailableError,
    UnknownTopicOrPartitionError,
)
from kafkacore.protocol.generated.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from kafkacore.structs import TopicPartition

PREFERRED, UNCLEAN = 0, 1
FIRST_VERSION_WITH_ERROR = 1

_Topic = ElectLeadersResponse.ReplicaElectionResult
_Partition = ElectLeadersResponse.PartitionResult


def handle(request: Request[ElectLeadersRequest], services: TopicServices) -> ElectLeadersResponse:
    message = request.message
    try:
        require_cluster(request, services, ACLOperation.ALTER)
    except ClusterAuthorizationFailedError as error:
        return _refused(message, request.version, error)
    kind = message.election_type if request.version >= 1 else PREFERRED
    if kind not in (PREFERRED, UNCLEAN):
        return ElectLeadersResponse(error_code=InvalidRequestError.errno)
    is_of_all = message.topic_partitions is None
    results = []
    for name, partitions in _requested(message.topic_partitions, services):
        elections = [_elect(TopicPartition(name, partition), kind, services) for partition in partitions]
        not_needed = ElectionNotNeededError.errno
        reported = [one for one in elections if not (is_of_all and one.error_code == not_needed)]
        results.append(_Topic(topic=name, partition_result=reported))
    return ElectLeadersResponse(replica_election_results=results)


def _refused(
    message: ElectLeadersRequest, version: int, error: ClusterAuthorizationFailedError
) -> ElectLeadersResponse:
    code, text = error_code(error), error_message(error)
    return ElectLeadersResponse(
        error_code=code if version >= FIRST_VERSION_WITH_ERROR else 0,
        replica_election_results=[
            _Topic(
                topic=topic.topic,
                partition_result=[
                    _Partition(partition_id=partition, error_code=code, error_message=text)
                    for partition in topic.partitions
                ],
            )
            for topic in message.topic_partitions or ()
        ],
    )


def _requested(
    topic_partitions: Sequence[ElectLeadersRequest.TopicPartitions] | None, services: TopicServices
) -> Iterable[tuple[str, Iterable[int]]]:
    if topic_partitions is not None:
        return [(topic.topic, topic.partitions) for topic in topic_partitions]
    found = [(name, services.topics.get(name)) for name in services.topics.names()]
    return [(name, range(topic.partition_count)) for name, topic in found if topic is not None]


def _elect(topic_partition: TopicPartition, kind: int, services: TopicServices) -> _Partition:
    partition = topic_partition.partition
    try:
        services.cluster.move_leader(topic_partition, _winner(topic_partition, kind, services))
    except Exception as error:  # noqa: BLE001 - fails this partition only; error_code logs bugs
        return _Partition(
            partition_id=partition, error_code=error_code(error), error_message=error_message(error)
        )
    return _Partition(partition_id=partition, error_message=None)


def _winner(topic_partition: TopicPartition, kind: int, services: TopicServices) -> int:
    """Return the node to elect as leader of the partition.

    Raises
    ------
    UnknownTopicOrPartitionError, ElectionNotNeededError, PreferredLeaderNotAvailableError,
    EligibleLeadersNotAvailableError
        In the same cases as in Kafka's controller.
    """
    cluster, (name, partition) = services.cluster, topic_partition
    topic = services.topics.get(name)
    if topic is None:
        raise UnknownTopicOrPartitionError(f"No such topic as {name}")
    if not 0 <= partition < topic.partition_count:
        raise UnknownTopicOrPartitionError(f"No such partition as {name}-{partition}")
    leader, replicas = cluster.leader(topic_partition), cluster.replicas(topic_partition)
    if leader != NO_LEADER and (kind == UNCLEAN or leader == replicas[0]):
        raise ElectionNotNeededError(f"Node {leader} already leads {name}-{partition}")
    if kind == UNCLEAN:
        alive = [node for node in replicas if cluster.node(node) is not None]
        if not alive:
            raise EligibleLeadersNotAvailableError(f"No replica of {name}-{partition} is alive")
        return alive[0]
    if cluster.node(replicas[0]) is None:
        raise PreferredLeaderNotAvailableError(
            f"The preferred leader was not available. Node {replicas[0]} of {name}-{partition} is not alive."
        )
    return replicas[0]


HANDLER = ApiHandler(ElectLeadersRequest, 0, 2, handle)
