"""What a look at the broker comes to: bounded, monotone, and with groups that are no consumers."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from prometheus_client.parser import text_string_to_metric_families

from kafkacore.broker.status.collector import _Grown
from kafkacore.broker.status.groups import shown_groups
from kafkacore.broker.status.owned import GroupSeen, MemberSeen, short
from kafkacore.broker.status.prometheus_text import MOST_TOPICS, prometheus_text
from kafkacore.coordinator.protocol import Assignment, encode_assignment
from kafkacore.structs import TopicPartition

A, B = UUID(int=1), UUID(int=2)


def group(assignment: bytes, offsets: dict[TopicPartition, int]) -> dict[str, Any]:
    member = MemberSeen("billing-1-0", None, "billing-1", "127.0.0.1", assignment)
    seen = GroupSeen("billing", "Stable", "range", 1, [member], offsets)
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
    # Another topic of the same name has another id, and is new.
    grown.look({A: (150, 14, 9), UUID(int=3): (7, 2, 1)}, False)
    assert grown.totals == [167, 7, 10]


def test_figures_of_many_topics_are_bounded_and_none_is_lost() -> None:
    topics = [
        {"name": f"t{number}", "bytes_in": 1, "messages_in": 1, "bytes_out": 1, "partitions": []}
        for number in range(MOST_TOPICS + 300)
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
    snapshot = {
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
        "groups": [group(b"", {})],
    }
    families = {family.name: family for family in text_string_to_metric_families(prometheus_text(snapshot))}
    samples = families["kafka_server_brokertopicmetrics_topic_bytesin"].samples
    assert len(samples) == MOST_TOPICS + 1
    assert samples[-1].labels == {"topic": "(other topics)"}
    assert sum(sample.value for sample in samples) == len(topics)
    assert families["kafkacore_broker_info"].samples[0].labels["version"] == 'a"b\\c\nd'
