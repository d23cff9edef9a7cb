"""Jumps of the wall clock: requests wait exactly as long as asked, and no member is removed early."""

from __future__ import annotations

from pathlib import Path

import pytest
from model.broker_harness import BrokerHarness, batch
from model.group_harness import SESSION_MS, GroupHarness

from kafkacore.protocol.generated.create_topics import CreateTopicsRequest
from kafkacore.protocol.generated.fetch import FetchRequest
from kafkacore.protocol.generated.produce import ProduceRequest

HOUR_MS = 3_600_000
JUMPS = [HOUR_MS, -HOUR_MS, 24 * HOUR_MS, -24 * HOUR_MS]
WAIT_MS = 500


@pytest.mark.parametrize("jump_ms", JUMPS)
def test_session_lasts_as_long_as_it_should_whatever_the_wall_clock_does(jump_ms: int) -> None:
    harness = GroupHarness()
    members = harness.stable(2)
    harness.pass_ms(SESSION_MS / 2)
    harness.clock.wall_offset_ms += jump_ms
    harness.pass_ms(SESSION_MS / 2 - 1)
    assert harness.state == "Stable"
    assert [harness.heartbeat(one, 1) for one in members] == [0, 0]
    harness.clock.wall_offset_ms -= jump_ms
    harness.pass_ms(SESSION_MS - 1)
    assert harness.state == "Stable"
    harness.pass_ms(1)
    assert harness.state == "Empty"


@pytest.mark.parametrize("jump_ms", JUMPS)
def test_fetch_waits_as_long_as_it_should_whatever_the_wall_clock_does(tmp_path: Path, jump_ms: int) -> None:
    broker = BrokerHarness(tmp_path)
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    broker.ask(CreateTopicsRequest(topics=[topic]))
    wanted = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    fetch = FetchRequest(
        max_wait_ms=WAIT_MS,
        min_bytes=1,
        max_bytes=1000,
        topics=[FetchRequest.FetchTopic(topic="t", partitions=[wanted])],
    )
    waiting = broker.send(fetch, 12)
    broker.clock.wall_offset_ms += jump_ms
    broker.clock.advance(WAIT_MS - 1)
    broker.settle()
    assert waiting.count == 0
    broker.clock.advance(1)
    broker.settle()
    assert waiting.count == 1
    data = ProduceRequest.PartitionProduceData(index=0, records=batch(b"a"))
    request = ProduceRequest(
        acks=1, timeout_ms=1, topic_data=[ProduceRequest.TopicProduceData(name="t", partition_data=[data])]
    )
    waiting = broker.send(fetch, 12)
    assert broker.ask(request, 9).responses[0].partition_responses[0].error_code == 0
    broker.settle()
    assert waiting.count == 1
