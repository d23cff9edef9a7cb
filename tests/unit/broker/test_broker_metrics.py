"""Request metrics of the broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from model.broker_harness import BrokerHarness

from kafkacore.protocol.generated.api_versions import ApiVersionsRequest
from kafkacore.protocol.generated.fetch import FetchRequest
from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest


@pytest.fixture
def broker(tmp_path: Path) -> BrokerHarness:
    return BrokerHarness(tmp_path)


def figures(broker: BrokerHarness, name: str) -> dict[str, Any]:
    return next(each for each in broker.apis.metrics.figures() if each["name"] == name)


def fetch(topic: str, wait_ms: int) -> FetchRequest:
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    asked = FetchRequest.FetchTopic(topic=topic, partitions=[partition])
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=1, max_bytes=1000, topics=[asked])


def test_requests_are_counted_by_api(broker: BrokerHarness) -> None:
    for _ in range(3):
        broker.send(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
    broker.send(ApiVersionsRequest(client_software_name="!", client_software_version="1"), 3)
    found = figures(broker, "ApiVersions")
    assert found["requests"] == 4
    assert found["errors"] == {"INVALID_REQUEST": 1}
    assert found["rate"] > 0
    assert [each["name"] for each in broker.apis.metrics.figures()] == ["ApiVersions"]


def test_errors_of_partitions_are_counted_one_by_one(broker: BrokerHarness) -> None:
    partitions = [ListOffsetsRequest.ListOffsetsPartition(partition_index=n) for n in range(3)]
    topic = ListOffsetsRequest.ListOffsetsTopic(name="nowhere", partitions=partitions)
    broker.send(ListOffsetsRequest(topics=[topic]), 5)
    assert figures(broker, "ListOffsets")["errors"] == {"UNKNOWN_TOPIC_OR_PARTITION": 3}


def test_time_that_a_request_waits_is_told_from_the_time_that_it_takes(broker: BrokerHarness) -> None:
    broker.topics.create("quiet", 1, {})
    answer = broker.send(fetch("quiet", 300), 12)
    assert answer.message is None
    broker.clock.advance(300)
    broker.timer.advance(broker.clock.monotonic_ms())
    assert answer.message is not None
    found = figures(broker, "Fetch")
    assert found["remote_ms"] == found["total_ms"] == pytest.approx(300, abs=10)
    assert found["local_ms"] == 0
    assert found["largest_ms"] == found["total_ms"]
