"""The list of topics, kept in ``topics.json`` in the data folder.

The file is replaced atomically, so that topics are also created and deleted atomically. Apache Kafka keeps
the list in its metadata log. A single node does not need such a log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from kafkacore.broker.storage.checked_json import checked_json, read_checked_json
from kafkacore.broker.storage.disk import Disk
from kafkacore.errors import KafkaStorageError
from kafkacore.structs import INT32_MAX, is_topic_name
from kafkacore.wire import Uuid

FILE_NAME = "topics.json"
_VERSION = 1


class TopicState(NamedTuple):
    """A topic in the list."""

    name: str
    topic_id: Uuid
    partition_count: int
    #: Configs set for the topic, by Kafka's keys.
    configs: Mapping[str, str]


def write_topics(disk: Disk, data_dir: Path, topics: Iterable[TopicState], deleting: Iterable[Uuid]) -> None:
    """Replace ``topics.json``. On return, the file is durable.

    Parameters
    ----------
    disk:
        File system to use.
    data_dir:
        Data folder.
    topics:
        All topics.
    deleting:
        Ids of deleted topics whose folders may still exist.
    """
    content: dict[str, object] = {
        "version": _VERSION,
        "topics": [
            {
                "name": topic.name,
                "topic_id": str(topic.topic_id),
                "partition_count": topic.partition_count,
                "configs": dict(topic.configs),
            }
            for topic in topics
        ],
        "deleting": [str(topic_id) for topic_id in deleting],
    }
    disk.write_file(data_dir / FILE_NAME, checked_json(content))


def read_topics(disk: Disk, data_dir: Path) -> tuple[list[TopicState], set[Uuid]] | None:
    """Read the topics, and the ids of deleted topics whose folders may still exist.

    Returns
    -------
    tuple, None
        The topics and the ids, or ``None`` if the file is missing.

    Raises
    ------
    KafkaStorageError
        The file is damaged.
    """
    path = data_dir / FILE_NAME
    try:
        data = disk.read_file(path)
    except FileNotFoundError:
        return None
    try:
        # Verify the CRC if the file has one. A flipped bit in a name would otherwise replace a topic by an
        # empty topic of another name.
        content = read_checked_json(data, needs_crc=False)
        if content["version"] != _VERSION:
            raise ValueError(f"unknown version {content['version']}")
        topics = [_topic(entry) for entry in content["topics"]]
        return topics, {Uuid.from_hex(text) for text in content["deleting"]}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise KafkaStorageError(
            f"{path} cannot be read: {error}. Restore it from a backup, or remove it to recreate it from the "
            "partition folders without topic configs"
        ) from None


def _topic(entry: Mapping[str, object]) -> TopicState:
    name, count, configs = entry["name"], entry["partition_count"], entry["configs"]
    if not isinstance(name, str) or not is_topic_name(name):
        raise ValueError(f"invalid topic name {name!r}")
    if not isinstance(count, int) or not 1 <= count <= INT32_MAX:
        raise ValueError(f"invalid partition count {count!r}")
    if not isinstance(configs, dict) or not all(isinstance(value, str) for value in configs.values()):
        raise ValueError(f"invalid configs {configs!r}")
    return TopicState(name, Uuid.from_hex(str(entry["topic_id"])), count, configs)
