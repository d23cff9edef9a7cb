"""InBandHeartbeatSender, and the thread that runs it."""

import math
import threading

import pytest
from eventually import BUDGET_MS, BUDGET_S, eventually
from model.blocking_clock import BlockingClock
from model.consumer_cluster import ModelCluster, ModelMetadata, ModelNetwork
from model.fetch_log import FetchLog
from model.group_coordinator import COORDINATOR_ID, ModelCoordinator

from kafkacore.consumer.consumer_network_client import ConsumerNetworkClient
from kafkacore.consumer.group.heartbeat import InBandHeartbeatSender
from kafkacore.consumer.group.heartbeat_thread import NAME, HeartbeatThread
from kafkacore.consumer.guard import SingleOwnerGuard
from kafkacore.consumer.timer import Timer
from kafkacore.errors import KafkaConnectionError
from kafkacore.protocol.generated.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkacore.structs import Node, TopicPartition
from kafkacore.testing import VirtualClock

NODE = Node(COORDINATOR_ID, "host0", 9092)
REQUEST = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
INTERVAL_MS, SESSION_MS, BACKOFF_MS = 3000.0, 10_000.0, 100.0


class Beating:
    """A heartbeat sender on a model cluster."""

    def __init__(self):
        self.clock = VirtualClock()
        self.cluster = ModelCluster(self.clock, {TopicPartition("a", 0): FetchLog()})
        self.cluster.coordinator = ModelCoordinator(self.cluster)
        metadata = ModelMetadata(self.cluster)
        network = ModelNetwork(self.cluster, metadata)
        self.client = ConsumerNetworkClient(network, metadata, clock=self.clock)
        self.sender = InBandHeartbeatSender(self.client, self.clock, BACKOFF_MS)
        self.answers = []

    def begin(self):
        self.sender.begin(NODE, REQUEST, INTERVAL_MS, SESSION_MS, self.answers.append)
        return self

    def turn(self, after_ms=0.0):
        self.clock.advance(after_ms)
        self.sender.turn(self.clock.monotonic_ms())
        for _ in range(3):
            self.client.poll(Timer(self.clock, 0))

    @property
    def due_ms(self):
        return self.sender.due_ms(self.clock.monotonic_ms())

    @property
    def sent(self):
        return len(self.cluster.requests_of(HeartbeatRequest))


@pytest.fixture
def beating():
    return Beating().begin()


@pytest.mark.kafka(
    "HeartbeatTest.testShouldHeartbeat",
    "HeartbeatTest.testShouldNotHeartbeat",
    "HeartbeatTest.testTimeToNextHeartbeat",
    "HeartbeatTest.testResetTimeouts",
)
def test_the_first_beat_is_due_one_interval_after_the_begin(beating):
    assert beating.due_ms == INTERVAL_MS
    beating.turn(INTERVAL_MS - 1)
    assert (beating.sent, beating.due_ms) == (0, 1)
    beating.turn(1)
    assert beating.sent == 1
    assert isinstance(beating.answers[0], HeartbeatResponse)
    assert beating.due_ms == INTERVAL_MS


def test_no_second_beat_is_sent_while_one_is_on_its_way(beating):
    beating.cluster.held.add(HeartbeatRequest)
    beating.turn(INTERVAL_MS)
    assert beating.due_ms == math.inf
    beating.turn(2 * INTERVAL_MS)
    assert beating.sent == 1


@pytest.mark.kafka("HeartbeatTest.testSessionTimeoutExpired", "HeartbeatTest.testResetSession")
def test_the_session_is_over_when_no_answer_came_for_its_time_out(beating):
    beating.turn(INTERVAL_MS)
    beating.cluster.held.add(HeartbeatRequest)
    beating.turn(SESSION_MS - 1)
    assert not beating.sender.session_expired(beating.clock.monotonic_ms())
    beating.turn(1)
    assert beating.sender.session_expired(beating.clock.monotonic_ms())
    beating.begin()
    assert not beating.sender.session_expired(beating.clock.monotonic_ms())


