"""Plans of reassignments: what a file moves, what it must contain, and when it is complete."""

import json

import pytest

from kafkacore.cli.admin.log_dir_moves import LogDirState
from kafkacore.cli.admin.reassign import Move, planned, proposed, status
from kafkacore.cli.admin.reassignment_file import assignment_json, read_assignment, read_topics
from kafkacore.cli.common import CommandError
from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import TopicPartition, TopicPartitionReplica
from kafkacore.testing import VirtualClock

ORDERS = TopicPartition("orders", 0)


@pytest.fixture
def file(tmp_path):
    def write(**more):
        path = tmp_path / "moves.json"
        path.write_text(json.dumps({"partitions": [{"topic": "orders", "partition": 0, **more}]}))
        return path

    return write


def test_plan_names_the_brokers_that_gain_and_lose_replicas(admin, arguments, file):
    admin.add_topic("orders", (0, 5))
    admin.replicas[ORDERS] = [1, 2]
    wanted = read_assignment(file(replicas=[3, 2], log_dirs=["any", "any"])).replicas
    moves = planned(admin, arguments, wanted)
    assert moves == [Move("orders", 0, [1, 2], [3, 2], adding=[3], removing=[1])]


@pytest.mark.parametrize(
    ("replicas", "partition", "sentence"),
    [([9], 0, "brokers 9 do not exist"), ([1], 4, "orders-4 does not exist: the topic has 1 partitions")],
)
def test_what_the_cluster_does_not_have_is_named(admin, arguments, replicas, partition, sentence):
    admin.add_topic("orders", (0, 5))
    with pytest.raises(CommandError, match=sentence):
        planned(admin, arguments, {TopicPartition("orders", partition): replicas})


@pytest.mark.parametrize(
    "more",
    [{}, {"replicas": []}, {"replicas": ["1"]}, {"replicas": [1, 1]}, {"replicas": [-1]},
     {"replicas": [True]}, {"replicas": [2**31]}, {"replicas": [1], "log_dirs": ["data"]},
     {"replicas": [1], "log_dirs": ["/a", "/b"]}, {"replicas": [1], "log_dirs": "any"}],
)  # fmt: skip
def test_file_with_invalid_replicas_is_refused(file, more):
    with pytest.raises(KafkaConfigurationError, match=r"replicas in|log_dirs in"):
        read_assignment(file(**more))


@pytest.mark.parametrize(
    ("replicas", "in_progress", "expected"),
    [([2, 1], {}, "complete"), ([1, 2], {}, "different"), ([2, 1], {ORDERS: ...}, "in progress")],
)
def test_reassignment_is_complete_with_the_replicas_in_order(replicas, in_progress, expected):
    assert status(Move("orders", 0, replicas, [2, 1], [], []), in_progress, {}, {}) == expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [(LogDirState("/a", None), "complete"), (LogDirState("/b", "/a"), "in progress"),
     (LogDirState("/b", None), "different"), (LogDirState(), "different")],
)  # fmt: skip
def test_reassignment_is_complete_with_the_replicas_in_their_directories(state, expected):
    replica = TopicPartitionReplica("orders", 0, 1)
    assert status(Move("orders", 0, [1], [1], [], []), {}, {replica: "/a"}, {replica: state}) == expected


def test_log_directories_of_a_file_are_those_of_its_replicas(file):
    found = read_assignment(file(replicas=[3, 2], log_dirs=["any", "/data/b"]))
    assert found.log_dirs == {TopicPartitionReplica("orders", 0, 2): "/data/b"}


def test_proposal_can_be_read_back(tmp_path):
    path = tmp_path / "moves.json"
    path.write_text(json.dumps(assignment_json({ORDERS: [2, 1]})))
    assert read_assignment(path).replicas == {ORDERS: [2, 1]}
    path.write_text('{"version": 1, "topics": [{"topic": "orders"}]}')
    assert read_topics(path) == ["orders"]
    for text in ('{"topics": []}', '{"topics": [{"topic": "a"}, {"topic": "a"}]}', '{"topics": ["a"]}', "["):
        path.write_text(text)
        with pytest.raises(KafkaConfigurationError):
            read_topics(path)


def test_proposal_keeps_the_number_of_replicas(admin, arguments):
    admin.add_topic("orders", (0, 5), (0, 5), (0, 5))
    admin.replicas = {TopicPartition("orders", number): [1, 2] for number in range(3)}
    arguments.brokers, arguments.disable_rack_aware = [2, 3], False
    moves = proposed(admin, arguments, ["orders"], VirtualClock(seed=1))
    assert [sorted(move.new_replicas) for move in moves] == [[2, 3]] * 3
    assert {move.new_replicas[0] for move in moves} == {2, 3}


@pytest.mark.parametrize(
    ("brokers", "racks", "sentence"),
    [
        ([1, 9], {}, "brokers 9 do not exist"),
        ([1], {}, "'orders' has 2 replicas of each partition: give at least as many --brokers"),
        ([1, 2, 3], {1: "a"}, "only some brokers have a rack; 2, 3 have none: .* add --disable-rack-aware"),
    ],
)
def test_proposal_that_is_impossible_is_refused(admin, arguments, brokers, racks, sentence):
    admin.add_topic("orders", (0, 5))
    admin.replicas[ORDERS] = [1, 2]
    admin.racks |= racks
    arguments.brokers, arguments.disable_rack_aware = brokers, False
    with pytest.raises(CommandError, match=sentence):
        proposed(admin, arguments, ["orders"])
    arguments.disable_rack_aware = True
    if racks:
        assert len(proposed(admin, arguments, ["orders"])) == 1
