"""Heartbeats by NativeHeartbeatSender, with a broker on a real socket."""

import pytest
from eventually import BUDGET_MS, eventually
from model.heartbeat_broker import NODE_ID, HeartbeatBroker

from kafkacore.client import bootstrap_client
from kafkacore.client.config import resolve
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.consumer.consumer_network_client import ConsumerNetworkClient
from kafkacore.consumer.group.native_heartbeat_sender import READ_DELAY_MS, NativeHeartbeatSender
from kafkacore.consumer.group_metrics import NoGroupMetrics
from kafkacore.errors import KafkaConnectionError
from kafkacore.network.heartbeat_event import HeartbeatEvent
from kafkacore.protocol.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kafkacore.protocol.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkacore.structs import Node

LONG_MS = 120_000.0
REQUEST = HeartbeatRequest(group_id="g", generation_id=5, member_id="m")
CONSUMER_REQUEST = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=5)


class Counted(NoGroupMetrics):
    def __init__(self):
        self.sent = self.answered = 0

    def heartbeat_sent(self, now_ms):
        self.sent += 1

    def heartbeat_answered(self, latency_ms, now_ms):
        assert latency_ms >= 0
        self.answered += 1


class Sender:
    """The heartbeat sender as a consumer uses it, with the responses that it reported."""

    def __init__(self, broker):
        host, port = broker.address
        network, metadata = bootstrap_client(resolve({}, {"bootstrap_servers": f"{host}:{port}"}))
        self.client = ConsumerNetworkClient(network, metadata, clock=SYSTEM_CLOCK)
        self.metrics = Counted()
        self.heartbeats = NativeHeartbeatSender(self.client, SYSTEM_CLOCK, 10.0, self.metrics)
        self.node = Node(NODE_ID, host, port)
        self.answers = []

    def connect(self):
        # No metadata request is in flight when a test counts requests.
        self.poll_until(lambda: not self.client.client.metadata.fetch().is_bootstrap)
        self.poll_until(lambda: self.client.client.ready(self.node, SYSTEM_CLOCK.monotonic_ms()))

    def begin(self, interval_ms=5.0, session_timeout_ms=LONG_MS, request=REQUEST):
        self.heartbeats.begin(self.node, request, interval_ms, session_timeout_ms, self.answers.append)

    def poll_until(self, condition):
        def step() -> None:
            self.heartbeats.turn(SYSTEM_CLOCK.monotonic_ms())
            self.client.poll_no_wakeup(5)

        eventually(condition, step=step)

    def codes(self):
        return [each.error_code for each in self.answers if isinstance(each, HeartbeatResponse)]

    def close(self):
        self.heartbeats.close()
        self.client.close()


@pytest.fixture
def broker():
    with HeartbeatBroker() as started:
        yield started


@pytest.fixture
def sender(broker):
    made = Sender(broker)
    yield made
    made.close()


def test_on_the_coordinators_connection_the_line_beats_alone(sender, broker):
    sender.connect()
    sender.begin()
    assert sender.heartbeats.is_native
    assert sender.heartbeats.due_ms(SYSTEM_CLOCK.monotonic_ms()) == float("inf")
    sender.poll_until(lambda: len(sender.answers) >= 3)
    assert set(sender.codes()) == {0}
    assert sender.metrics.sent == sender.metrics.answered == len(sender.answers)
    assert sender.client.pending_request_count() == 0


def test_reads_are_due_soon_after_each_heartbeat(sender, broker):
    assert sender.heartbeats.read_due_ms(0) == float("inf")
    sender.connect()
    sender.begin(interval_ms=LONG_MS)
    now_ms = SYSTEM_CLOCK.monotonic_ms()
    assert LONG_MS / 2 < sender.heartbeats.read_due_ms(now_ms) <= LONG_MS + READ_DELAY_MS
    sender.begin()
    eventually(lambda: broker.beats)
    assert sender.heartbeats.read_due_ms(SYSTEM_CLOCK.monotonic_ms()) == READ_DELAY_MS
    sender.heartbeats.end()
    assert sender.heartbeats.read_due_ms(SYSTEM_CLOCK.monotonic_ms()) == float("inf")


def test_without_a_connection_a_request_makes_it_and_asks_at_once(sender, broker):
    sender.begin(interval_ms=LONG_MS)
    assert not sender.heartbeats.is_native
    assert sender.heartbeats.due_ms(SYSTEM_CLOCK.monotonic_ms()) == 0
    sender.poll_until(lambda: sender.answers)
    assert sender.codes() == [0]
    assert sender.heartbeats.is_native
    assert len(broker.beats) == 1


