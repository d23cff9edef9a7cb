"""Files with the replicas of partitions, in the format of ``kafka-reassign-partitions.sh``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafkacore.cli.json_files import read_partitions
from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import INT32_MAX, TopicPartition, TopicPartitionReplica

#: If a log directory in the file has this name, the broker chooses the directory.
ANY_LOG_DIR = "any"


@dataclass(frozen=True)
class Assignment:
    """The content of a file.

    Attributes
    ----------
    replicas:
        Partition → ids of the brokers of its replicas.
    log_dirs:
        Replica → absolute path of the replica's log directory, for replicas with a path in the file.
    """

    replicas: dict[TopicPartition, list[int]]
    log_dirs: dict[TopicPartitionReplica, str]


def read_assignment(path: Path) -> Assignment:
    """Read a file.

    Raises
    ------
    KafkaConfigurationError
        If the file has another format.
    """
    found = Assignment({}, {})
    for tp, each in read_partitions(path).items():
        replicas = each.get("replicas")
        if (
            not isinstance(replicas, list)
            or not replicas
            or not all(type(broker) is int and 0 <= broker <= INT32_MAX for broker in replicas)
            or len(set(replicas)) != len(replicas)
        ):
            raise KafkaConfigurationError(
                f"{path}: replicas in {json.dumps(each)} is not a list of different ids of brokers"
            )
        folders = each.get("log_dirs", [ANY_LOG_DIR] * len(replicas))
        if (
            not isinstance(folders, list)
            or len(folders) != len(replicas)
            or not all(
                isinstance(folder, str) and (folder == ANY_LOG_DIR or folder.startswith("/"))
                for folder in folders
            )
        ):
            raise KafkaConfigurationError(
                f'{path}: log_dirs in {json.dumps(each)} is not a list with an absolute path or "any" for '
                "each replica"
            )
        found.replicas[tp] = replicas
        for broker, folder in zip(replicas, folders, strict=True):
            if folder != ANY_LOG_DIR:
                found.log_dirs[TopicPartitionReplica(*tp, broker)] = folder
    return found


def assignment_json(replicas: Mapping[TopicPartition, Sequence[int]]) -> dict[str, Any]:
    """Return the JSON object of a reassignment file that puts these replicas in any log directory."""
    return {
        "version": 1,
        "partitions": [
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "replicas": list(brokers),
                "log_dirs": [ANY_LOG_DIR] * len(brokers),
            }
            for tp, brokers in sorted(replicas.items())
        ],
    }


def read_topics(path: Path) -> list[str]:
    """Read the topics of a file in the format of ``--topics-to-move-json-file``.

    Raises
    ------
    KafkaConfigurationError
        If the file has another format, or names a topic twice.
    """
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise KafkaConfigurationError(f"{path} is not JSON: {error}") from None
    topics = content.get("topics") if isinstance(content, dict) else None
    if not isinstance(topics, list):
        topics = []
    names = [
        each["topic"] for each in topics if isinstance(each, dict) and isinstance(each.get("topic"), str)
    ]
    if not names or len(names) != len(topics) or len(set(names)) != len(names):
        raise KafkaConfigurationError(
            f'{path} is not {{"version": 1, "topics": [{{"topic": "orders"}}]}} with different topics'
        )
    return names