def test_a_beat_that_failed_is_sent_again_after_the_back_off(beating):
    beating.cluster.held.add(HeartbeatRequest)
    beating.turn(INTERVAL_MS)
    beating.cluster.down.add(COORDINATOR_ID)
    beating.turn()
    assert [type(each) for each in beating.answers] == [KafkaConnectionError]
    assert beating.due_ms == BACKOFF_MS


@pytest.mark.kafka("HeartbeatTest.testPollTimeout")
def test_there_is_no_beat_once_the_application_had_to_poll(beating):
    beating.sender.polled(beating.clock.monotonic_ms() + INTERVAL_MS)
    beating.turn(INTERVAL_MS)
    assert beating.sent == 0
    beating.sender.polled(beating.clock.monotonic_ms() + 1)
    beating.turn()
    assert beating.sent == 1


@pytest.mark.kafka("HeartbeatTest.testResetTimeouts")
def test_who_has_ended_beats_no_more_and_has_no_session(beating):
    beating.sender.end()
    assert beating.due_ms == math.inf
    beating.turn(SESSION_MS)
    assert beating.sent == 0
    assert not beating.sender.session_expired(beating.clock.monotonic_ms())


def test_an_answer_that_comes_after_the_end_is_reported_and_changes_no_times(beating):
    beating.cluster.held.add(HeartbeatRequest)
    beating.turn(INTERVAL_MS)
    beating.begin()
    due_ms = beating.due_ms
    beating.cluster.held.clear()
    beating.turn()
    assert len(beating.answers) == 1
    assert beating.due_ms == due_ms


# ---- The thread --------------------------------------------------------------------------------------------
class Turns:
    """A membership that counts its background turns."""

    commits, is_held = None, False

    def __init__(self):
        self.count = 0
        self.changed = threading.Condition()
        self.wake_background = lambda: None

    def background_turn(self, now_ms):
        with self.changed:
            self.count += 1
            self.changed.notify_all()
        return math.inf

    def await_turn(self, number):
        with self.changed:
            return self.changed.wait_for(lambda: self.count >= number, BUDGET_S)


@pytest.fixture
def turns():
    return Turns()


@pytest.fixture
def guard():
    return SingleOwnerGuard()


@pytest.fixture
def thread(turns, guard):
    heartbeats = InBandHeartbeatSender(None, BlockingClock(), BACKOFF_MS)
    made = HeartbeatThread(guard, turns, heartbeats, BlockingClock(), "g")
    yield made
    made.close(BUDGET_MS)
    assert not made.is_alive


@pytest.mark.kafka("AbstractCoordinatorTest.testPollHeartbeatAwakesHeartbeatThread")
def test_the_thread_begins_when_it_is_first_woken_and_has_a_turn_each_time(thread, turns):
    assert not thread.is_alive
    turns.wake_background()
    assert turns.await_turn(1)
    assert f"{NAME} | g" in [each.name for each in threading.enumerate()]
    for number in range(2, 5):
        turns.wake_background()
        assert turns.await_turn(number)


def test_the_thread_has_no_turn_while_somebody_is_in_the_consumer(thread, turns, guard, monkeypatch):
    heartbeats, waits = thread._heartbeats, []
    wait = heartbeats.wait
    monkeypatch.setattr(heartbeats, "wait", lambda wait_ms: (waits.append(wait_ms), wait(wait_ms)))
    with guard:
        turns.wake_background()
        eventually(lambda: len(waits) >= 2)
        assert turns.count == 0
    assert turns.await_turn(1)


@pytest.mark.kafka("ConsumerCoordinatorTest.testHeartbeatThreadClose")
def test_the_thread_does_not_outlive_its_close_and_does_not_begin_after_it(thread, turns):
    turns.wake_background()
    assert turns.await_turn(1)
    thread.close(BUDGET_MS)
    assert not thread.is_alive
    count = turns.count
    turns.wake_background()
    assert not thread.is_alive
    assert turns.count == count
