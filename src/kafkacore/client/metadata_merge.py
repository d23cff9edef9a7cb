"""Merge a Metadata response into the last snapshot of the cluster.

The behaviour is that of Kafka's ``MetadataSnapshot``, and of ``handleMetadataResponse`` and
``updateLatestMetadata`` of Kafka's ``Metadata``.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkacore.client.cluster import Cluster, PartitionMetadata, is_address
from kafkacore.errors import BrokerResponseError, InvalidMetadataError, for_code
from kafkacore.protocol import ZERO_UUID
from kafkacore.protocol.generated.metadata import MetadataResponse
from kafkacore.structs import Node, TopicPartition
from kafkacore.wire import Uuid

#: First Metadata version whose leader epochs are reliable. In earlier versions a broker could return a stale
#: epoch (KAFKA-9212).
RELIABLE_LEADER_EPOCHS_FROM = 9


def nodes_in(response: MetadataResponse) -> tuple[Node, ...]:
    """Return the brokers of a response. Leave out duplicate ids and brokers with an invalid address."""
    nodes = {
        broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack)
        for broker in response.brokers
        if is_address(broker.node_id, broker.host, broker.port)
    }
    return tuple(nodes.values())


class MetadataMerge:
    """Merges one response into a snapshot of the cluster.

    Parameters
    ----------
    last:
        The snapshot before the response.
    seen_epochs:
        The newest known leader epoch of each partition. :meth:`merge` updates it.
    retains:
        Function that returns whether the metadata still includes a topic.
    """

    def __init__(
        self,
        last: Cluster,
        seen_epochs: dict[TopicPartition, int],
        retains: Callable[[str], bool],
    ) -> None:
        self._last = last
        self._seen_epochs = seen_epochs
        self._retains = retains
        self._partitions: dict[str, list[PartitionMetadata]] = {}
        self._topic_ids: dict[str, Uuid] = {}
        self._topic_errors: dict[str, BrokerResponseError] = {}
        self._internal_topics: set[str] = set()
        #: Whether a partition has no known leader, so that another update is needed.
        self.is_incomplete = False

    def merge(self, response: MetadataResponse, response_version: int, is_partial: bool) -> Cluster:
        """Return the snapshot that results from the response."""
        has_epochs = response_version >= RELIABLE_LEADER_EPOCHS_FROM
        for topic in response.topics:
            if topic.name is not None and self._retains(topic.name):
                self._topic(topic.name, topic, has_epochs)
        if is_partial:
            self._copy_other_topics()
        return Cluster(
            response.cluster_id,
            nodes_in(response),
            self._partitions,
            topic_ids=self._topic_ids,
            topic_errors=self._topic_errors,
            internal_topics=self._internal_topics,
            controller_id=response.controller_id,
        )

    def _topic(self, name: str, topic: MetadataResponse.MetadataResponseTopic, has_epochs: bool) -> None:
        if topic.is_internal:
            self._internal_topics.add(name)
        topic_id = None if topic.topic_id == ZERO_UUID else topic.topic_id
        if topic.error_code:
            error = for_code(topic.error_code)
            self._topic_errors[name] = error(f"topic {name!r}")
            self.is_incomplete |= issubclass(error, InvalidMetadataError)
            return
        if topic_id is not None:
            self._topic_ids[name] = topic_id
        known_id = self._last.topic_id(name)
        # If the id differs, the topic was deleted and created again. Its leader epochs start from 0 again.
        is_new_topic = topic_id is not None and known_id is not None and topic_id != known_id
        merged = {
            partition.partition_index: self._partition(name, partition, has_epochs, is_new_topic)
            for partition in topic.partitions
            if partition.partition_index >= 0
        }
        self._partitions[name] = [partition for partition in merged.values() if partition is not None]

    def _partition(
        self,
        topic: str,
        partition: MetadataResponse.MetadataResponsePartition,
        has_epochs: bool,
        is_new_topic: bool,
    ) -> PartitionMetadata | None:
        tp = TopicPartition(topic, partition.partition_index)
        epoch = partition.leader_epoch if has_epochs else -1
        found = PartitionMetadata(
            tp,
            partition.leader_id,
            epoch,
            tuple(partition.replica_nodes),
            tuple(partition.isr_nodes),
            tuple(partition.offline_replicas),
            partition.error_code,
        )
        if partition.error_code:
            self.is_incomplete |= issubclass(for_code(partition.error_code), InvalidMetadataError)
        if epoch < 0:
            # Without an epoch, the age of the metadata cannot be compared, so the newest response is used.
            self._seen_epochs.pop(tp, None)
            return found
        seen = self._seen_epochs.get(tp)
        if is_new_topic or seen is None or epoch >= seen:
            self._seen_epochs[tp] = epoch
            return found
        # Keep the known metadata of the partition, because the broker that responded does not know the newest
        # leader epoch yet.
        known = self._last.partition(tp)
        self.is_incomplete |= known is None
        return known

    def _copy_other_topics(self) -> None:
        """Copy the topics that a partial response does not contain from the last snapshot."""
        for topic in self._last.topics | self._last.topic_errors.keys():
            if topic in self._partitions or topic in self._topic_errors or not self._retains(topic):
                continue
            known = self._last.partitions_for_topic(topic) or ()
            each = [self._last.partition(TopicPartition(topic, partition)) for partition in known]
            if known:
                self._partitions[topic] = [partition for partition in each if partition is not None]
            topic_id = self._last.topic_id(topic)
            if topic_id is not None:
                self._topic_ids[topic] = topic_id
            error = self._last.topic_error(topic)
            if error is not None:
                self._topic_errors[topic] = error
            if topic in self._last.internal_topics:
                self._internal_topics.add(topic)
