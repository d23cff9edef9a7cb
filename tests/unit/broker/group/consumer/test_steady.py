"""Heartbeats that change nothing and are answered by compiled code.

The harness compares each steady answer with the result of the general code, in all tests of consumer groups.
"""

from __future__ import annotations

from typing import Any

import pytest
from model.group_harness import GROUP, NODE, REBALANCE_MS, GroupHarness

from kafkacore.broker.group.consumer._heartbeat import ConsumerHeartbeat, SteadyAnswer, encode_heartbeat
from kafkacore.broker.group.consumer.consumer_member import LEAVE_EPOCH
from kafkacore.errors import CoordinatorLoadInProgressError
from kafkacore.protocol import encode_response
from kafkacore.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

SESSION_MS = 45_000
FIELDS = {
    "group_id": GROUP,
    "member_id": "a",
    "member_epoch": 2,
    "instance_id": None,
    "rack_id": None,
    "rebalance_timeout_ms": -1,
    "subscribed_topic_names": None,
    "subscribed_topic_regex": None,
    "server_assignor": None,
    "topic_partitions": None,
    "client_id": "client",
    "client_host": "/127.0.0.1",
    "version": 1,
}


@pytest.fixture(params=[False, True], ids=["first heartbeat", "repeated heartbeat"])
def harness(request: pytest.FixtureRequest) -> GroupHarness:
    """Create a group with the member "a", which may have sent a heartbeat that changed nothing."""
    harness = GroupHarness()
    harness.topics.put("t", 4)
    harness.consumer_join("a")
    if request.param:
        assert answer(harness) is not None
    return harness


def answer(harness: GroupHarness, node_id: int = NODE, **changed: Any) -> SteadyAnswer | None:
    return harness.steady_answer(ConsumerHeartbeat(**{**FIELDS, **changed}), node_id)


@pytest.mark.parametrize("version", [0, 1])
def test_steady_answer_has_the_bytes_of_the_generated_message(harness: GroupHarness, version: int) -> None:
    steady = answer(harness, version=version)
    assert steady is not None
    generated = ConsumerGroupHeartbeatResponse(member_id="a", member_epoch=2, heartbeat_interval_ms=5000)
    for throttle_ms in (0, 77):
        steady.throttle_time_ms = generated.throttle_time_ms = throttle_ms
        ours = b"".join(map(bytes, encode_heartbeat(steady, version, 9)))
        assert ours == b"".join(map(bytes, encode_response(generated, version, 9)))


def test_steady_answer_restarts_the_session(harness: GroupHarness) -> None:
    for _ in range(3):
        harness.pass_ms(SESSION_MS - 1)
        assert answer(harness) is not None
    harness.pass_ms(SESSION_MS)
    assert harness.consumer_group.is_empty


def test_there_is_no_steady_answer_without_the_feature(harness: GroupHarness) -> None:
    assert answer(harness) is not None
    harness.features.group_version = 0
    assert answer(harness) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"group_id": "other"},
        {"group_id": ""},
        {"group_id": " "},
        {"member_id": "other"},
        {"member_id": ""},
        {"member_id": " "},
        {"member_epoch": 3},
        {"member_epoch": 1},
        {"member_epoch": 0},
        {"member_epoch": -1},
        {"member_epoch": -2},
        {"instance_id": "i"},
        {"rack_id": "r"},
        {"rebalance_timeout_ms": REBALANCE_MS},
        {"subscribed_topic_names": ["t"]},
        {"subscribed_topic_regex": "t.*"},
        {"server_assignor": "range"},
        {"topic_partitions": {}},
        {"client_id": "other"},
        {"client_host": "/127.0.0.2"},
        {"node_id": NODE + 1},
    ],
)
def test_an_unusual_heartbeat_is_left_to_the_general_code(
    harness: GroupHarness, changed: dict[str, Any]
) -> None:
    harness.pass_ms(SESSION_MS - 1)
    assert answer(harness, **changed) is None
    # The session was not restarted.
    harness.pass_ms(1)
    assert harness.consumer_group.is_empty


def test_a_heartbeat_that_must_wait_is_left_to_the_general_code(harness: GroupHarness) -> None:
    harness.log.is_holding = True
    assert answer(harness) is None
    harness.log.settle()
    assert answer(harness) is not None
    harness.log.refusal = CoordinatorLoadInProgressError()
    assert answer(harness) is None


def test_changed_topics_are_left_to_the_general_code(harness: GroupHarness) -> None:
    harness.topics.put("t", 5)
    assert answer(harness) is None


def test_a_member_that_must_give_up_partitions_is_left_to_the_general_code(harness: GroupHarness) -> None:
    harness.consumer_join("b")
    assert answer(harness) is None


def test_a_member_of_a_group_that_was_unloaded_is_left_to_the_general_code(harness: GroupHarness) -> None:
    harness.registry.remove(GROUP)
    assert answer(harness) is None


def test_a_member_is_steady_again_after_a_change(harness: GroupHarness) -> None:
    harness.consumer_join("b")
    harness.consumer_heartbeat("b", LEAVE_EPOCH)
    # The target assignment is computed at most once per second.
    harness.pass_ms(1000)
    epoch = harness.consumer_heartbeat("a", 2).got.epoch
    for _ in range(2):
        assert answer(harness, member_epoch=2) is None
        assert answer(harness, member_epoch=epoch) is not None
