"""Fixtures that tests of several packages share."""

from __future__ import annotations

import signal
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import missing_tools
import pytest
from eventually import SCALE
from hypothesis import HealthCheck, settings
from model import stuck_spark
from peers.apache_kafka import FREQUENT_HEARTBEATS, ApacheKafka, started_in_scratch_folder
from peers.java_peer import JavaPeer, started_java_peer
from peers.secure_kafka import SecureKafka, started_secure_kafka

if TYPE_CHECKING:
    from peers.secure_broker import SecureBroker
    from pyspark.sql import SparkSession
    from workers import RoomScheduling
    from xdist.remote import Producer

    from kafkacore.testing.embedded_broker import EmbeddedBroker


#: Settings of our brokers that keep the waits of groups short.
SOON = {"group_initial_rebalance_delay_ms": 0} | {
    name.replace(".", "_"): int(value) for name, value in FREQUENT_HEARTBEATS.items()
}
#: Limit that stops a hanging unit test. Unit tests do not wait, but a slow machine may take long.
UNIT_LIMIT_S = 900.0

# No deadline: a slow example on a busy machine is not a failure.
settings.register_profile("kafkacore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kafkacore")

# A background process of a shell ignores SIGINT, one under nohup SIGHUP. Processes started by tests would
# inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def apache_kafka() -> Iterator[ApacheKafka]:
    """Start Apache Kafka 4.3.1 in its own process, shared by the whole run; use unique topic names.

    Fail with the message of Maven, Java or the broker if it cannot be started.
    A run without Apache Kafka does not show compatibility.
    """
    with started_in_scratch_folder() as kafka:
        yield kafka


@pytest.fixture(scope="session")
def secure_kafka() -> Iterator[SecureKafka]:
    """Start Apache Kafka with TLS, SASL and ACLs for the whole run (see ``peers/secure_kafka.py``)."""
    with started_secure_kafka() as kafka:
        yield kafka


@pytest.fixture(scope="session")
def secure_broker() -> Iterator[SecureBroker]:
    """Start our broker with the same listeners for the whole run (see ``peers/secure_broker.py``)."""
    from peers.secure_broker import started_secure_broker

    with started_secure_broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def our_broker() -> Iterator[EmbeddedBroker]:
    """Start our broker in its own process for the whole run.

    It keeps records of any age, and groups rebalance soon. A commit may wait for the disk
    of a busy machine longer than Kafka's 5 s.
    """
    from kafkacore.testing.embedded_broker import EmbeddedBroker

    settings = {"log_retention_ms": -1, "offsets_commit_timeout_ms": 60_000}
    with EmbeddedBroker(**SOON, **settings) as broker:
        yield broker


@pytest.fixture(scope="session")
def our_groups() -> Iterator[EmbeddedBroker]:
    """Start our broker with the group settings of the fixture ``apache_kafka``, to keep waits short."""
    from kafkacore.testing.embedded_broker import EmbeddedBroker

    settings = {"group_min_session_timeout_ms": 500, "offsets_commit_timeout_ms": 60_000}
    with EmbeddedBroker(**SOON, **settings) as broker:
        yield broker


@pytest.fixture(scope="session")
def java_peer() -> Iterator[JavaPeer]:
    """Start Kafka's Java clients in one JVM for the whole run."""
    with started_java_peer() as peer:
        yield peer


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start one Spark session for the tests of the source and of the commands.

    Commands use an active session as it is. Starting a session takes longer than any of these tests.
    """
    from kafkacore.security.references import ALLOWED_PATHS
    from kafkacore.spark.session import spark_session

    folder = tmp_path_factory.mktemp("spark")
    (folder / "events").mkdir()
    # The event log of queries must not contain a secret (spark/test_secrets.py).
    configs = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file:{folder}/events"}
    configs["spark.eventLog.compress"] = "false"
    configs |= stuck_spark.TRACES
    with pytest.MonkeyPatch.context() as patch:
        # The planner and the workers inherit this process's environment when Spark starts.
        patch.setenv(ALLOWED_PATHS, str(tmp_path_factory.getbasetemp()))
        with spark_session("kafkacore tests", folder, folder / "spark.log", configs=configs) as session:
            yield session


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report the state of Spark and Apache Kafka when a test times out, and free the Spark session."""
    report = yield
    missing_tools.leave_out(item, call, report)
    gateway = stuck_spark.running_gateway()
    if gateway is not None and call.excinfo is not None and str(call.excinfo.value).startswith("Timeout (>"):
        report.sections.append(("Spark", stuck_spark.describe(gateway, getattr(item, "funcargs", {}))))
        stuck_spark.go_on(gateway)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report at the end which tools are missing, and how to install them."""
    reasons = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", ())]
    if lines := missing_tools.summary(reasons):
        terminalreporter.section("tests left out, because tools are missing")
        for line in lines:
            terminalreporter.line(line)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> RoomScheduling:
    """Return the scheduler that distributes tests to pytest-xdist workers (see ``workers.py``)."""
    from workers import RoomScheduling

    return RoomScheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of tests/system/integration, which need Java and Kafka's jars, and set time limits.

    The time limits are scaled by ``KAFKACORE_TEST_BUDGET``.
    """
    for item in items:
        if "integration" in item.path.parts:
            item.add_marker("integration")
        own = item.get_closest_marker("timeout")
        limit_s = float(own.args[0] if own else config.getini("timeout"))
        least_s = UNIT_LIMIT_S if "unit" in item.path.parts else 0.0
        item.add_marker(pytest.mark.timeout(max(limit_s, least_s) * SCALE), append=False)
