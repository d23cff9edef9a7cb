"""Measure what an idle fetch costs the broker's network thread.

    python -m pytest bench/micro/fetch_session.py --benchmark-enable

The fetch session has one partition or a thousand. The peer is a full fetch without a session. Decoding and
encoding are not measured, because an incremental fetch has almost nothing to decode or encode.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.log import LogManager
from kafkacore.broker.purgatory.timer import Timer
from kafkacore.broker.replica.fetch_partition import FetchParams, FetchPartition, PartitionResults
from kafkacore.broker.replica.fetch_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchAsk,
    FetchManager,
    next_epoch,
)
from kafkacore.broker.replica.replica_manager import ReplicaManager
from kafkacore.broker.topics.cluster_state import BrokerNode, ClusterState
from kafkacore.broker.topics.topic_catalog import TopicCatalog
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.protocol import ZERO_UUID

NODE = 1


class Fetched:
    """The fetch path of a broker, and a client that reads one topic."""

    def __init__(self, folder: Path, partitions: int) -> None:
        self.logs = LogManager(folder, clock=SYSTEM_CLOCK, background=False)
        topics = TopicCatalog(self.logs, BrokerConfig(data_dir=folder), SYSTEM_CLOCK)
        topics.create("t", partitions, {})
        cluster = ClusterState(topics, [BrokerNode(NODE, "127.0.0.1", 9092)])
        self.replicas = ReplicaManager(cluster, SYSTEM_CLOCK, Timer(), lambda: None)
        self.sessions = FetchManager(self.replicas, topics.name_of, SYSTEM_CLOCK, 1000)
        self.wanted = {("t", n): FetchPartition("t", ZERO_UUID, n, 0, 1 << 20) for n in range(partitions)}
        self.session_id, self.epoch = 0, INITIAL_EPOCH

    def fetch(self, epoch: int, partitions: dict[Any, FetchPartition]) -> int:
        """Return the number of partitions in the response."""
        notified: list[PartitionResults] = []
        ask = FetchAsk(NODE, self.session_id, epoch, partitions, uses_topic_ids=False)
        context = self.sessions.new_context(ask)
        params = FetchParams(NODE, 0, 1, 1 << 20)
        self.replicas.fetch_messages(
            params, context, lambda results: notified.append(context.update_and_generate(results))
        )
        self.session_id = context.session_id
        return len(notified[0])

    def incremental(self) -> int:
        self.epoch = next_epoch(self.epoch)
        return self.fetch(self.epoch, {})

    def full(self) -> int:
        return self.fetch(FINAL_EPOCH, self.wanted)


@pytest.mark.parametrize("kind", ["incremental", "full"])
@pytest.mark.parametrize("partitions", [1, 1000])
def test_idle_fetch(benchmark: Any, tmp_path: Path, record_count: int, partitions: int, kind: str) -> None:
    fetched = Fetched(tmp_path, min(partitions, record_count // 10))
    try:
        assert fetched.fetch(INITIAL_EPOCH, fetched.wanted) == len(fetched.wanted)
        ask: Callable[[], int] = getattr(fetched, kind)
        assert ask() == (0 if kind == "incremental" else len(fetched.wanted))
        benchmark(ask)
        benchmark.extra_info["fetches/s"] = round(1 / benchmark.stats.stats.min)
    finally:
        fetched.logs.close()
