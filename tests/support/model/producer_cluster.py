"""A cluster snapshot as a plain table of partition leaders, for the producer's tests."""

from __future__ import annotations

from kafkacore.structs import Node, TopicPartition

NODES = {node_id: Node(node_id, f"broker-{node_id}", 9092) for node_id in range(4)}


class TableCluster:
    """``leaders``: topic → node id of the leader of partition 0, 1, … or ``None``. All epochs are equal."""

    def __init__(self, leaders: dict[str, list[int | None]], epoch: int = 0) -> None:
        self.leaders = leaders
        self.epoch = epoch

    def leader_for(self, partition: TopicPartition, /) -> Node | None:
        leader = self.leaders[partition.topic][partition.partition]
        return None if leader is None else NODES[leader]

    def leader_epoch(self, partition: TopicPartition, /) -> int:
        return self.epoch

    def partitions_for_topic(self, topic: str, /) -> tuple[int, ...] | None:
        return tuple(range(len(self.leaders[topic]))) if topic in self.leaders else None

    def available_partitions(self, topic: str, /) -> tuple[int, ...]:
        return tuple(at for at, leader in enumerate(self.leaders.get(topic, [])) if leader is not None)

    def topics(self) -> set[str]:
        return set(self.leaders)
