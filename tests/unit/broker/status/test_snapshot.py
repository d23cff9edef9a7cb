"""Snapshots of the broker's status: bounded size, monotone totals, and groups of other protocol types."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock
from uuid import UUID

from model.log_oracle import batch
from prometheus_client.parser import text_string_to_metric_families

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.group.group_coordinator import GroupsFigures
from kafkacore.broker.log import LogManager
from kafkacore.broker.server.metrics import BrokerMetrics
from kafkacore.broker.status.collector import StatusCollector, _Grown
from kafkacore.broker.status.groups import shown_groups
from kafkacore.broker.status.history import INTERVAL_MS, MAX_SAMPLES, TOTALS, Counts, History
from kafkacore.broker.status.network_thread_state import GroupSeen, MemberSeen, NetworkThreadState, short
from kafkacore.broker.status.prometheus_text import MAX_TOPICS, prometheus_text
from kafkacore.broker.status.snapshot import GroupFigures
from kafkacore.broker.transaction.transaction_coordinator import TransactionFigures
from kafkacore.coordinator.protocol import Assignment, encode_assignment
from kafkacore.metrics import Authentications, Sensor
from kafkacore.structs import TopicPartition
from kafkacore.testing.clock import VirtualClock

A, B = UUID(int=1), UUID(int=2)


def group(assignment: bytes, offsets: dict[TopicPartition, int]) -> GroupFigures:
    member = MemberSeen("billing-1-0", None, "billing-1", "127.0.0.1", assignment)
    seen = GroupSeen("billing", "classic", "Stable", "range", 1, [member], offsets)
    (shown,) = shown_groups([seen], {TopicPartition("orders", 0): 50, TopicPartition("orders", 1): 7})
    return shown


def test_lag_is_the_sum_over_the_partitions_that_are_there() -> None:
    offsets = {TopicPartition("orders", 0): 40, TopicPartition("orders", 1): 9, TopicPartition("gone", 0): 3}
    shown = group(
        encode_assignment(Assignment([TopicPartition("orders", 1), TopicPartition("orders", 0)])), offsets
    )
    assert shown["lag"] == 10
    assert [each["lag"] for each in shown["offsets"]] == [None, 10, 0]
    assert shown["topics"] == ["gone", "orders"]
    assert shown["members"][0]["assignment"] == "orders 0 1"


def test_assignment_that_only_the_group_understands_is_not_guessed() -> None:
    for assignment in (b"", b"\x00", b"\xff" * 40, b"workers: a, b"):
        shown = group(assignment, {})
        assert shown["members"][0]["assignment"] == ""
        assert shown["lag"] is None


def test_long_names_are_cut_and_stay_two() -> None:
    one, other = short("x" * 32_000 + "1"), short("x" * 32_000 + "2")
    assert one != other
    assert max(len(one), len(other)) < 250
    assert short("billing") == "billing"


def test_totals_never_shrink_when_a_topic_goes() -> None:
    grown = _Grown()
    grown.look({A: (100, 10, 5), B: (0, 70, 0)}, True)
    assert grown.look({A: (150, 14, 9), B: (10, 71, 0)}, False)[A] == [150, 4, 9]
    assert grown.totals == [160, 5, 9]
    grown.look({A: (150, 14, 9)}, False)
    assert grown.totals == [160, 5, 9]
    # A topic with the same name and another id is a new topic.
    grown.look({A: (150, 14, 9), UUID(int=3): (7, 2, 1)}, False)
    assert grown.totals == [167, 7, 10]


def labelled(family: Any) -> dict[str, float]:
    """Return the values of a metric family by their only label."""
    return {label: one.value for one in family.samples for label in one.labels.values()}


def test_figures_of_many_topics_are_bounded_and_none_is_lost() -> None:
    topics = [
        {"name": f"t{number}", "bytes_in": 1, "messages_in": 1, "bytes_out": 1, "partitions": []}
        for number in range(MAX_TOPICS + 300)
    ]
    broker = {"version": 'a"b\\c\nd', "cluster_id": "c", "flush": "os"}
    totals = (
        "connections",
        "bytes_in",
        "messages_in",
        "bytes_out",
        "topics",
        "partitions",
        "size",
        "segments",
    )
    snapshot: Any = {
        "broker": {**broker, "uptime_ms": 1, "resident_bytes": 1, "open_files": -1},
        "totals": dict.fromkeys((*totals, "offline_partitions"), 0),
        "flush": {"count": 0, "total_ms": 0.0, "largest_ms": 0.0},
        "accepted_count": 0,
        "refused_count": 0,
        "failed_authentication_count": 0,
        "authentications": {"succeeded": 0, "succeeded_again": 0, "failed_again": 0, "latency_ms": 0.0},
        "expired_count": 0,
        "throttled_count": 0,
        "throttled_ms": 0.0,
        "topics": topics,
        "apis": [],
        "waiting": {},
        "fetch_session_count": 0,
        "transactions": {"id_count": 3, "open_count": 2, "oldest_open_ms": 1_500},
        "groups": [group(b"", {})],
        "group_counts": [
            {"type": "classic", "state": "Stable", "count": 300},
            {"type": "consumer", "state": "Empty", "count": 2},
            {"type": "consumer", "state": "Stable", "count": 5},
        ],
        "rebalances": {"classic_completed": 4, "consumer": 6},
    }
    families = {family.name: family for family in text_string_to_metric_families(prometheus_text(snapshot))}
    samples = families["kafka_server_brokertopicmetrics_topic_bytesin"].samples
    assert len(samples) == MAX_TOPICS + 1
    assert samples[-1].labels == {"topic": "(other topics)"}
    assert sum(sample.value for sample in samples) == len(topics)
    oldest = families["kafkacore_broker_oldest_open_transaction_seconds"].samples[0].value
    open_count = families["kafkacore_broker_open_transactions"].samples[0].value
    assert (oldest, open_count) == (1.5, 2)
    group_metrics = "kafka_server_group_coordinator_metrics_"
    assert labelled(families[f"{group_metrics}group_count"]) == {"classic": 300, "consumer": 7}
    assert labelled(families[f"{group_metrics}consumer_group_count"]) == {"Empty": 2, "Stable": 5}
    assert labelled(families["kafka_coordinator_group_groupmetadatamanager_numgroups"]) == {"Stable": 300}
    for name, count in (("group_completed_rebalance_count", 4), ("consumer_group_rebalance_count", 6)):
        assert families[f"{group_metrics}{name}"].samples[0].value == count
    assert families["kafkacore_broker_info"].samples[0].labels["version"] == 'a"b\\c\nd'


# ---- History -----------------------------------------------------------------------------------------------


def counts(at_ms: float, bytes_in: int) -> Counts:
    return Counts(at_ms, (bytes_in, 0, 0, 0), {A: (bytes_in, 0, 0)}, {"Produce": bytes_in})


def test_history_is_the_rates_between_samples() -> None:
    history = History(counts(0.0, 0))
    history.add(counts(2_000.0, 500), 0.0)
    history.add(counts(6_000.0, 100), 0.0)
    shown = history.shown()
    assert shown["at_ms"] == [2_000.0, 6_000.0]
    assert shown["bytes_in"] == [250.0, 0.0]
    assert set(shown) == {"at_ms", *TOTALS}


def test_history_is_bounded_to_ten_minutes() -> None:
    history = History(counts(0.0, 0))
    for number in range(1, 1_000):
        history.add(counts(number * INTERVAL_MS, number), 0.0)
    times = history.shown()["at_ms"]
    assert len(times) == MAX_SAMPLES
    assert times[-1] - times[0] == 600_000 - INTERVAL_MS


def test_sample_that_takes_long_is_taken_less_often() -> None:
    history = History(counts(0.0, 0))
    history.add(counts(2_000.0, 0), 1.0)
    assert history.due_ms == 4_000.0
    history.add(counts(4_000.0, 0), 50.0)
    assert history.due_ms == 29_000.0, "sampling takes at most 0.2 % of the time"


def test_rates_are_relative_to_a_sample_that_is_old_enough() -> None:
    history = History(counts(0.0, 0))
    assert history.base(500.0).at_ms == 0.0
    history.add(counts(2_000.0, 0), 0.0)
    assert history.base(2_500.0).at_ms == 0.0, "half a second is too short"
    assert history.base(3_000.0).at_ms == 2_000.0


def test_first_look_has_rates_and_a_history(tmp_path: Path) -> None:
    """Both once started at zero whenever the page was opened."""
    clock = VirtualClock()
    config = BrokerConfig(data_dir=tmp_path, num_partitions=1)
    with LogManager(tmp_path, clock=clock, background=False) as manager:
        manager.create_topic("orders", 1, A, {})
        metrics = BrokerMetrics({0: "Produce"}, clock)
        server: Any = Mock(call=lambda function, _: function(), contexts=list)
        server.authentications = Authentications(Sensor)
        about: Any = {}
        state = NetworkThreadState(
            {}, [], GroupsFigures({}, 0, 0), 0, TransactionFigures(2, 1, clock.wall_ms())
        )
        collector = StatusCollector(about, config, clock, manager, server, metrics, lambda: state)
        log = manager.log(TopicPartition("orders", 0))
        assert log is not None
        for _ in range(3):
            clock.advance(INTERVAL_MS)
            log.append(batch([b"a"], 1_000_000), now_ms=1_000_000)
            assert collector.sample() == clock.monotonic_ms() + INTERVAL_MS
            assert collector.sample() == clock.monotonic_ms() + INTERVAL_MS, "no sample is due"
        clock.advance(1_000)
        log.append(batch([b"a"], 1_000_000), now_ms=1_000_000)
        found = collector.snapshot()
    assert found is not None
    assert found["history"]["messages_in"] == [0.5, 0.5, 0.5]
    assert found["rates"]["messages_in"] == 1.0
    waited_ms = round(3 * INTERVAL_MS + 1_000)
    assert found["transactions"] == {"id_count": 2, "open_count": 1, "oldest_open_ms": waited_ms}
    assert found["topics"][0]["rates"]["messages_in"] == 1.0
