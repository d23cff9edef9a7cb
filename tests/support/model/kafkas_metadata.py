"""Records about partitions in the metadata log of Apache Kafka, and batches of them."""

from __future__ import annotations

from uuid import UUID

from kafkacore.broker.metadata.kafkas_epochs import PARTITION_CLASSES
from kafkacore.protocol.generated.partition_records import PartitionChangeRecord, PartitionRecord
from kafkacore.record import RecordBatchBuilder
from kafkacore.wire import Writer

TOPIC_ID = UUID(int=7)
_TYPES = {record_class: number for number, record_class in PARTITION_CLASSES.items()}
_VERSION = 2


def begun(partition: int, epoch: int) -> bytes:
    """Return the record of a partition with its leader epoch."""
    return _encoded(PartitionRecord(partition_id=partition, topic_id=TOPIC_ID, leader=1, leader_epoch=epoch))


def led_by(partition: int, leader: int) -> bytes:
    """Return the record of a new leader; -1 for no leader, -2 for a change of something else."""
    return _encoded(PartitionChangeRecord(partition_id=partition, topic_id=TOPIC_ID, isr=[1], leader=leader))


def _encoded(record: PartitionRecord | PartitionChangeRecord) -> bytes:
    writer = Writer()
    for number in (1, _TYPES[type(record)], _VERSION):
        writer.write_unsigned_varint(number)
    record.encode(writer, _VERSION)
    return b"".join(map(bytes, writer.pieces()))


def metadata_batch(*values: bytes, base_offset: int = 0, is_control: bool = False) -> bytes:
    """Return a batch of records with these values."""
    builder = RecordBatchBuilder(10_000)
    for value in values:
        assert builder.append(0, None, value) >= 0
    return bytes(builder.close(base_offset=base_offset, partition_leader_epoch=1, is_control=is_control))
