"""The properties of brokers and topics that limit the traffic of a reassignment."""

import pytest

from kafkacore.cli.admin.replication_throttle import (
    remove_throttles,
    set_log_dir_throttle,
    set_replication_throttle,
)
from kafkacore.cli.common import CommandError
from kafkacore.structs import TopicPartition

ORDERS = [TopicPartition("orders", number) for number in range(3)]
LIMITED = {"leader.replication.throttled.rate": "5", "follower.replication.throttled.rate": "5"}


def test_sources_and_destinations_are_limited(admin):
    moves = {ORDERS[0]: [2, 3], ORDERS[1]: [1, 2]}
    set_replication_throttle(admin, {ORDERS[0]: [1, 2], ORDERS[1]: [1, 2]}, moves, {}, 5)
    assert admin.configs[("topic", "orders")] == {
        "leader.replication.throttled.replicas": "0:1,0:2,1:1,1:2",
        "follower.replication.throttled.replicas": "0:3",
    }
    assert {name: admin.configs[("broker", name)] for name in "123"} == dict.fromkeys("123", LIMITED)


def test_reassignments_in_progress_stay_limited(admin):
    under_way = {"replicas": [1, 3], "adding_replicas": [3], "removing_replicas": []}
    in_progress = {ORDERS[0]: under_way, ORDERS[2]: under_way}
    set_replication_throttle(admin, {ORDERS[0]: [1, 3]}, {ORDERS[0]: [2]}, in_progress, 5)
    assert admin.configs[("topic", "orders")] == {
        "leader.replication.throttled.replicas": "0:1,2:1",
        "follower.replication.throttled.replicas": "0:2,2:3",
    }


def test_limits_are_removed_and_other_values_stay(admin):
    admin.configs[("broker", "1")] = {"log.cleaner.threads": "2"}
    admin.configs[("topic", "orders")] = {"retention.ms": "5"}
    assert remove_throttles(admin, ["orders"]) == []
    set_replication_throttle(admin, {ORDERS[0]: [1]}, {ORDERS[0]: [2]}, {}, 5)
    set_log_dir_throttle(admin, [3], 7)
    assert admin.configs[("broker", "3")] == {"replica.alter.log.dirs.io.max.bytes.per.second": "7"}
    assert remove_throttles(admin, ["orders", "orders"]) == [
        "broker 1",
        "broker 2",
        "broker 3",
        "topic orders",
    ]
    assert {key: values for key, values in admin.configs.items() if values} == {
        ("broker", "1"): {"log.cleaner.threads": "2"},
        ("topic", "orders"): {"retention.ms": "5"},
    }


def test_refusal_names_the_broker(admin):
    admin.refusals["2"] = "[Error 31] CLUSTER_AUTHORIZATION_FAILED"
    with pytest.raises(CommandError, match=r"^the throttle of broker 2 was not changed: \[Error 31\]"):
        set_replication_throttle(admin, {ORDERS[0]: [1]}, {ORDERS[0]: [2]}, {}, 5)
