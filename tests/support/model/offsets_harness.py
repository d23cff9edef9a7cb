"""The group coordinator's log and offsets, on logs in memory and with scripted groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from eventually import eventually
from model.memory_log import MemoryLog, MemoryLogManager

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.coordinator.coordinator_log import CoordinatorLog
from kafkacore.broker.coordinator.interfaces import CoordinatorRecord, EndTransactionMarker, Producer
from kafkacore.broker.group.coordinator_state import GroupCoordinatorState
from kafkacore.broker.group.interfaces import OffsetExpiry
from kafkacore.broker.group.offset_manager import Committer, OffsetManager, OffsetToCommit
from kafkacore.broker.group.offset_sweeper import OffsetSweeper
from kafkacore.broker.group.records import group_metadata_tombstone
from kafkacore.broker.group.services import offsets_topic
from kafkacore.broker.purgatory.timer import Timer
from kafkacore.broker.replica.replica_manager import ReplicaManager
from kafkacore.broker.topics.cluster_state import BrokerNode, ClusterState
from kafkacore.broker.topics.internal_topics import OFFSETS_TOPIC
from kafkacore.broker.topics.topic_catalog import TopicCatalog
from kafkacore.coordinator import partition_for
from kafkacore.errors import GroupIdNotFoundError, KafkaError
from kafkacore.protocol.generated.group_records import GroupMetadataValue
from kafkacore.structs import TopicPartition
from kafkacore.testing import VirtualClock

NODE = 1


class RecordingGroups:
    """Stands in for the groups: returns scripted answers, and records calls from the log."""

    def __init__(self) -> None:
        self.known: dict[str, GroupMetadataValue | None] = {}
        self.loaded: list[str] = []
        self.unloaded: list[int] = []
        self.refusal: KafkaError | None = None
        #: Topics to which members of any group are subscribed.
        self.subscribed: set[str] = set()
        self.expiry: OffsetExpiry | None = OffsetExpiry(None)
        self.are_empty = True
        self.partition_for: Callable[[str], int] = partition_for

    def apply_group(self, group_id: str, value: GroupMetadataValue | None) -> None:
        if value is None:
            self.known.pop(group_id, None)
        else:
            self.known[group_id] = value

    def load(self, group_ids: Sequence[str]) -> None:
        for group_id in group_ids:
            self.ensure_simple(group_id)
        self.loaded += group_ids

    def unload(self, partition: int) -> None:
        self.unloaded.append(partition)
        for group_id in self.group_ids(partition):
            del self.known[group_id]

    def group_ids(self, partition: int) -> Sequence[str]:
        return [group_id for group_id in self.known if self.partition_for(group_id) == partition]

    def exists(self, group_id: str) -> bool:
        return group_id in self.known

    def ensure_simple(self, group_id: str) -> None:
        self.known.setdefault(group_id, None)

    def validate_commit(self, *_: object) -> None:
        if self.refusal is not None:
            raise self.refusal

    def validate_transactional_commit(self, *_: object) -> None:
        self.validate_commit()

    def validate_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> None:
        pass

    def add_loaded(self, group: object) -> None:
        raise AssertionError("no consumer group is stored")

    def validate_offset_delete(self, group_id: str) -> None:
        if group_id not in self.known:
            raise GroupIdNotFoundError
        self.validate_commit()

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        return topic in self.subscribed

    def offset_expiry(self, group_id: str) -> OffsetExpiry | None:
        return self.expiry

    def removal(self, group_id: str) -> Sequence[CoordinatorRecord]:
        return [group_metadata_tombstone(group_id)] if self.are_empty and group_id in self.known else []


class OffsetsHarness:
    """A coordinator of one node and a topic ``t`` of four partitions. Only :meth:`sync` flushes writes."""

    def __init__(
        self,
        tmp_path: Path,
        logs: MemoryLogManager | None = None,
        clock: VirtualClock | None = None,
        **config: Any,
    ) -> None:
        self.clock = clock or VirtualClock()
        self.config = BrokerConfig.from_properties({"data_dir": tmp_path, "port": 0, **config})
        self.logs = logs or MemoryLogManager()
        self.topics = TopicCatalog(self.logs, self.config, self.clock)  # type: ignore[arg-type]
        self.cluster = ClusterState(self.topics, [BrokerNode(NODE, "127.0.0.1", 9092)])
        self.timer = Timer(self.clock.monotonic_ms())
        self.replica_manager = ReplicaManager(self.cluster, self.clock, self.timer, lambda: None)
        self.groups = RecordingGroups()
        self.state = GroupCoordinatorState()
        self.state.groups = self.groups
        self.log = CoordinatorLog(
            offsets_topic(self.config),
            self.state,
            self.clock,
            self.topics,
            self.cluster,
            self.replica_manager,
            "loader",
        )
        self.groups.partition_for = self.log.partition_for
        self.offsets = OffsetManager(self.config, self.clock, self.log, self.state)
        self.sweeper = OffsetSweeper(
            self.config,
            self.clock,
            self.timer,
            self.topics,
            self.log,
            self.state,
            self.offsets,
            self.replica_manager.call_soon,
        )
        self.log.on_loaded = self.sweeper.partition_loaded
        self.topics.on_removed.append(self.sweeper.topic_removed)
        if logs is None:
            self.topics.create("t", 4, {})
            self.log.ensure_topic()
            for log in self.logs.logs.values():
                log.sync_at_once = False

    def restarted(self) -> OffsetsHarness:
        """Return a coordinator that has loaded the logs of this one."""
        other = OffsetsHarness(self.config.data_dir, self.logs, self.clock)
        other.log.start()
        other.wait_for_load()
        return other

    def wait_for_load(self) -> None:
        """Wait until every partition is loaded or has failed. The loader is a separate thread."""

        def is_loaded() -> bool:
            self.turn()
            return not self.log.is_loading

        eventually(is_loaded)
        self.turns()

    def turn(self) -> None:
        """Run one iteration of the network thread."""
        self.replica_manager.complete_delayed()
        self.timer.advance(self.clock.monotonic_ms())

    def turns(self) -> None:
        while self.replica_manager.has_events:
            self.turn()

    def log_of(self, group_id: str = "g") -> MemoryLog:
        return self.logs.logs[self.place_of(group_id)]

    def place_of(self, group_id: str = "g") -> TopicPartition:
        return TopicPartition(OFFSETS_TOPIC, self.log.partition_for(group_id))

    def sync(self, group_id: str = "g") -> None:
        """Flush everything that was written for a group."""
        self.log_of(group_id).sync()
        self.replica_manager.on_high_watermark(self.place_of(group_id), 0)
        self.turns()

    def commit(
        self,
        *offsets: tuple[str, int, int],
        group_id: str = "g",
        metadata: str = "",
        producer: Producer | None = None,
        **committer: Any,
    ) -> list[list[int]]:
        """Commit (topic, partition, offset). The returned list contains the response once it is complete.

        With a producer, the offsets are part of its transaction.
        """
        answers: list[list[int]] = []
        wanted = [
            OffsetToCommit(topic, self.id_of(topic), partition, offset, -1, metadata)
            for topic, partition, offset in offsets
        ]
        who = Committer(**{"member_id": "", "instance_id": None, "generation": -1, "version": 9, **committer,
                           "group_id": group_id})  # fmt: skip
        if producer is None:
            self.offsets.commit(who, NODE, wanted, lambda codes: answers.append(list(codes)))
        else:
            self.offsets.commit_transactional(
                who, producer, NODE, wanted, lambda codes: answers.append(list(codes))
            )
        return answers

    def end(
        self, producer_id: int, *, commit: bool, epoch: int = 0, group_id: str = "g", version: int = 1
    ) -> int:
        """Append the marker of a transaction to the group's partition. Return the offset after it."""
        marker = EndTransactionMarker(producer_id, epoch, commit, 0, version)
        number = self.log.partition_for(group_id)
        return self.log.append_marker(number, marker, self.clock.wall_ms())[1]

    def id_of(self, topic: str) -> UUID:
        found = self.topics.get(topic)
        assert found is not None
        return found.topic_id

    def fetched(self, group_id: str = "g") -> list[Any]:
        """Return the code and (topic, partition) → offset, once the response is complete."""
        answers: list[Any] = []

        def on_done(code: int, found: Any, _: Any) -> None:
            offsets = {
                (topic, partition): one.offset
                for topic, partitions in found.items()
                for partition, one in partitions.items()
            }
            answers.append(code or offsets)

        self.offsets.fetch(group_id, NODE, on_done)
        return answers

    def pending(self, group_id: str = "g") -> list[tuple[str, int]]:
        """Return the partitions for which a group has pending offsets."""
        return sorted(self.offsets.pending_of_group(group_id))

    def committed(self, group_id: str = "g") -> Any:
        """Return the offsets that a group has committed, after a flush."""
        self.sync(group_id)
        (answer,) = self.fetched(group_id)
        return answer


def noted() -> tuple[list[int], Callable[[int], None]]:
    """Return a list and an ``on_safe`` callback that appends its codes to the list."""
    codes: list[int] = []
    return codes, codes.append
