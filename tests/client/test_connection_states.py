"""ClusterConnectionStates on its own."""

from __future__ import annotations

import math

import pytest

from kafkacore.client.connection_states import ClusterConnectionStates, ConnectionState
from kafkacore.client.exponential_backoff import ExponentialBackoff
from kafkacore.testing import VirtualClock


@pytest.fixture
def states() -> ClusterConnectionStates:
    clock = VirtualClock()
    return ClusterConnectionStates(
        ExponentialBackoff(clock, 100, 1000, jitter=0.0),
        ExponentialBackoff(clock, 10_000, 30_000, jitter=0.0),
        lambda host, port: ["10.0.0.1"],
    )


def test_an_unknown_node_can_be_connected_to_at_once(states: ClusterConnectionStates) -> None:
    assert states.can_connect(0, 0)
    assert states.connection_delay_ms(0, 0) == 0
    assert states.state(0) is None
    assert states.last_attempt_ms(0) == -math.inf


def test_a_second_end_of_one_connection_changes_nothing(states: ClusterConnectionStates) -> None:
    states.connecting(0, 0, "a", 1)
    states.disconnected(0, 10)
    assert states.connection_delay_ms(0, 10) == 100
    states.disconnected(0, 50)
    states.disconnected(0, 60)
    assert states.connection_delay_ms(0, 60) == 50
    states.connecting(0, 200, "a", 1)
    states.disconnected(0, 200)
    assert states.connection_delay_ms(0, 200) == 200


def test_the_set_up_time_out_grows_with_failed_connects_and_is_capped(
    states: ClusterConnectionStates,
) -> None:
    times = []
    for _ in range(4):
        states.connecting(0, 0, "a", 1)
        times.append(states.setup_deadline_ms(0))
        states.disconnected(0, 0)
    assert times == [10_000, 20_000, 30_000, 30_000]
    states.connecting(0, 0, "a", 1)
    states.checking_api_versions(0)
    assert states.nodes_with_setup_timeout(30_000) == [0]
    states.ready(0)
    assert states.setup_deadline_ms(0) == math.inf
    states.disconnected(0, 0)
    states.connecting(0, 0, "a", 1)
    assert states.setup_deadline_ms(0) == 10_000


def test_an_earlier_end_of_throttling_does_not_shorten_a_later_one(states: ClusterConnectionStates) -> None:
    states.connecting(0, 0, "a", 1)
    states.ready(0)
    states.throttle(0, 500)
    states.throttle(0, 200)
    assert not states.is_ready(0, 499)
    assert states.is_ready(0, 500)


def test_a_node_that_has_moved_begins_anew(states: ClusterConnectionStates) -> None:
    states.connecting(0, 0, "a", 1)
    states.disconnected(0, 0)
    states.connecting(0, 10, "b", 1)
    assert states.state(0) is ConnectionState.CONNECTING
    states.disconnected(0, 10)
    assert states.connection_delay_ms(0, 10) == 100


def test_back_off_does_not_overflow() -> None:
    backoff = ExponentialBackoff(VirtualClock(), 100, 1000)
    assert 800 <= backoff.backoff_ms(100_000) <= 1000
    assert ExponentialBackoff(VirtualClock(), 100, 50).backoff_ms(0) <= 50
    assert ExponentialBackoff(VirtualClock(), 0, 0).backoff_ms(3) == 0
