"""kafka-python's import path of :class:`ClusterMetadata`."""

from kafkacore.client.cluster_metadata import ClusterMetadata

__all__ = ["ClusterMetadata"]
