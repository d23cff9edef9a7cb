"""A cluster in memory that has the methods of the admin client which the commands call."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from kafkacore.structs import (
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OffsetSpec,
    TopicPartition,
    TopicPartitionReplica,
)


class FakeAdmin:
    """Topics with logs, and groups with members and committed offsets."""

    def __init__(self) -> None:
        #: First and end offset of each partition.
        self.logs: dict[TopicPartition, tuple[int, int]] = {}
        #: Partition → timestamp → offset of the first record at or after it.
        self.times: dict[TopicPartition, dict[int, int]] = {}
        self.groups: dict[str, dict[str, Any]] = {}
        self.committed: dict[str, dict[TopicPartition, int]] = {}
        self.replicas: dict[TopicPartition, list[int]] = {}
        self.racks: dict[int, str | None] = dict.fromkeys((1, 2, 3))
        #: Type and name of a resource → its own configuration.
        self.configs: dict[tuple[str, str], dict[str, str]] = {}
        #: Name of a resource → error of a change.
        self.refusals: dict[str, str] = {}
        #: Outcomes of the next changes of log directories.
        self.log_dir_errors: list[Any] = []

    def add_topic(self, topic: str, *logs: tuple[int, int]) -> None:
        for number, log in enumerate(logs):
            self.logs[TopicPartition(topic, number)] = log

    def add_group(self, group: str, committed: Mapping[tuple[str, int], int], *members: Any) -> None:
        self.committed[group] = {TopicPartition(*tp): offset for tp, offset in committed.items()}
        self.groups[group] = {
            "error": None,
            "group_id": group,
            "group_state": "Stable" if members else "Empty",
            "group_type": "classic",
            "protocol_data": "range" if members else "",
            "members": list(members),
        }

    def describe_topics(self, topics: Iterable[str] | None = None) -> list[dict[str, Any]]:
        names = sorted({tp.topic for tp in self.logs}) if topics is None else list(topics)
        return [
            {
                "name": name,
                "error_code": 0 if any(tp.topic == name for tp in self.logs) else 3,
                "partitions": [
                    {"partition_index": tp.partition, "replica_nodes": self.replicas.get(tp, [1])}
                    for tp in sorted(self.logs)
                    if tp.topic == name
                ],
            }
            for name in names
        ]

    def describe_cluster(self) -> dict[str, Any]:
        return {"brokers": [{"broker_id": number, "rack": rack} for number, rack in self.racks.items()]}

    def describe_configs(self, resources: Iterable[Any], config_filter: str) -> dict[str, Any]:
        return {
            kind: {
                each.name: {
                    config: {"value": value, "config_source": f"DYNAMIC_{kind.upper()}_CONFIG"}
                    for config, value in self.configs.get((kind, each.name), {}).items()
                    if config in each.configs
                }
                for each in resources
                if each.resource_type.name.lower() == kind
            }
            for kind in ("broker", "topic")
        }

    def alter_configs(self, resources: Iterable[Any], raise_on_unknown: bool) -> dict[str, dict[str, str]]:
        outcome: dict[str, dict[str, str]] = {"broker": {}, "topic": {}}
        for each in resources:
            kind = each.resource_type.name.lower()
            outcome[kind][each.name] = self.refusals.get(each.name, "OK")
            values = self.configs.setdefault((kind, each.name), {})
            for config, change in each.configs.items():
                if isinstance(change, str):
                    values[config] = change
                else:
                    del values[config]
        return outcome

    def alter_replica_log_dirs(self, wanted: Mapping[TopicPartitionReplica, str]) -> dict[Any, Any]:
        return {replica: self.log_dir_errors.pop(0) for replica in wanted}

    def describe_groups(self, group_ids: Iterable[str]) -> dict[str, Any]:
        missing = {"error": "GROUP_ID_NOT_FOUND", "group_state": "Dead"}
        return {
            group: missing if found["group_type"] in ("share", "streams") else found
            for group in group_ids
            for found in [self.groups.get(group, missing | {"group_type": ""})]
        }

    def list_groups(self) -> list[dict[str, Any]]:
        return [{"group_id": group, "group_type": each["group_type"]} for group, each in self.groups.items()]

    def list_group_offsets(self, specs: Iterable[str]) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
        return {
            group: {tp: OffsetAndMetadata(offset) for tp, offset in self.committed.get(group, {}).items()}
            for group in specs
        }

    def list_partition_offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec | int]
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        found = {}
        for tp, spec in specs.items():
            first, end = self.logs[tp]
            if isinstance(spec, OffsetSpec):
                offset = first if spec is OffsetSpec.EARLIEST else end
            else:
                later = [offset for time, offset in self.times.get(tp, {}).items() if time >= spec]
                offset = min(later, default=-1)
            found[tp] = OffsetAndTimestamp(offset, -1)
        return found


@pytest.fixture
def admin() -> Any:
    return FakeAdmin()


@pytest.fixture
def arguments() -> argparse.Namespace:
    return argparse.Namespace(bootstrap="localhost:9092")
