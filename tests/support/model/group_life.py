"""A group on the whole broker that commits offsets inside and outside of transactions, without a client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eventually import eventually
from model.broker_in_hand import BrokerInHand
from model.log_oracle import NOW_MS

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.coordinator.interfaces import EndTransactionMarker, Producer
from kafkacore.broker.group.offset_manager import Committer, OffsetToCommit
from kafkacore.broker.log import UnifiedLog
from kafkacore.errors import CoordinatorLoadInProgressError
from kafkacore.structs import TopicPartition
from kafkacore.testing.clock import VirtualClock
from kafkacore.testing.disk import SimulatedDisk

GROUP = "g"
PLACE = TopicPartition("__consumer_offsets", 0)


class GroupLife:
    """A broker on a simulated disk, with a group in the one partition of ``__consumer_offsets``.

    Parameters
    ----------
    config:
        More settings of the broker.

    Attributes
    ----------
    sent, safe:
        Number of commits, deletions and ends of transactions that were begun, and that were acknowledged.
    """

    def __init__(self, folder: Path, disk: SimulatedDisk, **config: Any) -> None:
        self.sent = self.safe = 0
        properties = {"data_dir": folder, "port": 0, "offsets_topic_num_partitions": 1, **config}
        self.broker = BrokerInHand(
            BrokerConfig.from_properties(properties),
            background=False,
            clock=VirtualClock(start_ms=NOW_MS),
            disk=disk,
        )
        self.broker.start()

    @property
    def services(self) -> Any:
        return self.broker.services

    @property
    def log(self) -> UnifiedLog:
        found = self.broker.logs.log(PLACE)
        assert found is not None
        return found

    def create(self) -> None:
        """Create the topic ``t`` of three partitions, and that of the offsets."""
        self.services.topics.create("t", 3, {})
        self.services.coordinator_log.ensure_topic()
        self.broker.flush()

    def _on_safe(self) -> None:
        self.safe += 1

    def delete(self, partition: int) -> None:
        self.sent += 1
        self.services.offsets.delete(
            GROUP, self.broker.config.node_id, [("t", partition)], lambda *_: self._on_safe()
        )

    def commit(self, producer: Producer | None, offsets: dict[int, int]) -> None:
        self.sent += 1
        topic_id = self.services.topics.get("t").topic_id
        wanted = [OffsetToCommit("t", topic_id, *each, -1, None) for each in offsets.items()]
        who = Committer(GROUP, "", None, -1, 9)

        def on_done(codes: Any) -> None:
            assert set(codes) == {0}
            self._on_safe()

        node_id, manager = self.broker.config.node_id, self.services.offsets
        if producer is None:
            manager.commit(who, node_id, wanted, on_done)
        else:
            manager.commit_transactional(who, producer, node_id, wanted, on_done)

    def end(self, producer: Producer, commit: bool) -> None:
        self.sent += 1
        log = self.services.coordinator_log
        log.append_marker(0, EndTransactionMarker(*producer, commit, 0, 1), NOW_MS)
        log.when_safe(GROUP, lambda code: self._on_safe())

    def state(self) -> tuple[dict[int, int], set[int]]:
        """Return the committed offsets and the partitions with pending ones, once they are safe."""
        answers: list[Any] = []

        def is_loaded() -> bool:
            try:
                self.services.coordinator_log.check(GROUP)
            except CoordinatorLoadInProgressError:
                self.broker.settle()
                return False
            return True

        eventually(is_loaded)
        self.services.offsets.fetch(GROUP, self.broker.config.node_id, lambda *found: answers.append(found))
        self.broker.flush()
        ((code, offsets, pending),) = answers
        assert code == 0
        found = {partition: one.offset for partition, one in offsets.get("t", {}).items()}
        return found, {partition for _, partition in pending}
