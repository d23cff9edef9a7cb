"""Kafka's tools for groups, and its verifiable producer and consumer, on both brokers."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from peers.apache_kafka import ApacheKafka
from peers.both_brokers import TOOLS, BothBrokers
from peers.jars import java_command, run_java
from peers.java_peer import JavaPeer, Sample
from peers.java_tools import JavaTools, started_java_tools
from peers.samples import T0

from kafkacore.cli.main import main
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.testing.embedded_broker import EmbeddedBroker

GROUPS = TOOLS + "consumer.group.ConsumerGroupCommand"
WRITER, READER = TOOLS + "VerifiableProducer", TOOLS + "VerifiableConsumer"


@pytest.fixture(scope="module")
def tools() -> Iterator[JavaTools]:
    with started_java_tools() as running:
        yield running


@pytest.fixture(scope="module")
def brokers(apache_kafka: ApacheKafka, our_groups: EmbeddedBroker, tools: JavaTools) -> BothBrokers:
    return BothBrokers(apache_kafka, our_groups, tools)


class Row(NamedTuple):
    """A line that the tool prints for a partition: its offsets, and whether it has an owner."""

    partition: int
    committed: str
    end: str
    lag: str
    is_owned: bool


def rows(lines: list[str]) -> list[Row]:
    """Parse the output of ``--describe``."""
    words = [line.split() for line in lines if line]
    assert words[0][:6] == ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
    return sorted(Row(int(row[2]), *row[3:6], is_owned=row[6] != "-") for row in words[1:])


def groups_alike(brokers: BothBrokers, topic: str, java_peer: JavaPeer) -> tuple[str, str]:
    """Create on both brokers a topic with a group, and return the tool's arguments for the group.

    The topic has two partitions with ten records each. The group has committed the offsets 4 and 7.
    """
    group = f"{topic}-group"
    for servers in brokers.servers:
        java_peer.create_topic(servers, topic, 2)
        java_peer.produce(servers, topic, [Sample(b"x", None, n % 2, T0 + n) for n in range(20)])
        java_peer.alter_group_offsets(servers, group, topic, {0: (4, "", -1), 1: (7, "", -1)})
    return "--group", group


def test_lag_exporter_reports_what_the_tool_prints(
    brokers: BothBrokers, java_peer: JavaPeer, capsys: pytest.CaptureFixture[str]
) -> None:
    name = groups_alike(brokers, "groups-lag", java_peer)
    expected = rows(brokers.same(GROUPS, "--describe", *name))
    for servers in brokers.servers:
        assert main(["lag-exporter", "--json", "--groups", name[1], "--bootstrap", servers]) == 0
        (group,) = json.loads(capsys.readouterr().out)["groups"]
        assert (group["state"], group["members"]) == ("Empty", 0)
        found = [
            Row(each["partition"], str(each["offset"]), str(each["end_offset"]), str(each["lag"]), False)
            for each in group["partitions"]
        ]
        assert found == expected
        age_s = SYSTEM_CLOCK.wall_ms() / 1000 - T0 / 1000
        assert group["max_lag_seconds"] == pytest.approx(age_s, rel=0.02)


def test_groups_tool_lists_and_describes_a_group(brokers: BothBrokers, java_peer: JavaPeer) -> None:
    name = groups_alike(brokers, "groups-described", java_peer)
    for listed in brokers.both(GROUPS, "--list"):
        assert name[1] in listed.out.splitlines()
    for listed in brokers.both(GROUPS, "--list", "--state", "Empty"):
        assert [name[1], "Empty"] in [line.split() for line in listed.out.splitlines()]
    assert rows(brokers.same(GROUPS, "--describe", *name)) == [
        Row(0, "4", "10", "6", False),
        Row(1, "7", "10", "3", False),
    ]
    (state,) = (line.split() for line in brokers.same(GROUPS, "--describe", *name, "--state")[2:])
    assert (state[0], state[-2:]) == (name[1], ["Empty", "0"])
    assert len(brokers.same(GROUPS, "--describe", *name, "--members", "--verbose")) == 2
    printed = brokers.both(GROUPS, "--describe", "--group", "unknown")
    assert all("GroupIdNotFoundException: Group unknown not found." in one.out for one in printed)


#: In this order: the tool's argument, and the offsets of both partitions afterwards.
RESETS = (
    ("--to-earliest", ["0", "0"]),
    ("--to-offset 99", ["10", "10"]),
    ("--shift-by -5", ["5", "5"]),
    # T0 + 9 is the fifth record of partition 1; the next one of partition 0 is T0 + 10.
    ("--to-datetime 2023-11-14T22:13:20.009", ["5", "4"]),
    ("--to-current", ["5", "4"]),
    ("--to-latest", ["10", "10"]),
)


def test_groups_tool_resets_offsets(brokers: BothBrokers, java_peer: JavaPeer) -> None:
    name = groups_alike(brokers, "groups-reset", java_peer)

    def reset(to: str, how: str) -> list[str]:
        printed = brokers.same(GROUPS, "--reset-offsets", *name, "--all-topics", *to.split(), how)
        return [row[-1] for row in sorted(line.split() for line in printed[2:])]

    assert reset("--to-offset 3", "--dry-run") == ["3", "3"]
    assert [row.committed for row in rows(brokers.same(GROUPS, "--describe", *name))] == ["4", "7"]
    for to, offsets in RESETS:
        assert reset(to, "--execute") == offsets, to
        found = [java_peer.group_offsets(servers, name[1], "groups-reset") for servers in brokers.servers]
        committed = [[str(one[number][0]) for number in (0, 1)] for one in found]
        assert committed == [offsets] * 2, to


def test_groups_tool_deletes_offsets_and_groups(brokers: BothBrokers, java_peer: JavaPeer) -> None:
    name = groups_alike(brokers, "groups-deleted", java_peer)
    brokers.same(GROUPS, "--delete-offsets", *name, "--topic", "groups-deleted:0")
    assert rows(brokers.same(GROUPS, "--describe", *name)) == [Row(1, "7", "10", "3", False)]
    assert "was successful" in brokers.same(GROUPS, "--delete", *name)[0]
    assert "GroupIdNotFoundException" in "".join(brokers.same(GROUPS, "--delete", *name))
    assert all(name[1] not in listed.out.splitlines() for listed in brokers.both(GROUPS, "--list"))


def events(text: str, kind: str) -> list[dict[str, Any]]:
    """Return the events of one kind that a verifiable client has printed."""
    return [event for event in map(json.loads, text.splitlines()) if event["name"] == kind]


def written_by_tool(servers: str, topic: str) -> list[dict[str, Any]]:
    """Write 300 records, and return the events of the producer without their timestamps.

    The tool prints from a background thread, so that it cannot share a process with other tools.
    """
    options = ("--bootstrap-server", servers, "--topic", topic, "--max-messages", "300", "--acks", "-1")
    sent = events(run_java(WRITER, *options).decode(), "producer_send_success")
    return [{key: value for key, value in event.items() if key != "timestamp"} for event in sent]


class RunningReader:
    """A verifiable consumer in a process of its own."""

    def __init__(self, servers: str, topic: str) -> None:
        options = ("--bootstrap-server", servers, "--topic", topic, "--group-id", f"{topic}-group")
        self._process = subprocess.Popen(
            java_command(READER, *options, "--verbose", "--reset-policy", "earliest"), stdout=subprocess.PIPE
        )
        self.output = ""

    def read_until_committed(self, offset: int) -> None:
        """Wait until the consumer has committed this offset, which may take more than one commit."""
        assert self._process.stdout is not None
        while not any(
            [place["offset"] for place in event["offsets"]] == [offset]
            for event in events(self.output, "offsets_committed")
        ):
            line = self._process.stdout.readline()
            assert line, f"the consumer exited after this output: {self.output}"
            self.output += line.decode()

    def leave(self) -> None:
        """Stop the consumer with SIGTERM, as an operator would."""
        assert self._process.stdout is not None
        self._process.send_signal(signal.SIGTERM)
        self.output += self._process.stdout.read().decode()

    def __enter__(self) -> RunningReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def test_verifiable_clients_tell_the_same_and_the_group_is_seen_while_one_reads(
    brokers: BothBrokers, java_peer: JavaPeer
) -> None:
    topic = "verifiable"
    name = ("--group", f"{topic}-group")
    for servers in brokers.servers:
        java_peer.create_topic(servers, topic, 1)
    theirs, ours = (written_by_tool(servers, topic) for servers in brokers.servers)
    assert ours == theirs
    assert [(event["value"], event["offset"]) for event in ours] == [(str(n), n) for n in range(300)]
    first, second = (RunningReader(servers, topic) for servers in brokers.servers)
    with first, second:
        for reader in (first, second):
            reader.read_until_committed(300)
        assert rows(brokers.both(GROUPS, "--describe", *name)[1].out.splitlines()) == [
            Row(0, "300", "300", "0", True)
        ]
        (state,) = (line.split() for line in brokers.same(GROUPS, "--describe", *name, "--state")[2:])
        assert state[-3:] == ["range", "Stable", "1"]
        members = [one.out.split() for one in brokers.both(GROUPS, "--describe", *name, "--members")]
        assert [(words[:4], words[-1]) for words in members] == [(members[0][:4], "1")] * 2
        refused = brokers.same(GROUPS, "--reset-offsets", *name, "--all-topics", "--to-earliest", "--execute")
        assert "Assignments can only be reset if the group" in "".join(refused)
        for reader in (first, second):
            reader.leave()
    for kind, key in (("record_data", "value"), ("offsets_committed", "success")):
        assert {event[key] for event in events(first.output, kind)} == {
            event[key] for event in events(second.output, kind)
        }
    assert [event["offset"] for event in events(second.output, "record_data")] == list(range(300))
    for kind in ("partitions_assigned", "partitions_revoked", "shutdown_complete"):
        assert len(events(second.output, kind)) == len(events(first.output, kind)) == 1
    assert rows(brokers.same(GROUPS, "--describe", *name)) == [Row(0, "300", "300", "0", False)]


def test_performance_tools_write_and_read(brokers: BothBrokers, java_peer: JavaPeer) -> None:
    topic, servers = "performance", brokers.servers[1]
    java_peer.create_topic(servers, topic, 3)
    written = brokers.run(
        servers,
        TOOLS + "ProducerPerformance",
        *("--topic", topic, "--num-records", "20000", "--record-size", "100", "--throughput", "-1"),
    )
    assert written.out.splitlines()[-1].startswith("20000 records sent")
    asked = ("--topic", topic, "--num-records", "20000", "--timeout", "20000", "--group", "performers")
    read = brokers.run(servers, TOOLS + "ConsumerPerformance", *asked)
    names, figures = (line.split(", ") for line in read.out.splitlines())
    assert figures[names.index("data.consumed.in.nMsg")] == "20000"
    described = rows(brokers.run(servers, GROUPS, "--describe", "--group", "performers").out.splitlines())
    assert [row.lag for row in described] == ["0"] * 3
    assert sum(int(row.end) for row in described) == 20_000
