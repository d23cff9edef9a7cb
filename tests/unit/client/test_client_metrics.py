"""Metrics of a network client, on a virtual clock without sockets."""

from __future__ import annotations

from typing import Any

import pytest

from kafkacore.client.client_metrics import ClientMetrics
from kafkacore.metrics import MetricConfig, Metrics
from kafkacore.protocol.generated.metadata import MetadataResponse
from kafkacore.testing.mock_client import MockClient


class Counted:
    def __init__(self, **options: Any) -> None:
        self.mock = MockClient(**options)
        client = self.mock.client
        self.registry = Metrics(MetricConfig(2, 1000), clock=self.mock.clock)
        client.metrics = ClientMetrics(
            self.registry, "consumer", client.connection_count, client.in_flight_request_count
        )

    def of_all(self, name: str) -> float:
        return self.registry.snapshot()["consumer-metrics"][name]

    def of_node(self, node_id: int, name: str) -> float:
        return self.registry.snapshot()[f"consumer-node-metrics.node-{node_id}"][name]


def test_requests_answers_and_bytes_are_counted_by_node_and_in_all() -> None:
    counted = Counted()
    counted.mock.connect()
    # ApiVersions and Metadata were sent to the bootstrap server. The node now owns that connection.
    assert counted.of_node(-1, "request-total") == counted.of_all("request-total") == 2
    counted.mock.metadata.request_update()
    counted.mock.clock.advance(1000)
    counted.mock.poll()
    counted.mock.poll()
    assert counted.of_node(0, "request-total") == 1
    assert counted.of_all("request-total") == counted.of_all("response-total") == 3
    sent = [counted.of_node(node_id, "outgoing-byte-total") for node_id in (-1, 0)]
    assert counted.of_all("outgoing-byte-total") == sum(sent)
    assert counted.of_all("request-size-max") >= counted.of_all("request-size-avg") > 4
    assert counted.of_all("incoming-byte-total") > 0
    assert counted.of_all("network-io-rate") == pytest.approx(
        counted.of_all("request-rate") + counted.of_all("response-rate")
    )


def test_connections_are_counted_when_they_come_and_go() -> None:
    counted = Counted()
    counted.mock.connect()
    assert counted.of_all("connection-count") == 1
    assert counted.of_all("connection-creation-total") == 1
    assert counted.of_all("connection-close-total") == 0
    counted.mock.client.disconnect(0)
    assert counted.of_all("connection-count") == 0
    assert counted.of_all("connection-close-total") == 1


def test_throttling_is_counted() -> None:
    counted = Counted()
    counted.mock.connect()
    assert counted.of_all("throttle-time-max") == 0
    counted.mock.prepare_response(MetadataResponse(throttle_time_ms=250))
    counted.mock.metadata.request_update()
    counted.mock.clock.advance(1000)
    counted.mock.poll()
    counted.mock.poll()
    assert counted.of_node(0, "throttle-time-max") == counted.of_all("throttle-time-max") == 250


def test_waits_are_shares_of_the_time() -> None:
    counted = Counted()
    metrics = counted.mock.client.metrics
    assert metrics is not None
    for _ in range(4):
        metrics.requests.waited(300.0, counted.mock.clock.monotonic_ms())
        counted.mock.clock.advance(500)
    assert counted.of_all("io-wait-ratio") == pytest.approx(0.6)
    assert counted.of_all("io-wait-time-ns-avg") == pytest.approx(300e6)
    assert counted.of_all("select-rate") == pytest.approx(2.0)


def test_request_on_its_way_is_in_flight() -> None:
    counted = Counted()
    counted.mock.connect()
    assert counted.of_all("requests-in-flight") == 0
    counted.mock.selector.hold_writes = True
    counted.mock.metadata.request_update()
    counted.mock.clock.advance(1000)
    counted.mock.client.poll(0, counted.mock.clock.monotonic_ms())
    assert counted.of_all("requests-in-flight") == 1
