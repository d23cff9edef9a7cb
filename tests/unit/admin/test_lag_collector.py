"""The lag of groups as Prometheus metrics."""

from __future__ import annotations

import pytest

from kafkacore.admin.lag import ClusterLag, GroupLag, LagError, PartitionLag
from kafkacore.admin.lag_collector import ERRORS, GAUGES, LagCollector
from kafkacore.errors import KafkaConnectionError, KafkaError
from kafkacore.structs import TopicPartition

BROKEN = LagError("group", "x\n", KafkaError("broken"))


def look(*errors: LagError) -> ClusterLag:
    group = GroupLag(
        "g",
        "Stable",
        2,
        (
            PartitionLag("t", 0, 5, 8, 3, 1.5),
            PartitionLag("t", 1, 5, 9, 4, None),
            PartitionLag("u", 0, 1, 1, 0, 0.0),
        ),
    )
    hidden = GroupLag("h", "Empty", None, ())
    ends = {TopicPartition("t", 0): 8, TopicPartition("t", 1): 9, TopicPartition("u", 0): 1}
    return ClusterLag((group, hidden), ends, errors, 12.5)


def samples(collector: LagCollector) -> dict[tuple[str, ...], float]:
    """Return the value of each metric by name and labels, without the name of the cluster."""
    return {
        (sample.name.removeprefix("kafka_"), *(v for k, v in sample.labels.items() if k != "cluster_name")): (
            sample.value
        )
        for family in collector.collect()
        for sample in family.samples
    }


def test_figures_of_a_look() -> None:
    collector = LagCollector("eu")
    collector.update(look())
    found = samples(collector)
    group = "consumergroup_group"
    assert found[f"{group}_lag", "g", "t", "1"] == 4
    assert found[f"{group}_lag_seconds", "g", "t", "0"] == 1.5
    assert (f"{group}_lag_seconds", "g", "t", "1") not in found
    assert found[f"{group}_offset", "g", "t", "0"] == 5
    assert found[f"{group}_topic_sum_lag", "g", "t"] == 7
    assert found[f"{group}_sum_lag", "g"] == 7
    assert found[f"{group}_max_lag", "g"] == 4
    assert found[f"{group}_max_lag_seconds", "g"] == 1.5
    assert found[f"{group}_members", "g"] == 2
    assert found[f"{group}_state", "h", "Empty"] == 1
    assert (f"{group}_members", "h") not in found
    assert found["partition_latest_offset", "t", "1"] == 9
    assert found["consumergroup_poll_time_ms",] == 12.5
    assert found["consumergroup_up",] == 1
    labels = {sample.labels["cluster_name"] for family in collector.collect() for sample in family.samples}
    assert labels == {"eu"}


def test_lost_cluster_has_no_lag_and_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    collector = LagCollector()
    collector.update(look())
    for _ in range(2):
        collector.failed(KafkaConnectionError("away"))
    found = samples(collector)
    assert found["consumergroup_up",] == 0
    assert found["consumergroup_errors_total", "cluster"] == 2
    assert not any(name[0].startswith("consumergroup_group") for name in found)
    assert [record.message for record in caplog.records] == ["could not read the lag of the cluster: away"]


def test_error_is_counted_in_each_look_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    collector = LagCollector()
    for _ in range(3):
        collector.update(look(BROKEN))
    assert samples(collector)["consumergroup_errors_total", "group"] == 3
    assert [record.message for record in caplog.records] == [r"could not read the lag of group x\n: broken"]


def test_declared_metrics_are_those_that_are_exported() -> None:
    assert {family.name for family in LagCollector().collect()} == {*GAUGES, ERRORS[0]}
