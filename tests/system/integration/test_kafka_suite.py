"""A few of Apache Kafka's own tests pass on the embedded cluster; ``make kafka-suite`` runs all of them."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from kafka_suite.outcomes import JAVA_OBJECTS, PASSED, Outcome, Rules, shown_name
from kafka_suite.suite_run import SuiteRun

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

Found = list[tuple[dict[str, Any], Outcome]]

NEEDS_OBJECTS = (
    "org.apache.kafka.clients.consumer.ConsumerIntegrationTest"
    "#testSingleCoordinatorOwnershipAfterPartitionReassignment"
)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Run the tests in one JVM, and return their results. A JVM that loads Kafka's tests takes seconds."""
    rules, logs = Rules.load(), tmp_path_factory.mktemp("suite")
    suite = SuiteRun(rules, is_control=False, limit_s=120, logs=logs, python=sys.executable)
    return list(suite.run("quick", [*rules.quick, NEEDS_OBJECTS]))


def needs_objects(line: dict[str, Any]) -> bool:
    return f"{line['class']}#{line['method']}" == NEEDS_OBJECTS


def test_quick_tests_pass(found: Found) -> None:
    """Embedded clusters have been started, so the tests have not passed on Kafka's brokers."""
    quick = [(line, outcome) for line, outcome in found if not needs_objects(line)]
    assert len(quick) >= len(Rules.load().quick)
    assert [(shown_name(line), outcome) for line, outcome in quick if outcome.result != PASSED] == []
    # One cluster may be that of the other test.
    assert quick[-1][0]["clusters"] > 1


def test_java_objects_are_reported(found: Found) -> None:
    (outcome,) = [outcome for line, outcome in found if needs_objects(line)]
    assert outcome == Outcome(JAVA_OBJECTS, "KafkaBroker.metrics")
