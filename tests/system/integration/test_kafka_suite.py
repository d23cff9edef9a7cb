"""A few of Apache Kafka's own tests pass on the embedded cluster; ``make kafka-suite`` runs all of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from kafka_suite.outcomes import JAVA_OBJECTS, PASSED, Outcome, Rules, shown_name
from kafka_suite.suite_run import SuiteRun

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

NEEDS_OBJECTS = (
    "org.apache.kafka.clients.consumer.ConsumerIntegrationTest"
    "#testSingleCoordinatorOwnershipAfterPartitionReassignment"
)


@pytest.fixture
def suite(tmp_path: Path) -> SuiteRun:
    return SuiteRun(Rules.load(), is_control=False, limit_s=120, logs=tmp_path, python=sys.executable)


def test_quick_tests_pass(suite: SuiteRun) -> None:
    """Embedded clusters have been started, so the tests have not passed on Kafka's brokers."""
    found = list(suite.run("quick", Rules.load().quick))
    assert len(found) >= len(Rules.load().quick)
    assert [(shown_name(line), outcome) for line, outcome in found if outcome.result != PASSED] == []
    assert found[-1][0]["clusters"] >= 1


def test_java_objects_are_reported(suite: SuiteRun) -> None:
    ((_, outcome),) = suite.run("objects", [NEEDS_OBJECTS])
    assert outcome == Outcome(JAVA_OBJECTS, "KafkaBroker.metrics")
