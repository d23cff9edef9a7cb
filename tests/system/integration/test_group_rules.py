"""Groups by raw requests to Apache Kafka and to our broker: all responses are the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from model.raw_groups import RawGroup
from peers.apache_kafka import ApacheKafka

from kafkacore.testing.embedded_broker import EmbeddedBroker

BOTH = (("roundrobin", b"rr"), ("range", b"meta"))


def stable(group: RawGroup, *names: str, instances: bool = False, version: int = 9) -> None:
    """Return members that have joined one after the other, and have an assignment each."""
    for number, name in enumerate(names):
        before = names[:number]
        how = {"version": version}
        group.ask_join(name, instance_id=name if instances else None, **how)
        if not instances and version >= 4:
            group.hear_join(name)
            group.ask_join(name, **how)
        if before:
            group.await_rebalance()
        for other in before:
            group.ask_join(other, instance_id=other if instances else None, **how)
        for other in (name, *before):
            group.hear_join(other)
        given = {one: one.encode() for one in names[: number + 1]}
        for other in names[1 : number + 1]:
            group.ask_sync(other)
        group.ask_sync(names[0], given)
        for other in names[: number + 1]:
            group.hear_sync(other)


def one_life(group: RawGroup) -> None:
    group.list_groups()
    group.join("a")
    group.describe()
    group.beat("a")
    group.sync("a", {"a": b"all"})
    group.describe()
    group.list_groups()
    group.beat("a")
    group.sync("a")
    group.delete()
    group.leave(("a", None))
    group.describe()
    group.list_groups()
    group.beat("a")
    group.delete()
    group.describe()
    group.list_groups()


def refusals(group: RawGroup) -> None:
    group.join("a", member_id="unknown")
    group.join("a", session_ms=499)
    group.join("a", kind="")
    group.join("a", protocols=())
    stable(group, "a")
    group.join("b", kind="connect")
    group.join("b", protocols=(("other", b""),))
    group.join("a", protocols=(("other", b""),))
    group.sync("a", generation_id=9)
    group.sync("unknown")
    group.sync("a", protocol_name="other")
    group.sync("a", protocol_type="other")
    group.sync("a", protocol_name=None)
    group.sync("a", version=4)
    group.sync("a", group_id="")
    group.sync("a", group_id="no group of mine")
    group.beat("a", generation_id=9)
    group.beat("unknown")
    group.beat("a", group_id="")
    group.beat("a", group_id="no group of mine")
    group.beat("a", group_instance_id="x")
    group.leave(("unknown", None))
    group.leave(("", "unknown"), ("", None))
    group.leave(("unknown", None), version=2)
    group.leave(("a", None), group_id="no group of mine")
    group.leave(("a", None), group_id="")
    group.delete("no group of mine", "no group of mine")
    group.describe("no group of mine")
    group.describe("no group of mine", version=5)
    group.describe(version=2)


def two_members(group: RawGroup) -> None:
    stable(group, "a", "b")
    group.describe()
    group.join("b")
    group.ask_join("a")
    group.await_rebalance()
    group.beat("b")
    group.sync("b")
    group.ask_join("b")
    group.hear_join("a")
    group.hear_join("b")
    group.join("a")
    group.join("b")
    group.leave(("a", None))
    group.beat("b")
    group.beat("a")
    group.join("b")
    group.sync("b", {})
    group.ask_join("b", protocols=(("range", b"new"),))
    group.hear_join("b")
    group.sync("b", {"b": b"x"})


def protocols_are_voted(group: RawGroup) -> None:
    group.join("a", protocols=BOTH)
    group.sync("a", {"a": b""}, protocol_name="roundrobin")
    group.ask_join("b")
    group.hear_join("b")
    group.ask_join("b")
    group.await_rebalance()
    group.ask_join("a", protocols=BOTH)
    group.hear_join("a")
    group.hear_join("b")


def static_members(group: RawGroup) -> None:
    stable(group, "a", "b", instances=True)
    group.describe()
    old = group.ids["b"]
    group.join("b", instance_id="b", member_id="")
    group.beat("b", group_instance_id="b")
    group.beat("b", group_instance_id="b", member_id=old)
    group.beat("b", member_id=old)
    group.sync("b", group_instance_id="b")
    group.sync("b", group_instance_id="b", member_id=old)
    group.join("b", instance_id="b", member_id=old)
    group.join("b", instance_id="c")
    group.join("a", instance_id="a", member_id="")
    group.join("a", instance_id="a", member_id="", version=8)
    group.join("b", instance_id="b", member_id="", version=5)
    group.describe()
    group.leave((old, "b"), ("", "unknown"), ("", "a"))
    group.describe()
    group.beat("b", group_instance_id="b")
    group.leave(("", "b"))
    group.describe()


def static_member_comes_back_before_the_assignment(group: RawGroup) -> None:
    group.join("a", instance_id="a")
    group.ask_sync("a")
    group.hear_sync("a")
    group.join("a", instance_id="a", member_id="")
    group.ask_join("b", instance_id="b")
    group.await_rebalance()
    group.ask_join("a", instance_id="a")
    group.hear_join("a")
    group.hear_join("b")
    group.ask_join("b again", instance_id="b")
    group.await_rebalance()
    group.beat("a")
    group.ask_join("a", instance_id="a")
    group.hear_join("a")
    group.hear_join("b again")


def removed_versions(group: RawGroup) -> None:
    for version, name in enumerate("abcd"):
        group.join(name, version=version)
        group.describe(version=version)
        group.list_groups(version=version)
        group.sync(name, {name: b"x"}, version=version)
        group.beat(name, version=version)
        group.describe(version=version)
        group.leave((name, None), version=version)
    group.delete(version=0)


def members_that_hang_up(group: RawGroup) -> None:
    stable(group, "a")
    group.ask_join("b")
    group.hear_join("b")
    group.ask_join("b")
    group.await_rebalance()
    group.beat("a")
    group.hang_up("b")
    group.describe()
    group.ask_join("a")
    group.hear_join("a")
    group.ask_join("b")
    group.hear_join("b")


def lists_by_state_and_type(group: RawGroup) -> None:
    stable(group, "a")
    group.list_groups(states=("Stable",))
    group.list_groups(states=("sTABLE", "Empty"))
    group.list_groups(states=("Empty",))
    group.list_groups(states=("nonsense",))
    group.list_groups(kinds=("classic",))
    group.list_groups(kinds=("Consumer",))
    group.list_groups(version=4, states=("Stable",))


STORIES = [
    one_life,
    refusals,
    two_members,
    protocols_are_voted,
    static_members,
    static_member_comes_back_before_the_assignment,
    removed_versions,
    members_that_hang_up,
    lists_by_state_and_type,
]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_both_brokers_tell_the_same_story(
    apache_kafka: ApacheKafka, our_groups: EmbeddedBroker, story: Callable[[RawGroup], None]
) -> None:
    transcripts = []
    for servers in (apache_kafka.bootstrap_servers, our_groups.bootstrap_servers):
        with RawGroup(servers, f"story {story.__name__}") as group:
            story(group)
            transcripts.append(group.transcript)
    theirs, ours = transcripts
    assert ours == theirs
