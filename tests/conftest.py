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
from peers.apache_kafka import ApacheKafka, started_in_scratch_folder
from peers.java_peer import JavaPeer, started_java_peer
from peers.secure_kafka import SecureKafka, started_secure_kafka

if TYPE_CHECKING:
    from peers.secure_broker import SecureBroker
    from pyspark.sql import SparkSession
    from workers import RoomScheduling
    from xdist.remote import Producer

    from kafkacore.testing.embedded_broker import EmbeddedBroker


#: A test in tests/unit waits for nothing, and takes as long as the machine is slow: this ends one that hangs.
UNIT_LIMIT_S = 900.0

# A machine that is busy with something else makes no example wrong.
settings.register_profile("kafkacore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kafkacore")

# What a shell starts in the background ignores Ctrl-C, by nohup SIGHUP, and so would all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def apache_kafka() -> Iterator[ApacheKafka]:
    """Apache Kafka 4.3.1 in a process of its own, one for the whole run; choose topic names of your own.

    Fails, with what Maven, Java or the broker said, where it cannot be started: a run that has not met
    Apache Kafka has not been judged.
    """
    with started_in_scratch_folder() as kafka:
        yield kafka


@pytest.fixture(scope="session")
def secure_kafka() -> Iterator[SecureKafka]:
    """Apache Kafka with TLS, SASL and ACLs, one for the whole run: see ``peers/secure_kafka.py``."""
    with started_secure_kafka() as kafka:
        yield kafka


@pytest.fixture(scope="session")
def secure_broker() -> Iterator[SecureBroker]:
    """Our broker with the same listeners, one for the whole run: see ``peers/secure_broker.py``."""
    from peers.secure_broker import started_secure_broker

    with started_secure_broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def our_broker() -> Iterator[EmbeddedBroker]:
    """Our broker in a process of its own, one for the whole run, that keeps records of any age and has groups
    begin at once. A commit waits for the disk of a busy machine, which may take longer than Kafka's 5 s.
    """
    from kafkacore.testing.embedded_broker import EmbeddedBroker

    settings = {"log_retention_ms": -1, "offsets_commit_timeout_ms": 60_000}
    with EmbeddedBroker(group_initial_rebalance_delay_ms=0, **settings) as broker:
        yield broker


@pytest.fixture(scope="session")
def our_groups() -> Iterator[EmbeddedBroker]:
    """Our broker with the settings of groups that the fixture ``apache_kafka`` has: nobody waits for more."""
    from kafkacore.testing.embedded_broker import EmbeddedBroker

    settings = {"group_min_session_timeout_ms": 500, "offsets_commit_timeout_ms": 60_000}
    with EmbeddedBroker(group_initial_rebalance_delay_ms=0, **settings) as broker:
        yield broker


@pytest.fixture(scope="session")
def java_peer() -> Iterator[JavaPeer]:
    """Kafka's Java clients in one JVM for the whole run."""
    with started_java_peer() as peer:
        yield peer


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark session for the tests of the source and of the commands, which take an active one as it is:
    starting one takes longer than any of them.
    """
    from kafkacore.security.references import ALLOWED_PATHS
    from kafkacore.spark.session import spark_session

    folder = tmp_path_factory.mktemp("spark")
    (folder / "events").mkdir()
    # What Spark writes down of its queries: no secret may be in it (spark/test_secrets.py).
    configs = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file:{folder}/events"}
    configs["spark.eventLog.compress"] = "false"
    configs |= stuck_spark.TRACES
    with pytest.MonkeyPatch.context() as patch:
        # The planner and the workers inherit the environment that Spark is started with.
        patch.setenv(ALLOWED_PATHS, str(tmp_path_factory.getbasetemp()))
        with spark_session("kafkacore tests", folder, folder / "spark.log", configs=configs) as session:
            yield session


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test whose time is up says what Spark and Apache Kafka did, and leaves the next ones a session."""
    report = yield
    missing_tools.leave_out(item, call, report)
    gateway = stuck_spark.running_gateway()
    if gateway is not None and call.excinfo is not None and str(call.excinfo.value).startswith("Timeout (>"):
        report.sections.append(("Spark", stuck_spark.describe(gateway, getattr(item, "funcargs", {}))))
        stuck_spark.go_on(gateway)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say at the end which tools are missing, and how to get them."""
    reasons = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", ())]
    if lines := missing_tools.summary(reasons):
        terminalreporter.section("tests left out, because tools are missing")
        for line in lines:
            terminalreporter.line(line)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> RoomScheduling:
    """How pytest-xdist divides the tests: see ``workers.py``."""
    from workers import RoomScheduling

    return RoomScheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is in tests/system/integration, which needs Java and Apache Kafka's jars; set time limits.

    The limits of tests grow with ``KAFKACORE_TEST_BUDGET``.
    """
    for item in items:
        if "integration" in item.path.parts:
            item.add_marker("integration")
        own = item.get_closest_marker("timeout")
        limit_s = float(own.args[0] if own else config.getini("timeout"))
        least_s = UNIT_LIMIT_S if "unit" in item.path.parts else 0.0
        item.add_marker(pytest.mark.timeout(max(limit_s, least_s) * SCALE), append=False)
