"""NetworkClient and Selector with a broker in another process: no part is simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from eventually import eventually

from kafkacore.client import ClientResponse, Metadata, NetworkClient, bootstrap_client
from kafkacore.client.config import resolve
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest
from kafkacore.structs import Node
from kafkacore.testing import EmbeddedBroker


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(num_partitions=3) as started:
        yield started


@pytest.fixture
def client(broker: EmbeddedBroker) -> Iterator[NetworkClient]:
    made, _ = bootstrap_client(resolve({}, {"bootstrap_servers": broker.bootstrap_servers}))
    yield made
    made.close()


def poll_until(client: NetworkClient, condition: Callable[[], bool]) -> None:
    eventually(condition, step=lambda: client.poll(50, SYSTEM_CLOCK.monotonic_ms()))


def connect(client: NetworkClient, metadata: Metadata) -> Node:
    poll_until(client, lambda: not metadata.fetch().is_bootstrap)
    node = metadata.fetch().nodes[0]
    poll_until(client, lambda: client.ready(node, SYSTEM_CLOCK.monotonic_ms()))
    return node


def ask(client: NetworkClient, node: Node) -> list[ClientResponse]:
    ended: list[ClientResponse] = []
    now_ms = SYSTEM_CLOCK.monotonic_ms()
    client.send(
        client.new_client_request(node.node_id, ListOffsetsRequest(), now_ms, callback=ended.append), now_ms
    )
    return ended


def test_one_broker_costs_one_socket_and_answers(client: NetworkClient) -> None:
    client.metadata.add_topic("made-by-asking")
    node = connect(client, client.metadata)
    ended = ask(client, node)
    poll_until(client, lambda: bool(ended))
    assert ended[0].message is not None
    poll_until(client, lambda: bool(client.metadata.fetch().partitions_for_topic("made-by-asking")))
    assert client.metadata.fetch().available_partitions("made-by-asking") == (0, 1, 2)
    assert len(client.selector.channel_ids()) == 1


def test_a_broker_that_dies_and_comes_back_is_found_again(
    broker: EmbeddedBroker, client: NetworkClient
) -> None:
    node = connect(client, client.metadata)
    ended = ask(client, node)
    poll_until(client, lambda: bool(ended))
    broker.kill()
    poll_until(client, lambda: client.connection_failed(node))
    broker.restart()
    assert connect(client, client.metadata) == node
    again = ask(client, node)
    poll_until(client, lambda: bool(again))
    assert again[0].message is not None
