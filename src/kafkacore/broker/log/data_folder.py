"""The data folder: its lock file and the folders of its partitions, named as Kafka names them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from kafkacore.broker.log import checkpoints
from kafkacore.broker.log.topics_file import TopicState
from kafkacore.broker.storage.disk import Disk
from kafkacore.clock import Clock
from kafkacore.errors import KafkaConfigurationError
from kafkacore.logs import logger_of
from kafkacore.structs import TopicPartition, is_topic_name, printable
from kafkacore.wire import Uuid

logger = logger_of(__name__)

LOCK_FILE = ".lock"
DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"

_PARTITION_FOLDER = re.compile(r"(.+)-(\d{1,5})")
_MAX_FILE_NAME = 255
#: Metadata log of Apache Kafka's controllers. It is not a topic and is left unchanged.
_KRAFT_LOG = "__cluster_metadata"


class DataFolder:
    """Names, finds, renames and removes partition folders. Callers must not change a partition concurrently.

    Parameters
    ----------
    path:
        Path of the data folder.
    disk:
        File system to use.
    clock:
        Source of random ids.
    """

    def __init__(self, path: Path, disk: Disk, clock: Clock) -> None:
        self.path = path
        self._disk = disk
        self._clock = clock

    def make(self) -> None:
        """Create the data folder and its parents if they are missing. On return, they are durable."""
        missing = [path for path in (self.path, *self.path.parents) if not self._disk.exists(path)]
        for path in reversed(missing):
            self._disk.mkdir(path)
            self._disk.fsync_dir(path.parent)

    def take_lock(self) -> int:
        """Lock the folder against other processes.

        Returns
        -------
        int
            Descriptor of the lock file. Closing it releases the lock.

        Raises
        ------
        KafkaConfigurationError
            Another process has locked the folder.
        """
        fd = self._disk.lock(self.path / LOCK_FILE)
        if fd is None:
            raise KafkaConfigurationError(
                f"another broker is using {self.path}; stop that broker, or use another data folder"
            )
        return fd

    def refuse_links(self) -> None:
        """Check that the data folder contains no symbolic link to a folder.

        The target of such a link may be outside of the data folder.

        Raises
        ------
        KafkaConfigurationError
            A name in the data folder is a symbolic link to a folder.
        """
        for name in self._disk.linked_folders(self.path):
            raise KafkaConfigurationError(
                f"{printable(str(self.path / name))} is a symbolic link, which the broker does not follow "
                "inside its data folder: replace the link by the folder or a mount, or remove the link"
            )

    def of_partition(self, topic_partition: TopicPartition) -> Path:
        """Return the path of a partition's folder."""
        return self.path / f"{topic_partition.topic}-{topic_partition.partition}"

    def adopted_topics(self) -> list[TopicState]:
        """Derive the topics from the partition folders, for a data folder without ``topics.json``."""
        counts: dict[str, int] = {}
        ids: dict[str, Uuid] = {}
        for name, (topic, partition) in _partition_folders(self._disk.folders(self.path)):
            counts[topic] = max(counts.get(topic, 0), partition + 1)
            topic_id = checkpoints.read_topic_id(self._disk, self.path / name)
            if topic_id is not None:
                ids[topic] = topic_id
        return [
            TopicState(name, ids.get(name) or self._random_id(), count, {}) for name, count in counts.items()
        ]

    def move_strays_aside(
        self, topics: Mapping[str, TopicState], deleting: Collection[Uuid]
    ) -> tuple[dict[TopicPartition, str], list[Path]]:
        """Rename partition folders that do not belong to any topic.

        Folders with records get the suffix ``-stray``. Folders of deleted or partly created topics get the
        suffix ``-delete``. The caller should remove the ``-delete`` folders in the background, because
        removing 10,000 folders takes many seconds.

        Parameters
        ----------
        topics:
            All topics by name.
        deleting:
            Ids of topics whose deletion was not finished.

        Returns
        -------
        dict[TopicPartition, str]
            Partitions whose folder has the id of another topic, with a message that says what to do.
        list[Path]
            All folders with the suffix ``-delete``.
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
                # The records belong to a topic with another id. Leave the folder as it is, so that an empty
                # partition does not hide these records.
                path = folder / checkpoints.PARTITION_METADATA_FILE
                foreign[topic_partition] = (
                    f"{path} has topic id {topic_id} instead of {topic.topic_id}; "
                    "correct it, or move the folder"
                )
                continue
            stray = self._move_aside(topic_partition, self._random_id(), STRAY_SUFFIX)
            logger.warning("%s does not belong to any topic; renamed to %s", folder, stray.name)
        return foreign, deleted

    def move_aside(self, topic_partition: TopicPartition) -> None:
        """Rename the folder, if any, that a deleted topic has left under the name of a new partition."""
        if self._disk.exists(self.of_partition(topic_partition)):
            self._move_aside(topic_partition, self._random_id(), STRAY_SUFFIX)

    def rename_deleted(self, topic_partition: TopicPartition, topic_id: Uuid) -> Path | None:
        """Rename the folder of a deleted partition. Return the new path; ``None`` if there is no folder."""
        if not self._disk.exists(self.of_partition(topic_partition)):
            return None
        return self._move_aside(topic_partition, topic_id, DELETE_SUFFIX)

    def remove_partition(self, topic_partition: TopicPartition) -> None:
        """Remove a partition's folder with all files, if it exists."""
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

    def _move_aside(self, topic_partition: TopicPartition, unique_id: Uuid, suffix: str) -> Path:
        """Rename a partition's folder to a name that is not the name of a partition. Return the new path."""
        end = f"-{topic_partition.partition}.{unique_id.bytes.hex()}{suffix}"
        aside = self.path / (topic_partition.topic[: _MAX_FILE_NAME - len(end)] + end)
        self._disk.rename(self.of_partition(topic_partition), aside)
        return aside

    def _random_id(self) -> Uuid:
        return Uuid.from_random_bits(self._clock.random.getrandbits(128))


def _partition_folders(names: Iterable[str]) -> list[tuple[str, TopicPartition]]:
    found = []
    for name in names:
        match = _PARTITION_FOLDER.fullmatch(name)
        if match and is_topic_name(match[1]) and match[1] != _KRAFT_LOG:
            found.append((name, TopicPartition(match[1], int(match[2]))))
    return found
