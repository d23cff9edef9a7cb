"""Offset commits of ``kafkacore consume --group``, which commits only printed records."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kafkacore import ConsumerRebalanceListener, ConsumerRecord, KafkaConsumer
from kafkacore.structs import OffsetAndMetadata, TopicPartition


class OffsetCommitter(ConsumerRebalanceListener):
    """Keeps the offsets to commit, and commits them before a partition is revoked."""

    def __init__(self, consumer: KafkaConsumer) -> None:
        self._consumer = consumer
        self.offsets: dict[TopicPartition, OffsetAndMetadata] = {}

    def add(self, printed: Mapping[TopicPartition, Sequence[ConsumerRecord]]) -> None:
        """Keep the offset after the last printed record of each partition, to commit the offset later."""
        for partition, records in printed.items():
            last = records[-1]
            epoch = -1 if last.leader_epoch is None else last.leader_epoch
            self.offsets[partition] = OffsetAndMetadata(last.offset + 1, "", epoch)

    def commit(self, partitions: Collection[TopicPartition]) -> None:
        """Commit the offsets of the printed records of ``partitions``, and wait for the response."""
        offsets = {tp: self.offsets[tp] for tp in partitions if tp in self.offsets}
        if offsets:
            self._consumer.commit(offsets)

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Commit the offsets of revoked partitions."""
        self.commit(revoked)
        self.on_partitions_lost(revoked)

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        """Forget the offsets of lost partitions, which another member may own."""
        for partition in lost:
            self.offsets.pop(partition, None)

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Do nothing, because no record of a new partition has been printed."""
