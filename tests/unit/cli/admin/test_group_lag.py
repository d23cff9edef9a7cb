"""Lag of groups by partition, by topic and in total, and the members that own the partitions."""

import pytest

from kafkacore.cli.admin.group_lag import PartitionLag, TopicLag, group_lags
from kafkacore.cli.common import CommandError


def member(name, topic, *numbers, assignment=None):
    assigned = {"assigned_partitions": [{"topic": topic, "partitions": list(numbers)}]}
    return {
        "member_id": name,
        "group_instance_id": None,
        "client_id": f"client-{name}",
        "client_host": "/192.0.2.7",
        "member_assignment": assigned if assignment is None else assignment,
    }


def test_lag_is_known_where_an_offset_is_committed_and_the_log_exists(admin, arguments):
    admin.add_topic("orders", (0, 10), (5, 20), (0, 7))
    admin.add_topic("returns", (0, 3))
    committed = {("orders", 0): 4, ("orders", 1): 20, ("returns", 0): 1, ("deleted", 0): 9}
    admin.add_group("billing", committed, member("m1", "orders", 0, 2))
    (group,) = group_lags(admin, arguments, ["billing"])
    owner = ("m1", "/192.0.2.7", "client-m1")
    no_member = (None, None, None)
    assert group.partitions == [
        PartitionLag("deleted", 0, 9, None, None, *no_member),
        PartitionLag("orders", 0, 4, 10, 6, *owner),
        PartitionLag("orders", 1, 20, 20, 0, *no_member),
        PartitionLag("orders", 2, None, 7, None, *owner),
        PartitionLag("returns", 0, 1, 3, 2, *no_member),
    ]
    assert group.topics == [TopicLag("deleted", 1, 0), TopicLag("orders", 3, 6), TopicLag("returns", 1, 2)]
    assert (group.lag, group.state, group.assignor) == (8, "Stable", "range")
    assert group.members[0]["assignment"] == ["orders:0", "orders:2"]


def test_member_that_is_no_consumer_has_no_partitions(admin, arguments):
    admin.add_group("connect", {}, member("worker", "", assignment=b"\x01"))
    (group,) = group_lags(admin, arguments, ["connect"])
    assert (group.partitions, group.lag, group.members[0]["partitions"]) == ([], 0, 0)


def test_group_that_is_not_there_is_named(admin, arguments):
    with pytest.raises(CommandError, match=r"^group 'nope' does not exist on localhost:9092: see"):
        group_lags(admin, arguments, ["nope"])
    secret = {"error": "GROUP_AUTHORIZATION_FAILED", "group_state": "", "group_type": "classic"}
    admin.groups["secret"] = secret
    with pytest.raises(CommandError, match=r"^group 'secret': GROUP_AUTHORIZATION_FAILED$"):
        group_lags(admin, arguments, ["secret"])


@pytest.mark.parametrize("kind", ["share", "streams"])
def test_group_of_another_protocol_names_its_tool(admin, arguments, kind):
    admin.groups["app"] = {"group_type": kind}
    sentence = rf"^group 'app' is a {kind} group, .* use kafka-{kind}-groups\.sh --group app$"
    with pytest.raises(CommandError, match=sentence):
        group_lags(admin, arguments, ["app"])


def test_lag_is_zero_where_the_log_ends_before_the_offset(admin, arguments):
    admin.add_topic("orders", (0, 3))
    admin.add_group("billing", {("orders", 0): 5})
    assert group_lags(admin, arguments, ["billing"])[0].lag == 0


def test_epochs_and_targets_exist_only_in_the_consumer_protocol(admin, arguments):
    target = {"assigned_partitions": [{"topic": "orders", "partitions": [1, 0]}]}
    new = {"target_assignment": target, "member_epoch": 4, "upgraded": True}
    admin.add_topic("orders", (0, 10), (0, 10))
    admin.add_group("billing", {}, member("m1", "orders", 0) | new)
    admin.groups["billing"] |= {"group_type": "consumer", "group_epoch": 5, "assignment_epoch": 4}
    admin.add_group("old", {}, member("m2", "orders", 1))
    billing, old = group_lags(admin, arguments, ["billing", "old"])
    assert (billing.group_epoch, billing.assignment_epoch) == (5, 4)
    (row,) = billing.members
    assert row["assignment"] == ["orders:0"]
    assert row["target_assignment"] == ["orders:0", "orders:1"]
    assert (row["epoch"], row["upgraded"]) == (4, True)
    assert (old.group_epoch, old.assignment_epoch) == (None, None)
    assert not {"target_assignment", "epoch", "upgraded"} & old.members[0].keys()
