"""Leader epochs in the metadata log that Apache Kafka has left in a data folder.

Clients ignore metadata whose leader epoch is older than the one they know. The records have older epochs than
a client may know: when a broker of Apache Kafka stops, its partitions begin an epoch without a leader. A
broker that continues the folder therefore begins with the last epochs of the metadata log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kafkacore.broker.metadata.records import record_cursor
from kafkacore.broker.storage.disk import Disk
from kafkacore.broker.topics.internal_topics import CLUSTER_METADATA
from kafkacore.broker.topics.topic_catalog import TopicCatalog
from kafkacore.errors import (
    CorruptRecordError,
    KafkaStorageError,
    MalformedMessageError,
    UnsupportedVersionError,
)
from kafkacore.logs import logger_of
from kafkacore.protocol.generated.partition_records import PartitionChangeRecord, PartitionRecord
from kafkacore.record import read_batches
from kafkacore.structs import TopicPartition
from kafkacore.wire import Uuid

logger = logger_of(__name__)

#: Class of each type of record about partitions, with the numbers of Kafka's ``MetadataRecordType``.
PARTITION_CLASSES: Final[dict[int, type[PartitionRecord | PartitionChangeRecord]]] = {
    3: PartitionRecord,
    5: PartitionChangeRecord,
}
#: ``Leader`` of a change that leaves the leader and its epoch as they are.
_NO_LEADER_CHANGE: Final = -2
_MAX_EPOCH: Final = 2**31 - 1
#: Name of a snapshot: the offset of the first record after it, and the epoch of the record before.
_SNAPSHOT = re.compile(r"(\d{20})-\d{10}\.checkpoint")
_SEGMENT = re.compile(r"\d{20}\.log")

Epochs = dict[tuple[Uuid, int], int]


def kafkas_log(data_dir: Path) -> Path:
    """Return the folder of Apache Kafka's metadata log."""
    return data_dir / f"{CLUSTER_METADATA}-0"


def begin_kafkas_epochs(data_dir: Path, disk: Disk, topics: TopicCatalog) -> None:
    """Begin the leader epochs of Apache Kafka's metadata log that are newer than those of the records."""
    for (topic_id, partition), epoch in leader_epochs(kafkas_log(data_dir), disk).items():
        name = topics.name_of(topic_id)
        topic = None if name is None else topics.get(name)
        if topic is None or not 0 <= partition < topic.partition_count:
            continue
        try:
            log = topics.log(TopicPartition(topic.name, partition))
            if epoch > log.leader_epoch:
                log.begin_epoch(epoch)
        except KafkaStorageError as error:
            logger.warning("cannot begin leader epoch %d: %s", epoch, error)


def leader_epochs(folder: Path, disk: Disk) -> Epochs:
    """Return the last leader epoch of each partition, by topic id and partition.

    Parameters
    ----------
    folder:
        Folder of the metadata log, which may be missing.
    disk:
        File system to use.
    """
    epochs: Epochs = {}
    names = sorted(disk.listdir(folder)) if disk.is_dir(folder) else []
    snapshots = [found for name in names if (found := _SNAPSHOT.fullmatch(name))]
    # A segment may begin before the snapshot; then its first records are in the snapshot already.
    first_offset = int(snapshots[-1][1]) if snapshots else 0
    files = [(folder / found[0], 0) for found in snapshots[-1:]]
    files += [(folder / name, first_offset) for name in names if _SEGMENT.fullmatch(name)]
    for path, offset in files:
        try:
            for value in _values(disk.read_file(path), offset):
                _apply(value, epochs)
        except (CorruptRecordError, MalformedMessageError, UnsupportedVersionError) as error:
            logger.warning(
                "%s: %s. If clients of this cluster are running, restart them: they may know newer leader "
                "epochs than this broker has found",
                path,
                error.args[0],
            )
            break
    return epochs


def _values(data: bytes, first_offset: int) -> Iterator[bytes | memoryview]:
    """Yield the values of the records of a file, from an offset on."""
    for batch in read_batches(data):
        if not batch.is_control:
            yield from (record.value or b"" for record in batch if record.offset >= first_offset)


def _apply(value: bytes | memoryview, epochs: Epochs) -> None:
    """Apply a record as Kafka's ``PartitionRegistration`` does; skip it if it is not about a partition."""
    cursor, number, version = record_cursor(value)
    record_class = PARTITION_CLASSES.get(number)
    if record_class is None:
        return
    record = record_class.decode(cursor, version)
    partition = record.topic_id, record.partition_id
    if isinstance(record, PartitionRecord):
        epochs[partition] = record.leader_epoch
    elif record.leader != _NO_LEADER_CHANGE:
        epoch = epochs.get(partition, -1) + 1
        if epoch > _MAX_EPOCH:
            raise MalformedMessageError(f"leader epoch {epoch} is too large")
        epochs[partition] = epoch
