"""DescribeCluster: return the brokers of the cluster.

Versions 0 to 2. A stopped node is fenced (KIP-1073). A request for the controllers is refused, because the
brokers also do the work of controllers.
"""

from __future__ import annotations

from kafkacore.broker.handlers.services import ApiHandler, Request, TopicServices
from kafkacore.broker.requests.authorization import cluster_operations
from kafkacore.broker.topics.cluster_state import BrokerNode
from kafkacore.errors import MismatchedEndpointTypeError, UnsupportedEndpointTypeError
from kafkacore.protocol.generated.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

BROKERS = 1
CONTROLLERS = 2


def handle(request: Request[DescribeClusterRequest], services: TopicServices) -> DescribeClusterResponse:
    message = request.message
    if message.endpoint_type != BROKERS:
        known = message.endpoint_type == CONTROLLERS
        error = MismatchedEndpointTypeError if known else UnsupportedEndpointTypeError
        return DescribeClusterResponse(
            error_code=error.errno, error_message="The request was sent to an endpoint of type BROKER."
        )
    listener, cluster = request.context.listener_name, services.cluster
    node_ids = (
        cluster.node_ids() if message.include_fenced_brokers else [each.node_id for each in cluster.nodes()]
    )
    response = DescribeClusterResponse(
        cluster_id=services.cluster_id,
        controller_id=cluster.controller_id,
        brokers=[
            _described(
                cluster.known_node(node_id).for_listener(listener), is_fenced=cluster.node(node_id) is None
            )
            for node_id in node_ids
        ],
    )
    if message.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(request, services)
    return response


def _described(node: BrokerNode, *, is_fenced: bool) -> DescribeClusterResponse.DescribeClusterBroker:
    return DescribeClusterResponse.DescribeClusterBroker(
        broker_id=node.node_id, host=node.host, port=node.port, rack=node.rack, is_fenced=is_fenced
    )


HANDLER = ApiHandler(DescribeClusterRequest, 0, 2, handle)
