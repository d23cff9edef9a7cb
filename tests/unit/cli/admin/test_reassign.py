"""Plans of reassignments: what a file moves, what it must contain, and when it is complete."""

import json

import pytest

from kafkacore.cli.admin.reassign import Move, planned, read_replicas, status
from kafkacore.cli.common import CommandError
from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import TopicPartition

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
    wanted = read_replicas(file(replicas=[3, 2], log_dirs=["any", "any"]))
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
     {"replicas": [1], "log_dirs": ["/data"]}, {"replicas": [1], "log_dirs": "any"}],
)  # fmt: skip
def test_file_with_invalid_replicas_is_refused(file, more):
    with pytest.raises(KafkaConfigurationError, match=r"replicas in|log_dirs in"):
        read_replicas(file(**more))


@pytest.mark.parametrize(
    ("replicas", "in_progress", "expected"),
    [([2, 1], {}, "complete"), ([1, 2], {}, "different"), ([2, 1], {ORDERS: ...}, "in progress")],
)
def test_reassignment_is_complete_with_the_replicas_in_order(replicas, in_progress, expected):
    assert status(Move("orders", 0, replicas, [2, 1], [], []), in_progress) == expected
