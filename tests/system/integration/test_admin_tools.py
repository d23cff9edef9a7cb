"""Kafka's admin tools print the same for our broker as for Apache Kafka, except for names."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from peers.apache_kafka import ApacheKafka
from peers.both_brokers import TOOLS, BothBrokers, come_to_the_same
from peers.java_peer import JavaPeer, Sample
from peers.java_tools import JavaTools, Printed, started_java_tools
from peers.samples import T0

from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.structs import TopicPartition
from kafkacore.testing import EmbeddedCluster
from kafkacore.testing.embedded_broker import EmbeddedBroker

TOPICS = TOOLS + "TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
OFFSETS = TOOLS + "GetOffsetShell"
TRANSACTIONS = TOOLS + "TransactionsCommand"
REASSIGN = TOOLS + "reassign.ReassignPartitionsCommand"
FEATURES = TOOLS + "FeatureCommand"
QUORUM = TOOLS + "MetadataQuorumCommand"


@pytest.fixture(scope="module")
def tools() -> Iterator[JavaTools]:
    with started_java_tools() as running:
        yield running


@pytest.fixture(scope="module")
def configured_alike() -> Iterator[EmbeddedBroker]:
    """Start our broker with the settings that Apache Kafka has in these tests."""
    with EmbeddedBroker(log_retention_ms=-1, message_max_bytes=4194304) as broker:
        yield broker


@pytest.fixture(scope="module")
def brokers(apache_kafka: ApacheKafka, configured_alike: EmbeddedBroker, tools: JavaTools) -> BothBrokers:
    return BothBrokers(apache_kafka, configured_alike, tools)


def create_topic(brokers: BothBrokers, topic: str) -> None:
    """Create a topic, and wait until Apache Kafka's broker knows it, because tools ask before a change."""
    brokers.same(TOPICS, "--create", "--topic", topic)
    brokers.same(TOPICS, "--describe", "--topic", topic)


def test_topics_tool_makes_grows_describes_and_deletes(brokers: BothBrokers) -> None:
    topic = ("--topic", "tool-topics")
    assert brokers.same(TOPICS, "--create", *topic, "--partitions", "2", "--config", "retention.ms=5000") == [
        "Created topic tool-topics."
    ]
    described = brokers.same(TOPICS, "--describe", *topic)
    assert "Configs: retention.ms=5000,max.message.bytes=4194304" in described[0]
    assert len(described) == 3
    brokers.same(TOPICS, "--alter", *topic, "--partitions", "3")
    assert len(brokers.same(TOPICS, "--describe", *topic)) == 4
    again = brokers.both(TOPICS, "--alter", *topic, "--partitions", "3")
    assert [(one.status, "3 partition(s)" in one.out) for one in again] == [(1, True)] * 2
    assert "already exists" in brokers.same(TOPICS, "--create", *topic)[0]
    assert brokers.same(TOPICS, "--create", *topic, "--if-not-exists") == []
    assert brokers.same(TOPICS, "--describe", *topic, "--under-replicated-partitions") == []
    brokers.same(TOPICS, "--delete", *topic)
    assert "does not exist" in brokers.same(TOPICS, "--describe", *topic)[0]


def test_topics_tool_makes_no_topic_of_more_replicas_than_nodes(brokers: BothBrokers) -> None:
    printed = brokers.both(TOPICS, "--create", "--topic", "tool-replicas", "--replication-factor", "3")
    assert [one.status for one in printed] == [1, 1]
    assert all("Unable to replicate the partition 3 time(s)" in one.out for one in printed)


def test_configs_tool_alters_and_describes_a_topic(brokers: BothBrokers) -> None:
    create_topic(brokers, "tool-configs")
    entity = ("--entity-type", "topics", "--entity-name", "tool-configs")
    added = "segment.ms=77,cleanup.policy=[compact,delete],min.cleanable.dirty.ratio=1e-5"
    assert brokers.same(CONFIGS, "--alter", *entity, "--add-config", added)
    assert len(brokers.same(CONFIGS, "--describe", *entity)) == 1 + 3
    everything = brokers.same(CONFIGS, "--describe", *entity, "--all")
    assert sum(line.startswith("  ") for line in everything) == 33
    brokers.same(CONFIGS, "--alter", *entity, "--delete-config", "segment.ms,cleanup.policy")
    assert len(brokers.same(CONFIGS, "--describe", *entity)) == 1 + 1
    printed = brokers.both(CONFIGS, "--alter", *entity, "--add-config", "retention.ms=soon")
    assert [one.status for one in printed] == [1, 1]
    assert all("Invalid value soon for configuration retention.ms" in one.err for one in printed)


