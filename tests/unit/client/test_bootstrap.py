"""Bootstrap of NetworkClient and Metadata: which server is asked, and how its connection is reused."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest
from kafkacore.protocol.generated.metadata import MetadataRequest, MetadataResponse
from kafkacore.testing.mock_client import MockClient


def connected(**options: Any) -> MockClient:
    mock = MockClient(**options)
    mock.connect()
    return mock


def now(mock: MockClient) -> float:
    return mock.clock.monotonic_ms()


def test_a_request_for_metadata_that_is_due_goes_first() -> None:
    mock = connected()
    mock.clock.advance(1000)
    assert mock.client.ready(mock.nodes[0], now(mock))
    mock.metadata.request_update()
    assert not mock.client.is_ready(mock.nodes[0], now(mock))
    mock.poll()
    mock.poll()
    assert mock.client.ready(mock.nodes[0], now(mock))


def test_an_answer_without_brokers_changes_nothing_and_is_asked_again() -> None:
    mock = MockClient()
    mock.prepare_response(MetadataResponse())
    mock.connect()
    assert mock.metadata.fetch().nodes == mock.nodes
    assert len(mock.requests_of(MetadataRequest)) == 2


def test_the_bootstrap_socket_becomes_the_nodes_socket() -> None:
    mock = connected(node_count=2)
    assert [address for _, address in mock.selector.attempts] == [("ip-node0", 9092), ("ip-node1", 9093)]
    assert len(mock.selector.addresses) == 2


def test_a_bootstrap_socket_that_leads_elsewhere_is_closed_and_not_kept() -> None:
    mock = connected(bootstrap_servers=[("balancer", 9092)])
    assert [address for _, address in mock.selector.attempts] == [("ip-balancer", 9092), ("ip-node0", 9092)]
    assert mock.selector.addresses == {"0": ("ip-node0", 9092)}


def test_a_node_with_the_address_of_the_bootstrap_connection_takes_it_over_too() -> None:
    mock = MockClient(bootstrap_servers=[("balancer", 9092)], resolver=lambda host, port: ["node0"])
    mock.connect()
    assert len(mock.selector.attempts) == 1


def test_a_connection_taken_over_ends_and_begins_again_under_the_nodes_own_name() -> None:
    mock = connected()
    ended = mock.send(0, ListOffsetsRequest())
    mock.poll()
    mock.disconnect(0)
    mock.poll()
    assert len(ended) == 1
    mock.poll_until(lambda: mock.client.ready(mock.nodes[0], now(mock)))
    assert list(mock.selector.addresses) == ["0"]


def test_the_next_bootstrap_server_is_asked_when_one_is_down() -> None:
    mock = MockClient(node_count=2, bootstrap_servers=[("node0", 9092), ("node1", 9093)])
    mock.selector.refused.add("ip-node0")
    mock.poll_until(lambda: not mock.metadata.fetch().is_bootstrap)
    assert mock.metadata.fetch().nodes == mock.nodes


def test_without_any_node_for_long_the_bootstrap_servers_are_asked_again() -> None:
    mock = connected(node_count=2, rebootstrap_trigger_ms=5000, reconnect_backoff_max_ms=500)
    mock.selector.refused |= {"ip-node0", "ip-node1"}
    for node in mock.nodes:
        mock.disconnect(node.node_id)
    mock.metadata.request_update()
    before_ms = now(mock)
    mock.poll_until(lambda: mock.metadata.fetch().is_bootstrap, 500)
    assert now(mock) - before_ms >= 5000
    mock.selector.refused.clear()
    mock.poll_until(lambda: not mock.metadata.fetch().is_bootstrap, 500)


def test_a_broker_that_asks_for_it_makes_the_client_bootstrap_again() -> None:
    mock = connected()
    mock.clock.advance(1000)
    mock.prepare_response(MetadataResponse(error_code=129))
    mock.metadata.request_update()
    mock.poll_until(lambda: mock.metadata.fetch().is_bootstrap)
    mock.poll_until(lambda: not mock.metadata.fetch().is_bootstrap)
    assert mock.requests[-1].node_id == -1


def test_rebootstrap_that_does_not_help_backs_off() -> None:
    mock = connected()
    mock.clock.advance(1000)
    before_ms = now(mock)
    for _ in range(20):
        mock.prepare_response(MetadataResponse(error_code=129))
    asked = len(mock.requests_of(MetadataRequest))
    mock.metadata.request_update()
    mock.poll_until(lambda: len(mock.requests_of(MetadataRequest)) >= asked + 20, 2000)
    assert now(mock) - before_ms > 10_000


def test_response_with_impossible_brokers_alone_keeps_the_known_ones() -> None:
    mock = MockClient()
    bad = MetadataResponse.MetadataResponseBroker(node_id=0, host="node0", port=0)
    mock.prepare_response(MetadataResponse(brokers=[bad]))
    mock.connect()
    assert mock.metadata.fetch().nodes == mock.nodes


def metadata_lines(caplog: pytest.LogCaptureFixture) -> list[int]:
    return [record.levelno for record in caplog.records if "topic 'new'" in record.getMessage()]


def test_topic_that_a_first_retry_finds_is_not_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "kafkacore")
    mock = connected()
    mock.metadata.add_topic("new")
    mock.poll_until(lambda: bool(metadata_lines(caplog)))
    mock.topics["new"] = 1
    mock.poll_until(lambda: mock.metadata.fetch().partitions_for_topic("new") is not None)
    assert metadata_lines(caplog) == [logging.DEBUG]
    del mock.topics["new"]
    mock.metadata.request_update()
    mock.poll_until(lambda: len(metadata_lines(caplog)) == 2)
    assert metadata_lines(caplog)[-1] == logging.DEBUG


def test_topic_that_stays_unknown_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "kafkacore")
    mock = connected()
    mock.metadata.add_topic("new")
    mock.poll_until(lambda: len(metadata_lines(caplog)) == 3)
    assert metadata_lines(caplog) == [logging.DEBUG, logging.WARNING, logging.WARNING]


def test_topic_that_is_forbidden_is_warned_about_at_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "kafkacore")
    mock = connected()
    mock.metadata.add_topic("new")
    refused = MetadataResponse.MetadataResponseTopic(name="new", error_code=29)
    response = mock.metadata_response(MetadataRequest(topics=[]))
    response.topics.append(refused)
    mock.prepare_response(response)
    mock.poll_until(lambda: bool(metadata_lines(caplog)))
    assert metadata_lines(caplog) == [logging.WARNING]
