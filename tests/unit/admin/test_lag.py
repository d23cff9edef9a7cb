"""The lag of groups, read from scripted answers in virtual time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from kafkacore.admin.groups import GroupListing
from kafkacore.admin.lag import MAX_LOOKUPS, ClusterLag, LagReader
from kafkacore.errors import (
    GroupAuthorizationFailedError,
    KafkaConnectionError,
    KafkaError,
    LeaderNotAvailableError,
)
from kafkacore.structs import OffsetAndMetadata, OffsetAndTimestamp, OffsetSpec, TopicPartition
from kafkacore.testing import VirtualClock

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
ERROR = GroupAuthorizationFailedError("no")


class Cluster:
    """Group and partition operations on given facts. A fact that is an error fails for itself."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.groups: dict[str, Any] = {}
        self.types: dict[str, str] = {}
        self.listed_state = "Stable"
        self.described: dict[str, Any] = {}
        self.ends: dict[TopicPartition, Any] = {}
        #: (offset, timestamp) of some records of each partition.
        self.records: dict[TopicPartition, list[tuple[int, int]]] = {}
        self.brokers: dict[int, KafkaError | None] = {0: None}
        self.lookups: list[int] = []

    def broker_ids(self, timeout_ms: float) -> list[int]:
        return list(self.brokers)

    def listings_by_broker(
        self, brokers: Iterable[int], *_: Any
    ) -> dict[int, list[GroupListing] | KafkaError]:
        listings: list[GroupListing] = [
            {
                "group_id": group,
                "protocol_type": "consumer",
                "group_state": self.listed_state,
                "group_type": self.types.get(group, "classic"),
            }
            for group in self.groups
        ]
        return {broker: self.brokers[broker] or (listings if broker == 0 else []) for broker in brokers}

    def description_of_each(self, groups: Iterable[str], *_: Any) -> dict[str, Any]:
        usual = {"members": ["m"], "group_state": "Stable"}
        return {group: self.described.get(group, usual) for group in groups}

    def offsets_by_group(self, groups: Mapping[str, None], _: float) -> dict[str, Any]:
        return {
            group: found
            if isinstance(found := self.groups[group], KafkaError)
            else {tp: OffsetAndMetadata(offset, "", -1) for tp, offset in found.items()}
            for group in groups
        }

    def offset_of_each(self, specs: Mapping[TopicPartition, int], *_: Any) -> dict[TopicPartition, Any]:
        self.lookups += {int(spec) for spec in specs.values()}
        return {tp: self._offset(tp, spec) for tp, spec in specs.items()}

    def _offset(self, tp: TopicPartition, spec: int) -> Any:
        if isinstance(self.ends[tp], KafkaError):
            return self.ends[tp]
        if spec == OffsetSpec.LATEST:
            return OffsetAndTimestamp(self.ends[tp], -1, -1)
        later = [each for each in self.records.get(tp, []) if each[1] >= spec]
        return OffsetAndTimestamp(*later[0], -1) if later else OffsetAndTimestamp(-1, -1, -1)


@pytest.fixture
def cluster() -> Cluster:
    clock = VirtualClock()
    clock.wall_offset_ms = 1_800_000_000_000
    return Cluster(clock)


def reader(cluster: Any, groups: str = ".*", topics: str = ".*") -> LagReader:
    return LagReader(cluster, cluster, cluster.clock, re.compile(groups), re.compile(topics))


def lags(lag: ClusterLag) -> dict[tuple[str, str, int], tuple[int, float | None]]:
    return {
        (group.group, each.topic, each.partition): (each.lag, each.lag_seconds)
        for group in lag.groups
        for each in group.partitions
    }


def test_lag_of_each_partition_with_state_members_and_ends(cluster: Cluster) -> None:
    cluster.groups = {"g": {T0: 5, T1: 7, U0: -1}}
    cluster.ends = {T0: 5, T1: 9}
    lag = reader(cluster).read(1000)
    (group,) = lag.groups
    assert (group.group, group.state, group.members, group.sum_lag) == ("g", "Stable", 1, 2)
    assert {(each.topic, each.partition): each.lag for each in group.partitions} == {("t", 0): 0, ("t", 1): 2}
    assert lag.end_offsets == {T0: 5, T1: 9}
    assert lag.errors == ()