def test_configs_tool_alters_and_describes_brokers(brokers: BothBrokers) -> None:
    every, one = (
        ("--entity-type", "brokers", "--entity-default"),
        ("--entity-type", "brokers", "--entity-name", "1"),
    )
    try:
        brokers.same(
            CONFIGS, "--alter", *every, "--add-config", "log.retention.bytes=123456,max.connections=900"
        )
        brokers.same(CONFIGS, "--alter", *one, "--add-config", "log.retention.bytes=123457")
        assert len(brokers.same(CONFIGS, "--describe", *every)) == 1 + 2
        described = brokers.same(CONFIGS, "--describe", *one)
        assert len(described) == 1 + 1
        assert "DYNAMIC_BROKER_CONFIG:log.retention.bytes=123457" in described[1]
    finally:
        names = "log.retention.bytes,max.connections"
        brokers.same(CONFIGS, "--alter", *every, "--delete-config", names)
        brokers.same(CONFIGS, "--alter", *one, "--delete-config", "log.retention.bytes")
    assert len(brokers.same(CONFIGS, "--describe", *every)) == 1
    printed = brokers.both(CONFIGS, "--alter", *one, "--add-config", "num.partitions=3")
    assert all("InvalidRequestException: Cannot update" in each.err for each in printed)


def test_configs_tool_alters_and_describes_groups_and_client_metrics(brokers: BothBrokers) -> None:
    for entity, added in (
        (("--entity-type", "groups", "--entity-name", "tool-group"), "consumer.session.timeout.ms=50000"),
        (
            ("--entity-type", "client-metrics", "--entity-name", "tool-metrics"),
            "interval.ms=5000,metrics=[a,b]",
        ),
    ):
        brokers.same(CONFIGS, "--alter", *entity, "--add-config", added)
        assert any("=50" in line for line in same_in_any_order(brokers, CONFIGS, "--describe", *entity))
        printed = brokers.both(CONFIGS, "--alter", *entity, "--add-config", "no.such=1")
        assert [(one.status, "no.such" in one.err) for one in printed] == [(1, True)] * 2
    command = TOOLS + "ClientMetricsCommand"
    assert brokers.same(command, "--list") == ["tool-metrics"]
    changed = ("--alter", "--name", "tool-metrics", "--interval", "7000", "--match", "client_id=a.*")
    brokers.same(command, *changed)
    described = same_in_any_order(brokers, command, "--describe", "--name", "tool-metrics")
    assert any("7000" in line for line in described)
    brokers.same(command, "--delete", "--name", "tool-metrics")
    assert brokers.same(command, "--list") == [""]


def same_in_any_order(brokers: BothBrokers, tool: str, *asked: str) -> list[str]:
    """Return the sorted output lines once they are equal for both."""

    def lines(printed: Printed) -> list[str]:
        return sorted(printed.out.splitlines())

    _, ours = come_to_the_same(lambda: brokers.both(tool, *asked), lines, is_change=False)
    return lines(ours)


def test_configs_tool_alters_and_describes_rates_of_addresses(brokers: BothBrokers) -> None:
    one = ("--entity-type", "ips", "--entity-name", "10.9.8.7")
    every = ("--entity-type", "ips", "--entity-default")
    rate = ("--add-config", "connection_creation_rate=1000")
    for entity in (one, every):
        brokers.same(CONFIGS, "--alter", *entity, *rate)
        assert "connection_creation_rate=1000.0" in brokers.same(CONFIGS, "--describe", *entity)[0]
    assert len(brokers.same(CONFIGS, "--describe", "--entity-type", "ips")) == 2
    for entity in (one, every):
        brokers.same(CONFIGS, "--alter", *entity, "--delete-config", "connection_creation_rate")
    assert brokers.same(CONFIGS, "--describe", "--entity-type", "ips") == []


