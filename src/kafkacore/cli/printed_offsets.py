"""What a member of a group has printed: polls' records in, commits out; also just before a partition goes.

Does not know: how records are printed, when the loop ends.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kafkacore import ConsumerRebalanceListener, ConsumerRecord, KafkaConsumer
from kafkacore.structs import OffsetAndMetadata, TopicPartition


class PrintedOffsets(ConsumerRebalanceListener):
    """Where the group should go on, by partition of this member."""

    def __init__(self, consumer: KafkaConsumer) -> None:
        self._consumer = consumer
        self.offsets: dict[TopicPartition, OffsetAndMetadata] = {}

    def add(self, printed: Mapping[TopicPartition, Sequence[ConsumerRecord]]) -> None:
        """These have been printed."""
        for partition, records in printed.items():
            last = records[-1]
            epoch = -1 if last.leader_epoch is None else last.leader_epoch
            self.offsets[partition] = OffsetAndMetadata(last.offset + 1, "", epoch)

    def commit(self, partitions: Collection[TopicPartition]) -> None:
        """Commit of ``partitions`` what has been printed, and wait for it."""
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
        """Nothing of them has been printed yet."""
