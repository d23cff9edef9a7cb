"""DescribeCluster: return the brokers of the cluster.

Versions 0 to 2. A request for the controllers is refused, because the brokers also do the work of
controllers.
"""

from __future__ import annotations

from kafkacore.broker.handlers.services import ApiHandler, Request, TopicServices
from kafkacore.broker.requests.authorization import cluster_operations
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
    response = DescribeClusterResponse(
        cluster_id=services.cluster_id,
        controller_id=services.cluster.controller_id,
        brokers=[
            DescribeClusterResponse.DescribeClusterBroker(
                broker_id=node.node_id, host=node.host, port=node.port, rack=node.rack
            )
            for node in services.cluster.alive_nodes(request.context.listener_name)
        ],
    )
    if message.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(request, services)
    return response


HANDLER = ApiHandler(DescribeClusterRequest, 0, 2, handle)
