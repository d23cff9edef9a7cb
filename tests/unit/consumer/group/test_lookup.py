"""Coordinator discovery: finding the group's coordinator, losing it, and looking it up again."""

from itertools import pairwise

import pytest

from kafkacore.consumer.group.generation import MemberState
from kafkacore.consumer.timer import Timer
from kafkacore.errors import GroupAuthorizationFailedError
from kafkacore.protocol.generated.find_coordinator import FindCoordinatorRequest
from kafkacore.protocol.generated.heartbeat import HeartbeatRequest
from kafkacore.protocol.generated.join_group import JoinGroupRequest

NOT_AVAILABLE, UNAUTHORIZED = 15, 30


@pytest.mark.kafka("AbstractCoordinatorTest.testCoordinatorDiscoveryExponentialBackoff")
@pytest.mark.behaviour(
    "AbstractCoordinator",
    "the coordinator lookup backs off exponentially, and is repeated after a disconnect",
)
def test_discovery_backs_off_exponentially_with_jitter(make_member):
    member = make_member().subscribe("a")
    member.group.errors[FindCoordinatorRequest].extend([NOT_AVAILABLE] * 5)
    times = []
    answer = member.group._find

    def timed(request, code):
        times.append(member.clock.monotonic_ms())
        return answer(request, code)

    member.group._find = timed
    assert member.poll(60_000)
    gaps = [after - before for before, after in pairwise(times)]
    for gap, expected in zip(gaps, [100, 200, 400, 800, 1000], strict=True):
        assert 0.8 * expected <= gap <= 1.2 * expected + 20
    assert len({gap / expected for gap, expected in zip(gaps, [100, 200, 400, 800, 1000], strict=True)}) > 1


@pytest.mark.kafka("ConsumerCoordinatorTest.testCoordinatorDisconnect")
@pytest.mark.behaviour(
    "AbstractCoordinator",
    "the coordinator lookup backs off exponentially, and is repeated after a disconnect",
)
def test_a_coordinator_whose_connection_ends_is_looked_for_again(make_member):
    member = make_member().join("a")
    before = len(member.sent(FindCoordinatorRequest))
    with member.group.lost():
        member.client.disconnect_async(member.membership.coordinator())
        member.background(3500)
        assert member.membership.coordinator() is None
        assert member.poll(), "the member must keep its partitions"
    member.background(2000)
    assert member.membership.coordinator() is not None
    assert len(member.sent(FindCoordinatorRequest)) > before
    assert member.state is MemberState.STABLE
    assert len(member.sent(JoinGroupRequest)) == 2


@pytest.mark.kafka("ConsumerCoordinatorTest.testGroupDescribeUnauthorized")
@pytest.mark.behaviour(
    "AbstractCoordinator",
    "fatal errors are raised; others are retried after a back-off until the timeout",
)
def test_no_permission_for_the_group_is_raised_and_tried_again_when_asked(make_member):
    member = make_member().subscribe("a")
    member.group.errors[FindCoordinatorRequest].append(UNAUTHORIZED)
    with pytest.raises(GroupAuthorizationFailedError, match="'g'"):
        member.poll()
    assert member.poll()


@pytest.mark.behaviour(
    "AbstractCoordinator",
    "fatal errors are raised; others are retried after a back-off until the timeout",
)
def test_a_coordinator_that_cannot_be_found_ends_with_the_time(make_member):
    member = make_member().subscribe("a")
    member.cluster.down.add(0)
    assert not member.poll(700)
    member.cluster.down.clear()
    assert member.poll()


@pytest.mark.kafka("AbstractCoordinatorTest.testLookupCoordinator")
@pytest.mark.behaviour(
    "AbstractCoordinator",
    "the coordinator lookup backs off exponentially, and is repeated after a disconnect",
)
def test_a_lookup_that_others_wait_for_is_one_request(make_member):
    member = make_member()
    member.poll(0)
    first, second = member.membership.lookup_coordinator(), member.membership.lookup_coordinator()
    assert first is second
    member.client.poll_until(first, Timer(member.clock, 1000))
    assert first.succeeded()
    assert len(member.sent(FindCoordinatorRequest)) == 1
    assert member.membership.lookup_coordinator().succeeded()


@pytest.mark.parametrize(
    "where", [{"node_id": -1}, {"host": ""}, {"port": 0}, {"port": 65_536}, {"port": -1}, {"key": "other"}]
)
def test_a_coordinator_that_is_no_node_is_asked_for_again(make_member, where):
    member = make_member().subscribe("a")
    find = member.group._find

    def broken_once(request, code):
        answer = find(request, code)
        for field, value in where.items():
            setattr(answer.coordinators[0], field, value)
        member.group._find = find
        return answer

    member.group._find = broken_once
    assert member.poll()
    assert len(member.sent(FindCoordinatorRequest)) == 2


def test_heartbeats_go_to_the_new_coordinator_whoever_noticed_that_the_old_one_was_lost(make_member):
    member = make_member(node_count=2).join("a")
    old = member.group.connection_id
    member.cluster.down.add(old)
    # A poll for records notices the disconnect; no heartbeat is in flight.
    member.network.disconnect(old)
    member.network.failed.add(old)
    member.group.node_id = 1
    end_ms = member.clock.monotonic_ms() + 8000
    while member.clock.monotonic_ms() < end_ms:
        member.turn(200)
        member.clock.advance(10)
    beats = [node_id for node_id, each in member.cluster.requests if isinstance(each, HeartbeatRequest)]
    assert beats
    assert set(beats) == {member.group.connection_id}
    assert len(member.sent(JoinGroupRequest)) == 2
