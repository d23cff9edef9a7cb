"""Commits of `kafkacore consume --group`: only offsets of records that have been printed are committed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kafkacore import ConsumerRebalanceListener, ConsumerRecord, KafkaConsumer
from kafkacore.structs import OffsetAndMetadata, TopicPartition


class OffsetCommitter(ConsumerRebalanceListener):
    """The offsets to commit for the partitions of this member; commits before a partition is revoked."""

    def __init__(self, consumer: KafkaConsumer) -> None:
        self._consumer = consumer
        self.offsets: dict[TopicPartition, OffsetAndMetadata] = {}

    def add(self, printed: Mapping[TopicPartition, Sequence[ConsumerRecord]]) -> None:
        """Record that these records have been printed."""
        for partition, records in printed.items():
            last = records[-1]
            epoch = -1 if last.leader_epoch is None else last.leader_epoch
            self.offsets[partition] = OffsetAndMetadata(last.offset + 1, "", epoch)

    def commit(self, partitions: Collection[TopicPartition]) -> None:
        """Commit the printed offsets of ``partitions`` and wait for the response."""
        offsets = {tp: self.offsets[tp] for tp in partitions if tp in self.offsets}
        if offsets:
            self._consumer.commit(offsets)

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        self.commit(revoked)
        self.on_partitions_lost(revoked)

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        for partition in lost:
            self.offsets.pop(partition, None)

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Do nothing: no record of a new partition has been printed."""
