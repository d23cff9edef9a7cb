"""Native heartbeats on a NetworkClient's connection to a broker on a real socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from eventually import BUDGET_MS, eventually
from model.heartbeat_broker import NODE_ID, HeartbeatBroker

from kafkacore.client import ClientResponse, bootstrap_client, new_native_heartbeat
from kafkacore.client.config import resolve
from kafkacore.client.requests import HEARTBEAT_CORRELATION_IDS
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.network import HeartbeatEvent, NativeHeartbeat
from kafkacore.protocol.generated.heartbeat import HeartbeatRequest
from kafkacore.structs import Node

LONG_MS = 120_000.0
REQUEST = HeartbeatRequest(group_id="g", generation_id=5, member_id="m")


class Client:
    """A client that is connected to the broker, its native heartbeat, and the heartbeat responses."""

    def __init__(self, broker: HeartbeatBroker) -> None:
        host, port = broker.address
        self.client, _ = bootstrap_client(resolve({}, {"bootstrap_servers": f"{host}:{port}"}))
        self.node = Node(NODE_ID, host, port)
        self.heartbeat: NativeHeartbeat = new_native_heartbeat()
        self.responses: list[ClientResponse] = []
        self.connect()

    def connect(self) -> None:
        # No metadata request is in flight when a test counts requests.
        self.poll_until(lambda: not self.client.metadata.fetch().is_bootstrap)
        self.poll_until(lambda: self.client.ready(self.node, SYSTEM_CLOCK.monotonic_ms()))

    def begin(self, interval_ms: float = 5.0, session_timeout_ms: float = LONG_MS) -> bool:
        return self.client.begin_heartbeats(
            NODE_ID, self.heartbeat, REQUEST, interval_ms, session_timeout_ms, self.responses.append
        )

    def poll_until(self, condition: Callable[[], object]) -> None:
        eventually(condition, step=lambda: self.client.poll(20, SYSTEM_CLOCK.monotonic_ms()))

    def close(self) -> None:
        self.heartbeat.close()
        self.client.close()


@pytest.fixture
def broker() -> Iterator[HeartbeatBroker]:
    with HeartbeatBroker() as started:
        yield started


@pytest.fixture
def client(broker: HeartbeatBroker) -> Iterator[Client]:
    made = Client(broker)
    yield made
    made.close()


@pytest.mark.parametrize("version", range(5))
def test_beats_are_heartbeats_of_the_version_that_the_broker_knows(version: int) -> None:
    with HeartbeatBroker(heartbeat_version=version) as broker:
        client = Client(broker)
        assert client.begin()
        client.poll_until(lambda: len(client.responses) >= 2)
        broker.errors.append(27)
        # One poll may receive the next response, too.
        client.poll_until(lambda: any(each.message.error_code == 27 for each in client.responses))
        header, message = broker.beats[0]
        assert (header.request_api_version, header.client_id) == (version, "kafkacore")
        assert (message.group_id, message.generation_id, message.member_id) == ("g", 5, "m")
        ids = [each.correlation_id for each, _ in broker.beats]
        assert ids == list(range(HEARTBEAT_CORRELATION_IDS.start, HEARTBEAT_CORRELATION_IDS.start + len(ids)))
        client.close()


@pytest.mark.parametrize("version", range(5))
def test_an_error_is_seen_in_the_answer_of_every_version_though_nobody_reads(version: int) -> None:
    with HeartbeatBroker(heartbeat_version=version) as broker:
        client = Client(broker)
        broker.errors.extend([0, 22])
        client.begin()
        assert client.heartbeat.run(BUDGET_MS) is HeartbeatEvent.ERROR_ANSWER
        assert client.heartbeat.error_code == 22
        client.close()


def test_requests_go_on_beside_the_beats_and_each_has_its_answer(client: Client) -> None:
    client.begin(interval_ms=0.1)
    ended: list[ClientResponse] = []
    for number in range(500):
        now_ms = SYSTEM_CLOCK.monotonic_ms()
        client.poll_until(lambda: client.client.is_ready(client.node, SYSTEM_CLOCK.monotonic_ms()))
        request = HeartbeatRequest(group_id="own", generation_id=number, member_id="m")
        client.client.send(
            client.client.new_client_request(NODE_ID, request, now_ms, callback=ended.append), now_ms
        )
        client.poll_until(lambda wanted=number + 1: len(ended) == wanted)
    assert len(client.responses) > 100
    assert {each.request.correlation_id in HEARTBEAT_CORRELATION_IDS for each in client.responses} == {True}
    assert {each.request.correlation_id in HEARTBEAT_CORRELATION_IDS for each in ended} == {False}
    assert not any(each.disconnected for each in ended + client.responses)


def test_beats_are_no_requests_in_flight_and_keep_none_from_its_time(client: Client) -> None:
    client.begin()
    client.poll_until(lambda: client.responses)
    assert client.client.in_flight_request_count() == 0


def test_answers_after_the_end_are_dropped_and_the_connection_stays(
    client: Client, broker: HeartbeatBroker
) -> None:
    broker.errors.append(25)
    client.begin(interval_ms=20)
    assert client.heartbeat.run(BUDGET_MS) is HeartbeatEvent.ERROR_ANSWER
    client.heartbeat.end()
    client.begin(interval_ms=20)
    client.poll_until(lambda: client.responses)
    assert client.responses[0].message.error_code == 0
    assert not client.client.connection_failed(client.node)


def test_a_connection_that_ends_is_told_once_and_beats_begin_on_the_next(
    client: Client, broker: HeartbeatBroker
) -> None:
    client.begin()
    client.poll_until(lambda: client.responses)
    client.responses.clear()
    broker.hang_up()
    assert HeartbeatEvent.DISCONNECTED in client.heartbeat.run(BUDGET_MS)
    client.poll_until(lambda: client.responses and client.responses[-1].disconnected)
    assert [each.disconnected for each in client.responses if each.message is None] == [True]
    assert not client.begin()
    client.connect()
    client.responses.clear()
    assert client.begin()
    client.poll_until(lambda: client.responses)
    assert client.responses[0].message.error_code == 0


def test_an_answer_that_is_none_ends_the_connection(client: Client, broker: HeartbeatBroker) -> None:
    broker.raw_answer = b"\x00"
    client.begin()
    client.poll_until(lambda: client.responses)
    assert client.responses[0].disconnected
    assert client.client.connection_failed(client.node)


def test_an_answer_to_a_beat_that_nobody_has_sent_is_dropped(client: Client, broker: HeartbeatBroker) -> None:
    client.begin(interval_ms=LONG_MS)
    request = HeartbeatRequest(group_id="own", member_id="m")
    now_ms = SYSTEM_CLOCK.monotonic_ms()
    forged = client.client.new_client_request(NODE_ID, request, now_ms, callback=client.responses.append)
    forged.correlation_id = HEARTBEAT_CORRELATION_IDS.start + 7
    client.client.send(forged, now_ms)
    client.poll_until(lambda: broker.beats)
    client.client.poll(100, SYSTEM_CLOCK.monotonic_ms())
    assert client.responses == []
    assert client.client.in_flight_request_count() == 1


def test_a_throttled_beat_keeps_requests_back_but_no_beat(client: Client, broker: HeartbeatBroker) -> None:
    broker.throttle_time_ms = 60_000
    client.begin()
    client.poll_until(lambda: len(client.responses) >= 3)
    assert client.client.throttle_delay_ms(client.node, SYSTEM_CLOCK.monotonic_ms()) > 0


def test_a_connection_that_is_closed_here_is_told_by_the_next_poll(client: Client) -> None:
    client.begin()
    client.client.disconnect(NODE_ID)
    client.client.poll(0, SYSTEM_CLOCK.monotonic_ms())
    assert client.responses[-1].disconnected
    assert not client.heartbeat.is_beating


def test_a_line_that_moves_has_the_beats_of_its_last_connection_alone(client: Client) -> None:
    client.begin()
    client.poll_until(lambda: client.responses)
    other = Node(NODE_ID + 1, client.node.host, client.node.port)
    client.poll_until(lambda: client.client.ready(other, SYSTEM_CLOCK.monotonic_ms()))
    client.responses.clear()
    assert client.client.begin_heartbeats(
        other.node_id, client.heartbeat, REQUEST, 5.0, LONG_MS, client.responses.append
    )
    client.poll_until(lambda: client.responses)
    client.client.disconnect(NODE_ID)
    client.client.poll(0, SYSTEM_CLOCK.monotonic_ms())
    assert {each.request.node_id for each in client.responses} == {other.node_id}
    assert not any(each.disconnected for each in client.responses)
