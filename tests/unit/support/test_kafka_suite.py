"""The results of Kafka's own tests: what counts as failed, and what explains a failure."""

from __future__ import annotations

import re
from typing import Any

import pytest
from kafka_suite.nodes import shared_properties, split
from kafka_suite.outcomes import FAILED, JAVA_OBJECTS, LEFT_OUT, PASSED, Outcome, Rules, judged, shown_name
from kafka_suite.programs import may_have_tests

RULES = Rules(
    {
        "left_out": [{"reason": "not served", "tests": ["kafka.Share*", "kafka.OneTest#testA"]}],
        "left_out_invocations": [{"reason": "no streams", "name": "p=streams"}],
        "explained": [{"reason": "needs a protocol", "evidence": "does not support"}],
        "settings": {"needed": ["metric.reporters"]},
        "quick": {"tests": []},
    }
)


def line(status: str = "failed", **more: Any) -> dict[str, Any]:
    return {"status": status, "class": "kafka.OneTest", "method": "testB", "number": "2", "name": "b", **more}


def test_left_out_by_class_and_by_method() -> None:
    assert RULES.why_left_out("kafka.ShareTest") == "not served"
    assert RULES.why_left_out("kafka.ShareTest#testAny") == "not served"
    assert RULES.why_left_out("kafka.OneTest#testA") == "not served"
    assert RULES.why_left_out("kafka.OneTest#testB") is None
    assert RULES.why_left_out("kafka.OneTest") is None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (line("started"), None),
        (line("aborted", error="an embedded cluster has no controllers: it runs once, as KRAFT"), None),
        (line("passed", java_objects=["KafkaBroker.config"]), Outcome(PASSED)),
        (line(error="a\n  b"), Outcome(FAILED, "a b")),
        (line(error="a", java_objects=["KafkaBroker.config"]), Outcome(JAVA_OBJECTS, "KafkaBroker.config")),
        (line(rejected={"log.dirs": "no"}), Outcome(LEFT_OUT, "needs broker setting log.dirs")),
        (line(ignored={"metric.reporters": ""}), Outcome(LEFT_OUT, "needs broker setting metric.reporters")),
        (line(error="x", ignored={"num.io.threads": ""}), Outcome(FAILED, "x")),
        (line(error="late", log="it does not support it"), Outcome(LEFT_OUT, "needs a protocol")),
        (
            line(error="it does not support it", ignored={"metric.reporters": ""}),
            Outcome(LEFT_OUT, "needs a protocol"),
        ),
        (line(error="java.lang.NoSuchFieldException: pool"), Outcome(JAVA_OBJECTS, "a field of an object")),
        (
            line(
                error='Cannot invoke "KafkaMetric.metricValue()" because the return value of '
                '"org.apache.kafka.common.metrics.Metrics.metric(MetricName)" is null'
            ),
            Outcome(JAVA_OBJECTS, "KafkaBroker.metrics"),
        ),
        (line("left out", method="testA"), Outcome(LEFT_OUT, "not served")),
        (line("skipped", error="left out by name", name="p=streams"), Outcome(LEFT_OUT, "no streams")),
        (line("skipped"), Outcome(LEFT_OUT, "disabled by Apache Kafka")),
    ],
)
def test_outcome(given: dict[str, Any], expected: Outcome | None) -> None:
    assert RULES.outcome(given) == expected


def test_left_out_pattern_matches_single_tests_only() -> None:
    pattern = re.compile(RULES.left_out_pattern)
    assert pattern.match("kafka.OneTest#testA")
    assert not pattern.match("kafka.OneTest#testAB")
    assert not pattern.match("kafka.ShareTest#testA")


def test_control_decides_whether_a_failure_counts() -> None:
    failed = Outcome(FAILED, "x")
    assert judged(failed, PASSED) == failed
    assert judged(failed, None) == failed
    assert judged(failed, FAILED) == Outcome(LEFT_OUT, "fails with Apache Kafka's brokers too")
    assert judged(Outcome(PASSED), FAILED) == Outcome(PASSED)


def shown_names_of_invocations() -> None:
    assert shown_name(line()) == "testB[2]"
    assert shown_name({**line(), "method": "", "number": ""}) == "(class)"


def test_nested_test_classes_are_run() -> None:
    assert may_have_tests("kafka/server/ConsumerProtocolMigrationTest")
    assert may_have_tests("kafka/server/ConsumerProtocolMigrationTest$WithAssignmentBatchingDisabledTest")
    assert not may_have_tests("kafka/server/ConsumerProtocolMigrationTest$1")
    assert not may_have_tests("kafka/server/ConsumerProtocolMigrationTest$Member")


def test_rules_of_the_suite_can_be_read() -> None:
    rules = Rules.load()
    assert rules.quick
    assert rules.why_left_out("org.apache.kafka.clients.consumer.ShareConsumerTest")


def test_properties_that_all_nodes_share() -> None:
    of_nodes = {
        "0": {"broker.rack": "a", "num.partitions": "3", "ssl.keystore.location": "a.jks"},
        "1": {
            "broker.rack": "b",
            "num.io.threads": "2",
            "num.partitions": "3",
            "ssl.keystore.location": "b.jks",
        },
        "3000": {"log.retention.ms": "1", "num.partitions": "5", "default.replication.factor": "2"},
    }
    shared, ignored = shared_properties({"num.io.threads": "1"}, of_nodes, range(2))
    assert shared == {
        "default.replication.factor": "2",
        "num.io.threads": "1",
        "num.partitions": "3",
        "ssl.keystore.location": "a.jks",
    }
    assert list(ignored) == ["log.retention.ms of the controller", "num.io.threads of single nodes"]


def test_properties_of_the_embedded_broker() -> None:
    """Kafka ignores a property that it does not know, and so does the suite."""
    given = {
        "num.partitions": "3",
        "default.replication.factor": "2",
        "offsets.topic.replication.factor": "3",
        "transaction.state.log.min.isr": "2",
        "num.io.threads": "8",
        "no.such.property": "1",
    }
    used, without_effect, rejected = split(given, 2)
    assert used == {"num.partitions": "3", "offsets.topic.replication.factor": "3", "num.io.threads": "8"}
    assert set(without_effect) == {"num.io.threads", "transaction.state.log.min.isr"}
    assert list(rejected) == ["offsets.topic.replication.factor"]
