"""Read JSON files that list partitions, in the format of Kafka's own tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import INT32_MAX, INT64_MAX, TopicPartition, partition_name


def read_partitions(path: Path) -> dict[TopicPartition, dict[str, Any]]:
    """Read a file, and return the JSON object of each partition.

    Raises
    ------
    KafkaConfigurationError
        If the file has another format, or names a partition twice.
    """
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise KafkaConfigurationError(f"{path} is not JSON: {error}") from None
    objects = content.get("partitions") if isinstance(content, dict) else None
    if not isinstance(objects, list) or not objects or content.get("version", 1) != 1:
        raise KafkaConfigurationError(
            f'{path} is not {{"version": 1, "partitions": [{{"topic": "orders", "partition": 0, …}}]}}'
        )
    found: dict[TopicPartition, dict[str, Any]] = {}
    for each in objects:
        if not isinstance(each, dict) or not isinstance(each.get("topic"), str):
            raise KafkaConfigurationError(f"{path}: {json.dumps(each)} has no topic")
        tp = TopicPartition(each["topic"], whole_number(path, each, "partition", most=INT32_MAX))
        if tp in found:
            raise KafkaConfigurationError(
                f"{path}: {partition_name(tp)} is listed twice: remove one of the entries"
            )
        found[tp] = each
    return found


def whole_number(path: Path, source: dict[str, Any], name: str, least: int = 0, most: int = INT64_MAX) -> int:
    """Return the field ``name`` of a JSON object: a whole number from ``least`` to ``most``.

    Raises
    ------
    KafkaConfigurationError
        If the field is missing, is not a whole number, or is out of bounds.
    """
    value = source.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise KafkaConfigurationError(
            f"{path}: {name} in {json.dumps(source)} is not a whole number of {least} or more"
        )
    return value
