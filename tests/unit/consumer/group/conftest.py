"""A group member on a model cluster with a virtual clock and a coordinator that follows the protocol."""

from contextlib import nullcontext

import pytest
from model.consumer_cluster import ModelCluster, ModelMetadata, ModelNetwork
from model.fetch_log import FetchLog
from model.group_coordinator import ModelCoordinator, RecordingListener

from kafkacore.consumer.consumer_network_client import ConsumerNetworkClient
from kafkacore.consumer.group.factory import new_membership
from kafkacore.consumer.group.heartbeat import InBandHeartbeatSender
from kafkacore.consumer.group_metrics import CountedGroupMetrics
from kafkacore.consumer.kafka_consumer import KafkaConsumer
from kafkacore.consumer.subscription_state import SubscriptionState
from kafkacore.consumer.timer import Timer
from kafkacore.coordinator.assignors import RebalanceProtocol
from kafkacore.coordinator.assignors.range import RangePartitionAssignor
from kafkacore.metrics import Metrics
from kafkacore.structs import TopicPartition
from kafkacore.testing import VirtualClock


class Member:
    """A group membership with all the parts that it depends on."""

    def __init__(self, topics, node_count=1, commits=None, released=nullcontext, **configs):
        self.clock = VirtualClock()
        logs = {
            TopicPartition(topic, each): FetchLog()
            for topic, count in topics.items()
            for each in range(count)
        }
        self.cluster = ModelCluster(self.clock, logs, node_count=node_count)
        self.group = self.cluster.coordinator = ModelCoordinator(self.cluster)
        self.metadata = ModelMetadata(self.cluster)
        self.network = ModelNetwork(self.cluster, self.metadata)
        self.config = dict(KafkaConsumer.DEFAULT_CONFIG) | {"group_id": "g"} | configs
        self.client = ConsumerNetworkClient(
            self.network,
            self.metadata,
            clock=self.clock,
            retry_backoff_ms=self.config["retry_backoff_ms"],
            request_timeout_ms=self.config["request_timeout_ms"],
        )
        self.subscriptions = SubscriptionState()
        self.listener = RecordingListener()
        self.assignment_changes = 0
        self.registry = Metrics(clock=self.clock)
        self.metrics = CountedGroupMetrics(self.registry, lambda: self.assigned)
        self.heartbeats = InBandHeartbeatSender(
            self.client, self.clock, self.config["retry_backoff_ms"], self.metrics
        )
        self.membership = new_membership(
            self.config,
            self.client,
            self.metadata,
            self.subscriptions,
            self.clock,
            released=released,
            on_assignment_changed=self._assignment_changed,
            heartbeats=self.heartbeats,
            metrics=self.metrics,
        )
        self.membership.commits = commits

    def _assignment_changed(self):
        self.assignment_changes += 1

    # ---- Actions of a consumer -----------------------------------------------------------------------------
    def subscribe(self, *topics, pattern=None):
        self.subscriptions.subscribe(topics, pattern, self.listener)
        self.membership.subscription_changed()
        return self

    def poll(self, timeout_ms=10_000):
        """Run turns, with network polls in between, until the member is active or the timeout expires."""
        timer = Timer(self.clock, timeout_ms)
        while not self.membership.poll():
            if timer.expired:
                # Even a poll with a timeout of 0 sends the requests that have just been queued.
                self.client.poll(timer)
                return self.membership.poll()
            wait_ms = min(timer.remaining_ms, self.membership.time_to_next_poll_ms(self.clock.monotonic_ms()))
            self.client.poll(Timer(self.clock, wait_ms))
        return True

    def turn(self, timeout_ms=0):
        """Run one turn as the engine does: a non-blocking membership poll, then a network poll."""
        active = self.membership.poll()
        wait_ms = min(timeout_ms, self.membership.time_to_next_poll_ms(self.clock.monotonic_ms()))
        self.client.poll(Timer(self.clock, wait_ms))
        return active

    def join(self, *topics, **options):
        """Subscribe, join the group, and clear the listener's recorded calls."""
        self.subscribe(*topics, **options)
        assert self.poll(), "the member did not join in time"
        self.listener.take()
        return self

    def background(self, duration_ms, step_ms=100.0):
        """Run the heartbeat thread's work for a time in which the application does not poll."""
        end_ms = self.clock.monotonic_ms() + duration_ms
        while (now_ms := self.clock.monotonic_ms()) < end_ms:
            wait_ms = self.membership.background_turn(now_ms)
            self.clock.advance(max(min(wait_ms, step_ms, end_ms - now_ms), 1.0))

    @property
    def assigned(self):
        return self.subscriptions.assigned_partitions()

    @property
    def state(self):
        return self.membership.state

    def sent(self, kind):
        return self.cluster.requests_of(kind)


@pytest.fixture
def make_member():
    """Return a function ``make_member({"a": 2}, **configs)`` that creates a :class:`Member`."""
    return lambda topics=None, **options: Member({"a": 2} if topics is None else topics, **options)


class Cooperative(RangePartitionAssignor):
    """A cooperative assignor that returns the assignment set by the test, ignoring current owners."""

    name = "scripted"

    def __init__(self):
        self.gives = None
        self.assignments = []
        self.error = None

    def supported_protocols(self):
        return [RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE]

    def subscription_user_data(self, topics):
        return b"about " + ",".join(sorted(topics)).encode()

    def assign(self, partitions, subscriptions):
        self.partitions, self.subscriptions = partitions, subscriptions
        return super().assign(partitions, subscriptions) if self.gives is None else self.gives

    def on_assignment(self, assignment, metadata):
        self.assignments.append((set(assignment.partitions), metadata))
        if self.error is not None:
            raise self.error


@pytest.fixture
def assignor():
    return Cooperative()


@pytest.fixture
def cooperative(make_member, assignor):
    """Return a member that keeps its partitions through rebalances."""
    return make_member({"a": 3, "b": 1}, partition_assignment_strategy=[assignor])