def test_configs_tool_sets_levels_of_loggers(brokers: BothBrokers) -> None:
    entity = ("--entity-type", "broker-loggers", "--entity-name", "1")
    ours = brokers.servers[1]
    name = "kafkacore.broker.process.server"
    before = logging.getLogger(name).level
    brokers.run(ours, CONFIGS, "--alter", *entity, "--add-config", f"{name}=DEBUG")
    described = brokers.run(ours, CONFIGS, "--describe", *entity).out.splitlines()
    assert f"  {name}=DEBUG sensitive=false synonyms={{}}" in described
    brokers.run(ours, CONFIGS, "--alter", *entity, "--delete-config", name)
    assert logging.getLogger(name).level == before == logging.NOTSET
    printed = brokers.both(CONFIGS, "--alter", *entity, "--add-config", "no.such=DEBUG")
    assert [(one.status, "Invalid broker logger(s): no.such" in one.err) for one in printed] == [
        (1, True)
    ] * 2


def test_tools_tell_where_records_are_and_take_them_away(
    brokers: BothBrokers, java_peer: JavaPeer, tmp_path: Path
) -> None:
    brokers.same(TOPICS, "--create", "--topic", "tool-records", "--partitions", "2")
    for servers in brokers.servers:
        for number in range(3):
            java_peer.produce(servers, "tool-records", [Sample(b"x" * 100, b"key", 1, T0 + number)])
    sizes = brokers.same(TOOLS + "LogDirsCommand", "--describe", "--topic-list", "tool-records")
    (folder,) = json.loads(sizes[-1])["brokers"][0]["logDirs"]
    assert sorted(one["size"] > 0 for one in folder["partitions"]) == [False, True]
    assert brokers.same(OFFSETS, "--topic", "tool-records") == ["tool-records:0:0", "tool-records:1:3"]
    deletion = tmp_path / "delete.json"
    asked = {"topic": "tool-records", "partition": 1, "offset": 2}
    deletion.write_text(json.dumps({"partitions": [asked], "version": 1}))
    assert brokers.same(TOOLS + "DeleteRecordsCommand", "--offset-json-file", str(deletion))
    where = ("--topic-partitions", "tool-records:1", "--time")
    moments = ("earliest", "latest", "max-timestamp", str(T0 + 2), str(T0 + 9))
    assert [brokers.same(OFFSETS, *where, moment) for moment in moments] == [
        ["tool-records:1:2"],
        ["tool-records:1:3"],
        ["tool-records:1:2"],
        ["tool-records:1:2"],
        [],
    ]


def test_transactions_tool_describes_the_producers_of_a_partition(
    brokers: BothBrokers, java_peer: JavaPeer
) -> None:
    brokers.same(TOPICS, "--create", "--topic", "tool-producers")
    for servers in brokers.servers:
        java_peer.produce(servers, "tool-producers", [Sample(b"x", None, 0, T0)])
    asked = ("describe-producers", "--topic", "tool-producers", "--partition", "0")
    theirs, ours = (printed.out.splitlines() for printed in brokers.both(TRANSACTIONS, *asked))
    assert ours[0].split() == theirs[0].split()
    # All columns except the producer id.
    assert [line.split()[1:] for line in ours[1:]] == [line.split()[1:] for line in theirs[1:]]
    assert len(ours) == 2


def test_versions_tool_can_use_the_latest_version_of_all_that_is_served(brokers: BothBrokers) -> None:
    line = re.compile(r"(\w+)\((\d+)\): (.*?),?$")
    theirs, ours = (
        {match[1]: match[3] for text in printed.out.splitlines() if (match := line.match(text.strip()))}
        for printed in brokers.both(TOOLS + "BrokerApiVersionsCommand")
    )
    usable = re.compile(r"\[usable: (\d+)\]")
    served = {name: found[1] for name, text in ours.items() if (found := usable.search(text))}
    possible = {name: found[1] for name, text in theirs.items() if (found := usable.search(text))}
    assert served == {name: possible[name] for name in served}
    assert {"IncrementalAlterConfigs", "DescribeLogDirs", "DescribeTopicPartitions"} <= served.keys()


