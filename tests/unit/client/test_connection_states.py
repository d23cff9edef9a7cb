"""ClusterConnectionStates without a client."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from kafkacore.client.connection_states import ClusterConnectionStates, ConnectionState
from kafkacore.client.exponential_backoff import ExponentialBackoff
from kafkacore.errors import SaslAuthenticationFailedError
from kafkacore.testing import VirtualClock


def states_with(resolver: Callable[[str, int], list[str]]) -> ClusterConnectionStates:
    clock = VirtualClock()
    return ClusterConnectionStates(
        ExponentialBackoff(clock, 100, 1000, jitter=0.0),
        ExponentialBackoff(clock, 10_000, 30_000, jitter=0.0),
        resolver,
    )


@pytest.fixture
def states() -> ClusterConnectionStates:
    return states_with(lambda host, port: ["10.0.0.1"])


def tried_addresses(states: ClusterConnectionStates, count: int) -> list[str]:
    """Return the addresses of ``count`` connection attempts, each of which is refused."""
    tried = []
    for _ in range(count):
        states.connecting(0, 0, "a", 1)
        tried.append(states.current_address(0))
        states.disconnected(0, 0)
    return tried


@pytest.mark.behaviour("ClusterConnectionStates", "a removed node is treated like a new one")
def test_an_unknown_node_can_be_connected_to_at_once(states: ClusterConnectionStates) -> None:
    assert states.can_connect(0, 0)
    assert states.connection_delay_ms(0, 0) == 0
    assert states.state(0) is None
    assert states.last_attempt_ms(0) == -math.inf


@pytest.mark.behaviour(
    "ClusterConnectionStates",
    "the back-off doubles up to its maximum; a second disconnect does not increase it",
)
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


@pytest.mark.behaviour(
    "ClusterConnectionStates",
    "the connection setup timeout grows with each failure, up to a maximum",
)
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


@pytest.mark.behaviour(
    "ClusterConnectionStates",
    "a node stays throttled until the latest throttle time ends or the node disconnects",
)
def test_an_earlier_end_of_throttling_does_not_shorten_a_later_one(states: ClusterConnectionStates) -> None:
    states.connecting(0, 0, "a", 1)
    states.ready(0)
    states.throttle(0, 500)
    states.throttle(0, 200)
    assert not states.is_ready(0, 499)
    assert states.is_ready(0, 500)


@pytest.mark.behaviour(
    "ClusterConnectionStates",
    "a node with a new host name starts without back-off, and the new name is resolved",
)
def test_a_node_that_has_moved_begins_anew(states: ClusterConnectionStates) -> None:
    states.connecting(0, 0, "a", 1)
    states.disconnected(0, 0)
    states.connecting(0, 10, "b", 1)
    assert states.state(0) is ConnectionState.CONNECTING
    states.disconnected(0, 10)
    assert states.connection_delay_ms(0, 10) == 100


@pytest.mark.behaviour(
    "ClusterConnectionStates",
    "the back-off doubles up to its maximum; a second disconnect does not increase it",
)
def test_back_off_does_not_overflow() -> None:
    backoff = ExponentialBackoff(VirtualClock(), 100, 1000)
    assert 800 <= backoff.backoff_ms(100_000) <= 1000
    assert ExponentialBackoff(VirtualClock(), 100, 50).backoff_ms(0) <= 50
    assert ExponentialBackoff(VirtualClock(), 0, 0).backoff_ms(3) == 0


# ---- States of one connection ------------------------------------------------------------------------------


@pytest.mark.behaviour("ClusterConnectionStates", "a connection passes through its states in order")
def test_a_connection_goes_from_connecting_over_version_checking_to_ready_and_ends(
    states: ClusterConnectionStates,
) -> None:
    seen = []

    def look() -> None:
        seen.append((states.state(0), states.can_connect(0, 0), states.is_ready(0, 0)))

    states.connecting(0, 0, "a", 1)
    look()
    states.checking_api_versions(0)
    look()
    states.ready(0)
    look()
    assert states.has_ready_nodes(0)
    states.disconnected(0, 0)
    look()
    assert seen == [
        (ConnectionState.CONNECTING, False, False),
        (ConnectionState.CHECKING_API_VERSIONS, False, False),
        (ConnectionState.READY, False, True),
        (ConnectionState.DISCONNECTED, False, False),
    ]
    assert states.is_backing_off(0, 99)
    assert not states.is_backing_off(0, 100)
    assert states.can_connect(0, 100)
    assert not states.has_ready_nodes(100)


@pytest.mark.behaviour("ClusterConnectionStates", "nodes have independent states")
def test_nodes_do_not_share_their_state(states: ClusterConnectionStates) -> None:
    states.connecting(0, 0, "a", 1)
    states.connecting(1, 0, "b", 1)
    states.ready(0)
    states.disconnected(1, 0)
    states.disconnected(0, 50)
    assert states.connection_delay_ms(1, 50) == 50
    assert states.connection_delay_ms(0, 50) == 100
    states.connecting(1, 100, "b", 1)
    assert states.is_disconnected(0)
    assert states.state(1) is ConnectionState.CONNECTING
    assert states.node_ids() == [0, 1]


@pytest.mark.behaviour("ClusterConnectionStates", "a failed authentication is remembered until a success")
def test_a_failed_authentication_is_kept_until_a_connection_is_ready_and_backs_off(
    states: ClusterConnectionStates,
) -> None:
    error = SaslAuthenticationFailedError("who are you")
    states.connecting(0, 0, "a", 1)
    states.checking_api_versions(0)
    states.authentication_failed(0, 0, error)
    assert states.state(0) is ConnectionState.AUTHENTICATION_FAILED
    assert states.is_disconnected(0)
    assert states.authentication_error(0) is error
    assert not states.can_connect(0, 99)
    assert states.can_connect(0, 100)
    states.connecting(0, 100, "a", 1)
    assert states.authentication_error(0) is error
    states.ready(0)
    assert states.authentication_error(0) is None


@pytest.mark.behaviour("ClusterConnectionStates", "a removed node is treated like a new one")
def test_a_removed_node_is_unknown_again(states: ClusterConnectionStates) -> None:
    states.connecting(0, 0, "a", 1)
    states.disconnected(0, 0)
    states.remove(0)
    assert states.can_connect(0, 0)
    assert states.state(0) is None
    assert states.last_attempt_ms(0) == -math.inf
    states.remove(0)


@pytest.mark.behaviour(
    "ClusterConnectionStates", "a connection counts as being prepared until it is ready or fails"
)
def test_only_a_connection_on_its_way_is_being_prepared(states: ClusterConnectionStates) -> None:
    seen = [states.is_preparing(0)]
    states.connecting(0, 0, "a", 1)
    seen.append(states.is_preparing(0))
    states.checking_api_versions(0)
    seen.append(states.is_preparing(0))
    states.ready(0)
    seen.append(states.is_preparing(0))
    states.disconnected(0, 0)
    seen.append(states.is_preparing(0))
    assert seen == [False, True, True, False, False]


@pytest.mark.behaviour(
    "ClusterConnectionStates",
    "the back-off doubles up to its maximum; a second disconnect does not increase it",
)
def test_back_off_between_tries_doubles_to_its_maximum_and_begins_anew_once_ready(
    states: ClusterConnectionStates,
) -> None:
    delays = []
    for _ in range(6):
        states.connecting(0, 0, "a", 1)
        states.disconnected(0, 0)
        delays.append(states.connection_delay_ms(0, 0))
    assert delays == [100, 200, 400, 800, 1000, 1000]
    states.connecting(0, 0, "a", 1)
    states.ready(0)
    states.disconnected(0, 0)
    assert states.connection_delay_ms(0, 0) == 100


@pytest.mark.behaviour("ClusterConnectionStates", "only connections whose setup takes too long time out")
def test_only_set_ups_that_took_too_long_time_out(states: ClusterConnectionStates) -> None:
    states.connecting(0, 0, "a", 1)
    states.connecting(1, 1000, "b", 1)
    states.connecting(2, 0, "c", 1)
    states.ready(2)
    assert states.next_setup_deadline_ms() == 10_000
    assert states.nodes_with_setup_timeout(9999) == []
    assert states.nodes_with_setup_timeout(10_000) == [0]
    assert states.nodes_with_setup_timeout(11_000) == [0, 1]
    states.disconnected(0, 11_000)
    assert states.nodes_with_setup_timeout(11_000) == [1]


@pytest.mark.behaviour(
    "ClusterConnectionStates",
    "a node stays throttled until the latest throttle time ends or the node disconnects",
)
def test_a_throttled_node_is_waited_for_as_long_as_it_is_connected(states: ClusterConnectionStates) -> None:
    states.connecting(0, 0, "a", 1)
    states.checking_api_versions(0)
    states.ready(0)
    states.throttle(0, 300)
    assert (states.throttle_delay_ms(0, 100), states.poll_delay_ms(0, 100)) == (200, 200)
    assert states.throttle_delay_ms(0, 300) == 0
    states.disconnected(0, 100)
    assert states.poll_delay_ms(0, 100) == 100
    states.throttle(7, 300)
    assert states.throttle_delay_ms(7, 0) == 0


# ---- Addresses ---------------------------------------------------------------------------------------------


@pytest.mark.behaviour(
    "ClusterConnectionStates", "a host with a single address is always retried at that address"
)
def test_a_single_address_is_tried_again_and_again() -> None:
    assert tried_addresses(states_with(lambda host, port: ["10.0.0.1"]), 3) == ["10.0.0.1"] * 3


@pytest.mark.behaviour(
    "ClusterConnectionStates", "each address of a host is tried once before the name is resolved again"
)
def test_every_address_has_its_turn_before_dns_is_asked_again() -> None:
    asked = []

    def resolver(host: str, port: int) -> list[str]:
        asked.append((host, port))
        return ["10.0.0.1", "10.0.0.2"]

    assert tried_addresses(states_with(resolver), 4) == ["10.0.0.1", "10.0.0.2"] * 2
    assert asked == [("a", 1)] * 2


@pytest.mark.behaviour(
    "ClusterConnectionStates", "the addresses of a host are resolved again after its connection has ended"
)
def test_addresses_of_a_host_that_has_moved_are_asked_for_once_its_connection_ends() -> None:
    answers = iter([["10.0.0.1", "10.0.0.2"], ["10.0.1.1", "10.0.1.2"]])
    states = states_with(lambda host, port: next(answers))
    states.connecting(0, 0, "a", 1)
    assert states.current_address(0) == states.current_address(0) == "10.0.0.1"
    states.ready(0)
    assert states.connected_address(0) == "10.0.0.1"
    states.disconnected(0, 0)
    assert states.connected_address(0) is None
    states.connecting(0, 0, "a", 1)
    assert states.current_address(0) == "10.0.1.1"


@pytest.mark.behaviour(
    "ClusterConnectionStates",
    "the address tried last is not tried first again if there are others",
)
def test_the_address_whose_connection_has_just_ended_is_not_the_first_to_be_tried_again() -> None:
    answers = iter([["10.0.0.1", "10.0.0.2"], ["10.0.0.1", "10.0.0.2"], ["10.0.0.2"]])
    states = states_with(lambda host, port: next(answers))
    for expected in ("10.0.0.1", "10.0.0.2", "10.0.0.2"):
        states.connecting(0, 0, "a", 1)
        assert states.current_address(0) == expected
        states.checking_api_versions(0)
        states.ready(0)
        states.disconnected(0, 0)


@pytest.mark.behaviour(
    "ClusterConnectionStates",
    "the address tried last is not tried first again if there are others",
)
def test_an_address_is_not_tried_twice_in_a_row_when_there_are_others() -> None:
    answers = iter([["10.0.0.1"], ["10.0.0.1", "10.0.0.2"], ["10.0.0.1", "10.0.0.2"]])
    assert tried_addresses(states_with(lambda host, port: next(answers)), 3) == [
        "10.0.0.1", "10.0.0.2", "10.0.0.1",
    ]  # fmt: skip


@pytest.mark.behaviour(
    "ClusterConnectionStates",
    "a node with a new host name starts without back-off, and the new name is resolved",
)
def test_a_node_with_a_new_host_name_is_asked_for_by_that_name() -> None:
    states = states_with(lambda host, port: [f"address of {host}", "another"])
    states.connecting(0, 0, "a", 1)
    assert states.current_address(0) == "address of a"
    states.connecting(0, 0, "b", 1)
    assert states.current_address(0) == "address of b"
