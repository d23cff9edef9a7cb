"""Kafka's tools for ACLs, users and quotas print the same for our broker; its dump tool reads our log."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from peers.both_brokers import ASKING, BothBrokers, come_to_the_same
from peers.jars import run_java
from peers.java_tools import JavaTools, Printed, started_java_tools
from peers.secure_kafka import SecureKafka

from kafkacore.broker.config.config_keys import STANDARD_AUTHORIZER
from kafkacore.broker.metadata.metadata_log import FILE_NAME
from kafkacore.testing.embedded_broker import EmbeddedBroker

ACLS = "org.apache.kafka.tools.AclCommand"
CONFIGS = "kafka.admin.ConfigCommand"
DUMP = "org.apache.kafka.tools.DumpLogSegments"


@pytest.fixture(scope="module")
def tools() -> Iterator[JavaTools]:
    with started_java_tools() as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("guarded")


@pytest.fixture(scope="module")
def brokers(secure_kafka: SecureKafka, folder: Path, tools: JavaTools) -> Iterator[BothBrokers]:
    settings = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
    with EmbeddedBroker(folder, **settings) as ours:
        yield BothBrokers(secure_kafka, ours, tools)


def sorted_lines(brokers: BothBrokers, tool: str, *arguments: str) -> list[str]:
    """Return the output of the tool, which is the same on both brokers except for the order of entries."""

    def summary(printed: Printed) -> object:
        return sorted(printed.out.split()), printed.status

    # The ACL tool lists the entries after each action, and can repeat an action.
    is_change = tool != ACLS and not ASKING & {*arguments}
    theirs, ours = come_to_the_same(lambda: brokers.both(tool, *arguments), summary, is_change=is_change)
    assert summary(ours) == summary(theirs), ours.err
    return sorted(ours.out.splitlines())


def test_acls_tool_adds_lists_and_removes(brokers: BothBrokers) -> None:
    patterns = ("--topic", "tool-acl-", "--resource-pattern-type", "prefixed")
    who = ("--allow-principal", "User:tooled", "--allow-host", "10.1.2.3")
    sorted_lines(brokers, ACLS, "--add", *who, "--operation", "Read", "--operation", "Write", *patterns)
    sorted_lines(brokers, ACLS, "--add", "--deny-principal", "User:tooled", "--topic", "tool-acl-secret")
    listed = sorted_lines(
        brokers, ACLS, "--list", "--topic", "tool-acl-secret", "--resource-pattern-type", "match"
    )
    assert sum("User:tooled" in line for line in listed) == 3
    literal = sorted_lines(brokers, ACLS, "--list", "--topic", "tool-acl-secret")
    assert sum("permissionType=DENY" in line for line in literal) == 1
    sorted_lines(brokers, ACLS, "--remove", "--force", *patterns)
    assert not any("User:tooled" in line for line in sorted_lines(brokers, ACLS, "--list", *patterns))


def test_configs_tool_sets_describes_and_deletes_users_and_quotas(brokers: BothBrokers) -> None:
    user = ("--entity-type", "users", "--entity-name", "tool-user")
    both = (*user, "--entity-type", "clients", "--entity-default")
    secret = "SCRAM-SHA-256=[iterations=8192,password=tool-password]"
    assert sorted_lines(brokers, CONFIGS, "--alter", *user, "--add-config", secret)
    assert sorted_lines(brokers, CONFIGS, "--alter", *user, "--add-config", "producer_byte_rate=1024")
    assert sorted_lines(brokers, CONFIGS, "--alter", *both, "--add-config", "request_percentage=12.5")
    described = sorted_lines(brokers, CONFIGS, "--describe", *user)
    assert any("iterations=8192" in line for line in described)
    assert any("producer_byte_rate=1024.0" in line for line in described)
    assert any(
        "request_percentage=12.5" in line for line in sorted_lines(brokers, CONFIGS, "--describe", *both)
    )
    sorted_lines(brokers, CONFIGS, "--alter", *user, "--delete-config", "SCRAM-SHA-256")
    assert not any("iterations" in line for line in sorted_lines(brokers, CONFIGS, "--describe", *user))


def test_kafka_s_dump_reads_the_metadata_log(brokers: BothBrokers, folder: Path, tmp_path: Path) -> None:
    user = ("--entity-type", "users", "--entity-name", "dumped-user")
    secret = "SCRAM-SHA-512=[password=dumped-password]"
    brokers.run(brokers.servers[1], CONFIGS, "--alter", *user, "--add-config", secret)
    brokers.run(brokers.servers[1], CONFIGS, "--alter", *user, "--add-config", "consumer_byte_rate=77")
    who = ("--allow-principal", "User:dumped", "--group", "dumped-group", "--operation", "Read")
    brokers.run(brokers.servers[1], ACLS, "--add", *who)
    segment = tmp_path / "00000000000000000000.log"
    shutil.copy(folder / FILE_NAME, segment)
    printed = run_java(DUMP, "--cluster-metadata-decoder", "--files", str(segment)).decode()
    for record in ("USER_SCRAM_CREDENTIAL_RECORD", "CLIENT_QUOTA_RECORD", "ACCESS_CONTROL_ENTRY_RECORD"):
        assert f'"type":"{record}","version":0' in printed, printed
    assert '"name":"dumped-user"' in printed
    assert '"resourceName":"dumped-group"' in printed
    assert '"value":77.0' in printed
    assert "isvalid: false" not in printed