def test_cluster_tool_finds_one_broker(brokers: BothBrokers) -> None:
    cluster = TOOLS + "ClusterTool"
    assert brokers.same(cluster, "cluster-id") == ["Cluster ID: ..."]
    assert len(brokers.same(cluster, "list-endpoints")) == 2
    assert len(brokers.same(REASSIGN, "--list")) == 1


def test_leader_election_tool_finds_every_partition_led_as_it_should_be(brokers: BothBrokers) -> None:
    brokers.same(TOPICS, "--create", "--topic", "tool-leaders")
    election = TOOLS + "LeaderElectionCommand"
    one = ("--topic", "tool-leaders", "--partition", "0")
    for kind in ("preferred", "unclean"):
        assert brokers.same(election, "--election-type", kind, *one) == [
            "Valid replica already elected for partitions tool-leaders-0"
        ]
        assert brokers.same(election, "--election-type", kind, "--all-topic-partitions") == []
    missing = ("--topic", "tool-leaders", "--partition", "7")
    printed = brokers.both(election, "--election-type", "preferred", *missing)
    assert [(one.status, "UnknownTopicOrPartition" in one.out + one.err) for one in printed] == [
        (1, True)
    ] * 2


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        (
            CONFIGS,
            (
                "--alter",
                "--entity-type",
                "brokers",
                "--entity-default",
                "--add-config",
                "queued.max.requests=3",
            ),
            "This broker has no setting queued.max.requests: one thread serves all requests.",
        ),
    ],
)
def test_what_is_not_served_fails_with_a_sentence_that_says_so(
    brokers: BothBrokers, tool: str, arguments: tuple[str, ...], words: str
) -> None:
    printed = brokers.run(brokers.servers[1], tool, *arguments)
    assert printed.status == 1
    assert words in printed.err


def test_quorum_tool_finds_the_one_voter(brokers: BothBrokers) -> None:
    printed = brokers.both(QUORUM, "describe", "--status")
    theirs, ours = (
        {key: value.strip() for key, _, value in (line.partition(":") for line in one.out.splitlines())}
        for one in printed
    )
    assert list(ours) == list(theirs)
    for name in ("LeaderId", "MaxFollowerLag", "MaxFollowerLagTimeMs", "CurrentObservers"):
        assert ours[name] == theirs[name], name
    printed = brokers.both(QUORUM, "describe", "--replication")
    (head, *theirs_rows), (our_head, *our_rows) = (
        [row.split() for row in p.out.splitlines()] for p in printed
    )
    assert our_head == head
    # All columns except the end offset and the times.
    assert [row[:2] + row[3:4] + row[-1:] for row in our_rows] == [
        row[:2] + row[3:4] + row[-1:] for row in theirs_rows
    ]
    assert our_rows[0][-1] == "Leader"


def test_transactions_tool_lists_none(brokers: BothBrokers) -> None:
    # Other tests leave transactional ids on Apache Kafka.
    none = ("--transactional-id-pattern", "no-such-.*")
    for more in (none, (*none, "--duration-filter", "5")):
        (header,) = brokers.same(TRANSACTIONS, "list", *more)
        assert header.split() == ["TransactionalId", "Coordinator", "ProducerId", "TransactionState"]


# ---- Reassignments and features ----------------------------------------------------------------------------