def test_age_is_that_of_the_first_uncommitted_record(cluster: Cluster) -> None:
    """The exporter runs already when the records arrive: no lookup is made."""
    cluster.groups = {"g": {T0: 10}}
    cluster.ends = {T0: 10}
    looks = reader(cluster)
    assert lags(looks.read(1000)) == {("g", "t", 0): (0, 0.0)}
    cluster.clock.advance(10_000)
    cluster.ends = {T0: 20}
    assert lags(looks.read(1000)) == {("g", "t", 0): (10, 10.0)}
    cluster.clock.advance(10_000)
    cluster.groups = {"g": {T0: 15}}
    assert lags(looks.read(1000)) == {("g", "t", 0): (5, 15.0)}
    assert set(cluster.lookups) == {OffsetSpec.LATEST}


def test_lag_from_before_the_first_look_is_looked_up_once(cluster: Cluster) -> None:
    now = cluster.clock.wall_ms()
    cluster.groups = {"g": {T0: 4}, "current": {U0: 3}}
    cluster.ends = {T0: 10, U0: 3}
    cluster.records = {T0: [(offset, now - (10 - offset) * 1_800_000) for offset in range(10)]}
    looks = reader(cluster)
    lag, seconds = lags(looks.read(1000))["g", "t", 0]
    assert lag == 6
    assert seconds == pytest.approx(6 * 1800, rel=0.02)
    assert len([each for each in cluster.lookups if each != OffsetSpec.LATEST]) <= MAX_LOOKUPS
    cluster.lookups.clear()
    looks.read(1000)
    assert cluster.lookups == [OffsetSpec.LATEST]


def test_records_without_timestamps_have_a_lower_bound_of_the_age(cluster: Cluster) -> None:
    cluster.groups, cluster.ends = {"g": {T0: 4}}, {T0: 10}
    cluster.records = {T0: []}
    looks = reader(cluster)
    looks.read(1000)
    cluster.clock.advance(5000)
    _, seconds = lags(looks.read(1000))["g", "t", 0]
    assert seconds is not None
    assert seconds >= 5.0


def test_failing_group_partition_or_broker_fails_alone(cluster: Cluster) -> None:
    cluster.groups = {"bad": ERROR, "good": {T0: 1, U0: 2}, "hidden": {T0: 0}}
    cluster.described = {"hidden": ERROR}
    cluster.ends = {T0: 3, U0: LeaderNotAvailableError("u-0")}
    cluster.brokers[1] = KafkaConnectionError("broker 1 is away")
    lag = reader(cluster).read(1000)
    assert [(group.group, group.members, group.sum_lag) for group in lag.groups] == [
        ("bad", 1, 0),
        ("good", 1, 2),
        ("hidden", None, 0),
    ]
    assert [(error.kind, error.name) for error in lag.errors] == [
        ("broker", "1"),
        ("group", "hidden"),
        ("group", "bad"),
        ("partition", "u-0"),
    ]


def test_cluster_without_an_answer_raises(cluster: Cluster) -> None:
    cluster.brokers = {0: KafkaConnectionError("away"), 1: KafkaConnectionError("away")}
    with pytest.raises(KafkaConnectionError):
        reader(cluster).read(1000)


def test_only_groups_and_topics_that_match_are_read(cluster: Cluster) -> None:
    cluster.groups = {"a-1": {T0: 0, U0: 0}, "b": ERROR, "a-share": ERROR}
    cluster.types = {"a-share": "share"}
    cluster.ends = {T0: 1}
    lag = reader(cluster, "a-.*", "t").read(1000)
    assert list(lags(lag)) == [("a-1", "t", 0)]
    assert lag.errors == ()


def test_old_broker_has_the_state_in_the_description(cluster: Cluster) -> None:
    cluster.groups, cluster.listed_state = {"g": {}, "hidden": {}}, ""
    cluster.described = {"hidden": ERROR}
    lag = reader(cluster).read(1000)
    assert [(group.group, group.state) for group in lag.groups] == [("g", "Stable"), ("hidden", "")]


def test_empty_cluster_has_no_lag(cluster: Cluster) -> None:
    assert reader(cluster).read(1000).groups == ()


def test_partition_that_no_group_has_is_forgotten(cluster: Cluster) -> None:
    cluster.groups, cluster.ends = {"g": {T0: 1, U0: 1}}, {T0: 1, U0: 1}
    looks = reader(cluster)
    looks.read(1000)
    cluster.groups = {"g": {T0: 1}}
    looks.read(1000)
    assert list(looks._timelines) == [T0]
