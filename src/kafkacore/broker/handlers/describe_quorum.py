"""DescribeQuorum: return leader, voters and end offset of the metadata log (KIP-595, KIP-836, KIP-853).

Versions 0 to 2. Each node is both broker and controller. All nodes share one metadata log, so a node that is
up is never behind the leader.
"""

from __future__ import annotations

from typing import Final

from kafkacore.access_control import ACLOperation
from kafkacore.broker.error_answer import error_code, error_message
from kafkacore.broker.handlers.services import ApiHandler, QuorumServices, Request
from kafkacore.broker.requests.authorization import require_cluster
from kafkacore.broker.topics.cluster_state import ClusterState
from kafkacore.broker.topics.internal_topics import CLUSTER_METADATA
from kafkacore.errors import ClusterAuthorizationFailedError, UnknownTopicOrPartitionError
from kafkacore.protocol.generated.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse

_Topic = DescribeQuorumResponse.TopicData
_Partition = DescribeQuorumResponse.PartitionData
_Replica = DescribeQuorumResponse.ReplicaState
_Node = DescribeQuorumResponse.Node
_Listener = DescribeQuorumResponse.Listener

FIRST_VERSION_WITH_NODES: Final = 2
#: Offset and time of a voter that is down, as in Kafka before a voter's first fetch.
UNKNOWN: Final = -1


def handle(request: Request[DescribeQuorumRequest], services: QuorumServices) -> DescribeQuorumResponse:
    message = request.message
    try:
        require_cluster(request, services, ACLOperation.DESCRIBE)
    except ClusterAuthorizationFailedError as error:
        return DescribeQuorumResponse(error_code=error_code(error), error_message=error_message(error))
    asked = [(topic.topic_name, [p.partition_index for p in topic.partitions]) for topic in message.topics]
    if asked != [(CLUSTER_METADATA, [0])]:
        return _unknown(message)
    cluster, end_offset, now_ms = services.cluster, services.metadata.end_offset, services.clock.wall_ms()
    voters = []
    for node_id in cluster.node_ids():
        is_up = cluster.node(node_id) is not None
        voters.append(
            _Replica(
                replica_id=node_id,
                log_end_offset=end_offset if is_up else UNKNOWN,
                last_fetch_timestamp=now_ms if is_up else UNKNOWN,
                last_caught_up_timestamp=now_ms if is_up else UNKNOWN,
            )
        )
    partition = _Partition(
        leader_id=cluster.controller_id,
        leader_epoch=cluster.controller_epoch,
        high_watermark=end_offset,
        current_voters=voters,
    )
    return DescribeQuorumResponse(
        topics=[_Topic(topic_name=CLUSTER_METADATA, partitions=[partition])],
        nodes=_nodes(cluster) if request.version >= FIRST_VERSION_WITH_NODES else [],
    )


def _nodes(cluster: ClusterState) -> list[_Node]:
    return [
        _Node(
            node_id=node_id,
            listeners=[
                _Listener(name=each.name, host=each.advertised_host, port=each.advertised_port)
                for each in cluster.known_node(node_id).listeners
            ],
        )
        for node_id in cluster.node_ids()
    ]


def _unknown(message: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """Return an error for each partition. As in Kafka, a request must be for the metadata log alone."""
    error = UnknownTopicOrPartitionError("This server does not host this topic-partition.")
    return DescribeQuorumResponse(
        topics=[
            _Topic(
                topic_name=topic.topic_name,
                partitions=[
                    _Partition(
                        partition_index=partition.partition_index,
                        error_code=error_code(error),
                        error_message=error_message(error),
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in message.topics
        ]
    )


HANDLER = ApiHandler(DescribeQuorumRequest, 0, 2, handle)
