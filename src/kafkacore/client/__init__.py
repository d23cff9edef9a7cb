"""The network layer of all clients: connections, requests and metadata (``org.apache.kafka.clients``)."""

from kafkacore.client._client_request import ClientRequest
from kafkacore.client.api_versions import ApiVersions, NodeApiVersions
from kafkacore.client.bootstrap import bootstrap_client
from kafkacore.client.cluster import Cluster, PartitionMetadata
from kafkacore.client.metadata import Metadata
from kafkacore.client.native_heartbeats import new_native_heartbeat
from kafkacore.client.network_client import EventWait, NetworkClient
from kafkacore.client.requests import ClientResponse

__all__ = [
    "ApiVersions",
    "ClientRequest",
    "ClientResponse",
    "Cluster",
    "EventWait",
    "Metadata",
    "NetworkClient",
    "NodeApiVersions",
    "PartitionMetadata",
    "bootstrap_client",
    "new_native_heartbeat",
]