def test_where_no_line_can_be_beats_are_requests_at_their_times(sender, broker, monkeypatch):
    sender.connect()
    monkeypatch.setattr(sender.client, "begin_heartbeats", lambda *_: False)
    begun_ms = SYSTEM_CLOCK.monotonic_ms()
    sender.begin(interval_ms=20)
    # The first heartbeat is not due yet, because there is a connection and the session is fresh.
    assert sender.heartbeats.due_ms(begun_ms) > 0
    sender.poll_until(lambda: len(sender.answers) == 3)
    assert not sender.heartbeats.is_native
    assert not sender.heartbeats.session_expired(SYSTEM_CLOCK.monotonic_ms())
    assert sender.heartbeats.session_expired(SYSTEM_CLOCK.monotonic_ms() + LONG_MS)


def test_a_lost_connection_is_told_as_the_error_that_it_is(sender, broker):
    sender.connect()
    sender.begin()
    sender.poll_until(lambda: sender.answers)
    broker.hang_up()
    sender.poll_until(lambda: isinstance(sender.answers[-1], KafkaConnectionError))


def test_nothing_is_told_after_the_end_and_of_what_was_begun_before(sender, broker):
    sender.connect()
    broker.errors.append(25)
    sender.begin(interval_ms=20)
    responses = []
    eventually(lambda: broker.beats)
    sender.heartbeats.end()
    sender.heartbeats.begin(sender.node, REQUEST, 5.0, LONG_MS, responses.append)
    sender.poll_until(lambda: len(responses) >= 2)
    assert sender.answers == []
    assert {each.error_code for each in responses} == {0}


@pytest.mark.kafka("HeartbeatTest.testSessionTimeoutExpired")
def test_a_coordinator_that_says_nothing_is_silent_past_the_session(sender, broker):
    sender.connect()
    broker.is_silent = True
    sender.begin(interval_ms=10)
    assert not sender.heartbeats.session_expired(SYSTEM_CLOCK.monotonic_ms())
    # Another session, because this one may expire before the next line.
    sender.begin(interval_ms=10, session_timeout_ms=100)
    sender.heartbeats.wait(BUDGET_MS)
    assert sender.heartbeats.session_expired(SYSTEM_CLOCK.monotonic_ms())
    sender.heartbeats.end()
    assert not sender.heartbeats.session_expired(SYSTEM_CLOCK.monotonic_ms())


def test_a_beat_without_an_answer_is_missed_in_the_time_of_a_request(sender, broker):
    sender.connect()
    broker.is_silent = True
    sender.client.request_timeout_ms = 150.0
    begun_ms = SYSTEM_CLOCK.monotonic_ms()
    sender.begin(interval_ms=50, session_timeout_ms=LONG_MS)
    sender.heartbeats.wait(BUDGET_MS)
    assert sender.heartbeats.session_expired(SYSTEM_CLOCK.monotonic_ms())
    # The interval before the first heartbeat (50 ms) and its request timeout (150 ms) have passed.
    assert SYSTEM_CLOCK.monotonic_ms() - begun_ms >= 200


@pytest.mark.kafka("HeartbeatTest.testPollTimeout")
def test_no_beat_comes_behind_the_poll_deadline(sender, broker):
    sender.connect()
    sender.heartbeats.polled(SYSTEM_CLOCK.monotonic_ms() - 1)
    sender.begin(interval_ms=5)
    sender.heartbeats.wait(100)
    sender.heartbeats.wait(100)
    assert broker.beats == []
    sender.heartbeats.polled(SYSTEM_CLOCK.monotonic_ms() + LONG_MS)
    sender.poll_until(lambda: sender.answers)


def test_a_wakeup_ends_the_wait(sender):
    sender.heartbeats.wakeup()
    sender.heartbeats.wait(float("inf"))


def test_heartbeats_of_kip_848_are_sent_natively_too(sender, broker):
    sender.connect()
    sender.begin(request=CONSUMER_REQUEST, session_timeout_ms=float("inf"))
    assert sender.heartbeats.is_native
    sender.poll_until(lambda: len(sender.answers) >= 3)
    assert all(isinstance(each, ConsumerGroupHeartbeatResponse) for each in sender.answers)
    assert {(each.error_code, each.member_epoch) for each in sender.answers} == {(0, 5)}


def test_an_error_of_kip_848_is_found_without_reading_it(sender, broker):
    sender.connect()
    broker.errors.append(110)
    sender.begin(request=CONSUMER_REQUEST)
    native = sender.heartbeats._heartbeat
    eventually(lambda: HeartbeatEvent.ERROR_ANSWER in native.run(BUDGET_MS))
    assert native.error_code == 110
    sender.poll_until(lambda: sender.answers)
    assert sender.answers[0].error_code == 110


def test_a_response_that_ends_before_it_is_read_counts_as_dropped(sender, broker):
    sender.connect()
    sender.begin()
    sender.poll_until(lambda: sender.answers)
    broker.is_silent = True
    sent = sender.heartbeats._heartbeat.sent_count
    eventually(lambda: sender.heartbeats._heartbeat.sent_count > sent)
    sender.heartbeats.end()
    assert sender.heartbeats.has_dropped_answer
    sender.begin(interval_ms=LONG_MS)
    sender.heartbeats.end()
    assert not sender.heartbeats.has_dropped_answer