def test_reassign_tool_moves_partitions_of_a_simulated_cluster(tools: JavaTools, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    partitions = [
        {"topic": "moved", "partition": 0, "replicas": [3, 2]},
        {"topic": "moved", "partition": 1, "replicas": [1]},
    ]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    with (
        EmbeddedCluster(nodes=3) as cluster,
        KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin,
    ):
        admin.create_topics([NewTopic("moved", replica_assignments={0: [1, 2], 1: [2, 3]})])

        def run(*arguments: str) -> str:
            address = ("--bootstrap-server", cluster.bootstrap_servers)
            printed = tools.run(REASSIGN, *address, *arguments)
            assert printed.status == 0, printed
            return printed.out

        file = ("--reassignment-json-file", str(plan))
        done = run(*file, "--execute", "--throttle", "1000000")
        assert "Successfully started partition reassignments for moved-0,moved-1" in done
        verified = run(*file, "--verify")
        for name in ("moved-0", "moved-1"):
            assert f"Reassignment of partition {name} is completed." in verified
        assert "Clearing broker-level throttles on brokers 1,2,3" in verified
        assert "No partition reassignments found." in run("--list")
        (described,) = admin.describe_topics(["moved"])
        assert [each["replica_nodes"] for each in described["partitions"]] == [[3, 2], [1]]
        assert (cluster.leader("moved", 0), cluster.leader("moved", 1)) == (3, 1)
        # The tool refuses a node that is down.
        cluster.stop_node(2)
        admin.alter_partition_reassignments({TopicPartition("moved", 1): [2]})
        assert "moved-1: replicas: 2,1. adding: 2. removing: 1." in run("--list")
        admin.alter_partition_reassignments({TopicPartition("moved", 1): None})
        assert "No partition reassignments found." in run("--list")
        assert cluster.leader("moved", 1) == 1


def test_reassign_tool_moves_a_replica_to_the_folder_that_it_is_in(
    brokers: BothBrokers, tmp_path: Path
) -> None:
    create_topic(brokers, "tool-folders")
    plan, outputs = tmp_path / "plan.json", []
    for servers in brokers.servers:
        sizes = brokers.run(servers, TOOLS + "LogDirsCommand", "--describe", "--topic-list", "tool-folders")
        (folder,) = json.loads(sizes.out.splitlines()[-1])["brokers"][0]["logDirs"]
        for path in (folder["logDir"], "/no/such/folder"):
            wanted = {"topic": "tool-folders", "partition": 0, "replicas": [1], "log_dirs": [path]}
            plan.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
            printed = brokers.run(servers, REASSIGN, "--reassignment-json-file", str(plan), "--execute")
            outputs.append((printed.status, "LogDirNotFoundException" in printed.out + printed.err))
    assert outputs == [(0, False), (1, True)] * 2


def test_features_tool_changes_levels_and_refuses_others(brokers: BothBrokers) -> None:
    ours = brokers.servers[1]
    groups, described, transactions = brokers.run(ours, FEATURES, "describe").out.splitlines()
    assert groups.split()[:8] == [
        "Feature:", "group.version", "SupportedMinVersion:", "0", "SupportedMaxVersion:", "1",
        "FinalizedVersionLevel:", "1",
    ]  # fmt: skip
    assert transactions.split()[:8] == [
        "Feature:", "transaction.version", "SupportedMinVersion:", "0", "SupportedMaxVersion:", "2",
        "FinalizedVersionLevel:", "2",
    ]  # fmt: skip
    assert described.split()[:4] == ["Feature:", "metadata.version", "SupportedMinVersion:", "4.3-IV0"]
    same = brokers.same(FEATURES, "upgrade", "--feature", "metadata.version=30")
    assert same == ["metadata.version was upgraded to 30."]
    refused = brokers.run(ours, FEATURES, "upgrade", "--feature", "transaction.version=3")
    assert refused.status == 1
    assert "only supports versions 0-2" in refused.out
    lowered = brokers.same(FEATURES, "downgrade", "--feature", "transaction.version=1")
    assert lowered == ["transaction.version was downgraded to 1."]
    assert "FinalizedVersionLevel: 1" in brokers.run(ours, FEATURES, "describe").out
    raised = brokers.same(FEATURES, "upgrade", "--feature", "transaction.version=2")
    assert raised == ["transaction.version was upgraded to 2."]
    lowered = brokers.same(FEATURES, "downgrade", "--feature", "group.version=0")
    assert lowered == ["group.version was downgraded to 0."]
    raised = brokers.same(FEATURES, "upgrade", "--feature", "group.version=1")
    assert raised == ["group.version was upgraded to 1."]
