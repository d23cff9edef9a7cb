"""What lies in a data folder beside the checkpoints: the lock, and a folder for each partition, by name.

A folder in; paths of partitions out, and the topics of a folder that has no list of them. Knows no logs.
Source of the behaviour: Kafka's ``LogManager`` and ``UnifiedLog``, which name the folders.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from uuid import UUID

from kafkacore.broker.log import checkpoints
from kafkacore.broker.log.topics_file import TopicState
from kafkacore.broker.storage.disk import Disk
from kafkacore.clock import Clock
from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import TopicPartition, is_topic_name, printable

logger = logging.getLogger(__name__)

LOCK_FILE = ".lock"
DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"

_PARTITION_FOLDER = re.compile(r"(.+)-(\d{1,5})")
_MAX_FILE_NAME = 255
#: Apache Kafka keeps there what its controllers know. It is no topic, and stays as it is.
_KRAFT_LOG = "__cluster_metadata"


class DataFolder:
    """Names, finds, renames and removes the folders of partitions. Has no state; its owner takes turns."""

    def __init__(self, path: Path, disk: Disk, clock: Clock) -> None:
        self.path = path
        self._disk = disk
        self._clock = clock

    def make(self) -> None:
        """Make the folder with its parents, durable on return, if it is missing."""
        missing = [path for path in (self.path, *self.path.parents) if not self._disk.exists(path)]
        for path in reversed(missing):
            self._disk.mkdir(path)
            self._disk.fsync_dir(path.parent)

    def take_lock(self) -> int:
        """The descriptor that keeps other processes out until it is closed.

        Raises
        ------
        KafkaConfigurationError
            Another process has the folder.
        """
        fd = self._disk.lock(self.path / LOCK_FILE)
        if fd is None:
            raise KafkaConfigurationError(
                f"another broker is using {self.path}; stop it, or give this one a folder of its own"
            )
        return fd

    def refuse_links(self) -> None:
        """Check that no folder of a partition is a symbolic link, which would lead out of the data folder.

        Raises
        ------
        KafkaConfigurationError
            A name in the data folder is a link to a folder.
        """
        for name in self._disk.linked_folders(self.path):
            raise KafkaConfigurationError(
                f"{printable(str(self.path / name))} is a symbolic link, which the broker does not follow "
                "inside its data folder: put the folder itself there, mount it there, or remove the link"
            )

    def of_partition(self, topic_partition: TopicPartition) -> Path:
        """Where a partition's files lie."""
        return self.path / f"{topic_partition.topic}-{topic_partition.partition}"

    def adopted_topics(self) -> list[TopicState]:
        """Topics by their folders, for a data folder that has them but no list of them."""
        counts: dict[str, int] = {}
        ids: dict[str, UUID] = {}
        for name, (topic, partition) in _partition_folders(self._disk.folders(self.path)):
            counts[topic] = max(counts.get(topic, 0), partition + 1)
            topic_id = checkpoints.read_topic_id(self._disk, self.path / name)
            if topic_id is not None:
                ids[topic] = topic_id
        return [
            TopicState(name, ids.get(name) or self._random_id(), count, {}) for name, count in counts.items()
        ]

    def put_strays_aside(
        self, topics: Mapping[str, TopicState], deleting: Collection[UUID]
    ) -> tuple[dict[TopicPartition, str], list[Path]]:
        """Put aside folders of no topic that have records in them, and what is left of others.

        Returns
        -------
        dict[TopicPartition, str]
            Partitions whose folder is another topic's, and what to do about it.
        list[Path]
            What is left of topics half made or deleted, out of the way under names of its own: to be removed
            when there is time, for a topic of 10,000 partitions takes many seconds.
        """
        names = self._disk.folders(self.path)
        deleted = [self.path / name for name in names if name.endswith(DELETE_SUFFIX)]
        foreign = {}
        for name, topic_partition in _partition_folders(names):
            folder = self.path / name
            topic_name, partition = topic_partition
            topic = topics.get(topic_name)
            topic_id = checkpoints.read_topic_id(self._disk, folder)
            if topic is not None and partition < topic.partition_count and topic_id in (None, topic.topic_id):
                continue
            if topic_id in deleting or self._is_empty(folder):
                aside = self._move_aside(topic_partition, topic_id or self._random_id(), DELETE_SUFFIX)
                deleted.append(aside)
                continue
            if topic is not None and partition < topic.partition_count:
                # Its files are somebody's records: serving an empty partition instead would lose them.
                path = folder / checkpoints.PARTITION_METADATA_FILE
                foreign[topic_partition] = (
                    f"{path} has topic id {topic_id} and not {topic.topic_id}; correct it, or move the folder"
                )
                continue
            stray = self._move_aside(topic_partition, self._random_id(), STRAY_SUFFIX)
            logger.warning("%s belongs to no topic; renamed to %s", folder, stray.name)
        return foreign, deleted

    def put_aside(self, topic_partition: TopicPartition) -> None:
        """Make room for a new partition: what has its name is of a topic that could not be removed."""
        if self._disk.exists(self.of_partition(topic_partition)):
            self._move_aside(topic_partition, self._random_id(), STRAY_SUFFIX)

    def rename_deleted(self, topic_partition: TopicPartition, topic_id: UUID) -> Path | None:
        """Take a deleted partition's folder out of the way; where it is now, ``None`` if there was none."""
        if not self._disk.exists(self.of_partition(topic_partition)):
            return None
        return self._move_aside(topic_partition, topic_id, DELETE_SUFFIX)

    def remove_partition(self, topic_partition: TopicPartition) -> None:
        """Remove a partition's folder and its files, if it is there."""
        folder = self.of_partition(topic_partition)
        if self._disk.exists(folder):
            self._disk.remove_tree(folder)

    def _is_empty(self, folder: Path) -> bool:
        for name in self._disk.listdir(folder):
            if name.endswith(".log"):
                fd = self._disk.open(folder / name)
                try:
                    if self._disk.size(fd):
                        return False
                finally:
                    self._disk.close(fd)
        return True

    def _move_aside(self, topic_partition: TopicPartition, unique_id: UUID, suffix: str) -> Path:
        """Give a partition's folder a name that is none of a partition; where it is now."""
        end = f"-{topic_partition.partition}.{unique_id.hex}{suffix}"
        aside = self.path / (topic_partition.topic[: _MAX_FILE_NAME - len(end)] + end)
        self._disk.rename(self.of_partition(topic_partition), aside)
        return aside

    def _random_id(self) -> UUID:
        return UUID(int=self._clock.random.getrandbits(128), version=4)


def _partition_folders(names: Iterable[str]) -> list[tuple[str, TopicPartition]]:
    found = []
    for name in names:
        match = _PARTITION_FOLDER.fullmatch(name)
        if match and is_topic_name(match[1]) and match[1] != _KRAFT_LOG:
            found.append((name, TopicPartition(match[1], int(match[2]))))
    return found
