"""Our commands and Kafka's own tools print the same facts of the same cluster."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from eventually import LONG_TRANSACTION_MS, eventually
from model.authorisation_requests import made
from model.broker_harness import batch
from model.raw_line import Line
from peers.apache_kafka import ApacheKafka
from peers.java_tools import JavaTools, started_java_tools

from kafkacore import KafkaConsumer, KafkaProducer
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.cli.main import main
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.protocol.generated.produce import ProduceRequest
from kafkacore.structs import OffsetAndMetadata, TopicPartition
from kafkacore.testing.embedded_broker import EmbeddedBroker

TOOLS = "org.apache.kafka.tools."
CONFIGS = "kafka.admin.ConfigCommand"
GROUPS = TOOLS + "consumer.group.ConsumerGroupCommand"
#: Tools that take the address before the action.
ADDRESS_FIRST = {TOOLS + "TransactionsCommand", TOOLS + "FeatureCommand", TOOLS + "MetadataQuorumCommand"}
T0 = 1_700_000_000_000
TOPIC = "facts"


class Both:
    """Runs Kafka's tools and our commands on one cluster."""

    def __init__(self, servers: str, tools: JavaTools, capsys: pytest.CaptureFixture[str]) -> None:
        self.servers = servers
        self._tools = tools
        self._capsys = capsys

    def theirs(self, tool: str, *arguments: str) -> str:
        address = ("--bootstrap-server", self.servers)
        words = (*address, *arguments) if tool in ADDRESS_FIRST else (*arguments, *address)
        printed = self._tools.run(tool, *words)
        assert printed.status == 0, printed
        return printed.out

    def ours(self, words: str) -> str:
        self._capsys.readouterr()
        status = main([*words.split(), "--bootstrap", self.servers])
        shown = self._capsys.readouterr()
        assert status == 0, shown
        return shown.out

    def our_json(self, words: str) -> Any:
        return json.loads(self.ours(f"{words} --json"))


@pytest.fixture(scope="module")
def tools() -> Iterator[JavaTools]:
    with started_java_tools() as running:
        yield running


@pytest.fixture(scope="module")
def servers(apache_kafka: ApacheKafka) -> str:
    """Create a topic with 20 records in two partitions, whose timestamps differ by one millisecond."""
    address = str(apache_kafka.bootstrap_servers)
    with KafkaAdminClient(bootstrap_servers=address) as admin:
        admin.create_topics([NewTopic(TOPIC, num_partitions=2)], wait_for_metadata=True)
        with KafkaProducer(bootstrap_servers=address) as producer:
            for number in range(20):
                producer.send(TOPIC, b"value", partition=number % 2, timestamp_ms=T0 + number)
        admin.alter_group_offsets(
            "facts-idle",
            {TopicPartition(TOPIC, 0): OffsetAndMetadata(4), TopicPartition(TOPIC, 1): OffsetAndMetadata(7)},
        )
    return address


@pytest.fixture
def both(servers: str, tools: JavaTools, capsys: pytest.CaptureFixture[str]) -> Both:
    return Both(servers, tools, capsys)


def words_of(text: str) -> list[list[str]]:
    """Return the words of each line that is not blank."""
    return [line.split() for line in text.splitlines() if line.strip()]


def same(theirs: Callable[[], object], ours: Callable[[], object]) -> None:
    """Wait until both are equal: a cluster applies a change after it has answered."""
    seen: list[object] = []

    def look() -> None:
        seen[:] = [theirs(), ours()]

    look()
    eventually(lambda: seen[0] == seen[1], lambda: seen, step=look)


def test_groups_and_lag_are_the_same(both: Both) -> None:
    listed = both.theirs(GROUPS, "--list", "--state")
    ours = {(each["group"], each["state"]) for each in both.our_json("groups list")}
    assert ("facts-idle", "Empty") in ours
    assert {("facts-idle", "Empty")} <= {(row[0], row[-1]) for row in words_of(listed)}
    with KafkaConsumer(
        TOPIC, bootstrap_servers=both.servers, group_id="facts-busy", auto_offset_reset="earliest",
        enable_auto_commit=False,
    ) as consumer:  # fmt: skip
        eventually(lambda: len(consumer.assignment()) == 2, step=lambda: consumer.poll(100))
        consumer.commit({TopicPartition(TOPIC, 1): OffsetAndMetadata(3)})
        for group in ("facts-idle", "facts-busy"):
            theirs = words_of(both.theirs(GROUPS, "--describe", "--group", group))
            table = both.ours(f"groups describe {group}").split("\n\n")[0]
            found = [row for row in theirs if row[0] == group]
            assert len(found) == 2
            assert sorted(words_of(table)[2:]) == sorted(found)
        theirs = words_of(both.theirs(GROUPS, "--describe", "--group", "facts-busy", "--members"))[-1]
        (group_rows,) = both.our_json("groups describe facts-busy")
        (member,) = group_rows["members"]
        assert theirs == [
            "facts-busy", member["member_id"], member["host"], member["client_id"], str(member["partitions"])
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("target", "offsets"),
    [
        ("--to-earliest", [0, 0]),
        ("--to-latest", [10, 10]),
        ("--to-current", [4, 7]),
        ("--to-offset 99", [10, 10]),
        ("--shift-by -5", [0, 2]),
        ("--to-datetime 2023-11-14T22:13:20.009", [5, 4]),
        ("--by-duration P1D", [10, 10]),
    ],
)
def test_plans_of_resets_are_the_same(both: Both, target: str, offsets: list[int]) -> None:
    scope = ("--reset-offsets", "--group", "facts-idle", "--all-topics", *target.split())
    exported = [
        row for row in csv.reader(both.theirs(GROUPS, *scope, "--export").splitlines()) if len(row) == 3
    ]
    reset = f"groups reset facts-idle --all-topics {target}"
    assert sorted(exported) == [[TOPIC, str(number), str(offset)] for number, offset in enumerate(offsets)]
    assert sorted(csv.reader(both.ours(f"{reset} --export").splitlines())) == sorted(exported)


def test_each_reads_the_exported_offsets_of_the_other(both: Both, tmp_path: Path) -> None:
    scope = ("--reset-offsets", "--group", "facts-files")
    whole = (*scope, "--topic", TOPIC, "--to-offset", "6", "--export")
    file = tmp_path / "theirs.csv"
    file.write_text(
        "".join(line + "\n" for line in both.theirs(GROUPS, *whole).splitlines() if TOPIC in line)
    )
    moves = both.our_json(f"groups reset facts-files --from-file {file} --execute")
    assert [move["new_offset"] for move in moves] == [6, 6]
    file = tmp_path / "ours.csv"
    file.write_text(both.ours("groups reset facts-files --all-topics --shift-by 2 --export"))
    both.theirs(GROUPS, *scope, "--from-file", str(file), "--execute")
    (group,) = both.our_json("groups describe facts-files")
    assert [each["current_offset"] for each in group["partitions"]] == [8, 8]


def test_topics_and_offsets_are_the_same(both: Both) -> None:
    described = both.theirs(TOOLS + "TopicCommand", "--describe", "--topic", TOPIC)
    (topic,) = both.our_json(f"topics describe {TOPIC}")
    assert [
        (int(number), int(leader), replicas, isr)
        for number, leader, replicas, isr in re.findall(
            r"Partition: (\d+)\s+Leader: (\d+)\s+Replicas: (\S+)\s+Isr: (\S+)", described
        )
    ] == [
        (
            each["partition_index"],
            each["leader_id"],
            ",".join(map(str, each["replica_nodes"])),
            ",".join(map(str, each["isr_nodes"])),
        )
        for each in topic["partitions"]
    ]
    for time, words, name in (
        ("-2", "", "earliest"),
        ("-1", "", "latest"),
        ("-3", "--max-timestamp", "offset"),
        (str(T0 + 9), f"--at {T0 + 9}", "offset"),
    ):
        theirs = both.theirs(TOOLS + "GetOffsetShell", "--topic", TOPIC, "--time", time)
        rows = both.our_json(f"offsets {TOPIC} {words}")
        assert theirs.split() == [f"{row['topic']}:{row['partition']}:{row[name]}" for row in rows]


def configs(text: str) -> dict[str, str]:
    """Parse the lines ``name=value sensitive=… synonyms={…}`` of ``kafka-configs.sh``."""
    return dict(re.findall(r"^  ([\w.$-]+)=(.*?) sensitive=", text, re.MULTILINE))


@pytest.mark.parametrize(
    ("entity", "name", "change", "is_all"),
    [
        ("topics", TOPIC, "segment.ms=70000", True),
        ("topics", TOPIC, "cleanup.policy=compact", False),
        ("brokers", "1", "log.retention.ms=98765", True),
        ("groups", "facts-idle", "consumer.session.timeout.ms=46000", False),
        ("client-metrics", "facts-subscription", "interval.ms=60000", False),
        ("broker-loggers", "1", "kafka.log.LogCleaner=ERROR", True),
    ],
)
def test_configurations_are_the_same(both: Both, entity: str, name: str, change: str, is_all: bool) -> None:
    kind = entity.removesuffix("s") if entity != "client-metrics" else entity
    config, _, value = change.partition("=")
    asked = ("--describe", "--entity-type", entity, "--entity-name", name)

    def ours() -> dict[str, str]:
        rows = both.our_json(f"configs describe {kind} {name}" + " --all" * is_all)
        return {row["config"]: "null" if row["value"] is None else row["value"] for row in rows}

    both.ours(f"configs alter {kind} {name} --set {change}")
    try:
        eventually(lambda: ours().get(config) == value, lambda: ours())
        same(
            lambda: configs(both.theirs(CONFIGS, *asked, *["--all"] * (is_all and kind != "broker-logger"))),
            ours,
        )
    finally:
        both.ours(f"configs reset {kind} {name} --config {config}")


def test_quotas_are_the_same(both: Both) -> None:
    both.ours("quotas alter --user facts-anna --set producer_byte_rate=1048576 --set request_percentage=12.5")
    both.ours("quotas alter --user facts-anna --client-id report --set consumer_byte_rate=2048")
    both.ours("quotas alter --default-client-id --set consumer_byte_rate=4096")

    def theirs(*entity: str) -> dict[str, float]:
        shown = both.theirs(CONFIGS, "--describe", *entity)
        return {name: float(value) for name, value in re.findall(r"(\w+_\w+)=([\d.E]+)", shown)}

    def ours(words: str, entity: dict[str, str | None]) -> dict[str, float]:
        found = both.our_json(f"quotas describe {words}")
        return next((each["quotas"] for each in found if each["entity"] == entity), {})

    anna = ("--entity-type", "users", "--entity-name", "facts-anna")
    try:
        same(lambda: theirs(*anna), lambda: ours("--user facts-anna", {"user": "facts-anna"}))
        same(
            lambda: theirs(*anna, "--entity-type", "clients", "--entity-name", "report"),
            lambda: ours("--user facts-anna", {"user": "facts-anna", "client-id": "report"}),
        )
        same(
            lambda: theirs("--entity-type", "clients", "--entity-default"),
            lambda: ours("--default-client-id", {"client-id": None}),
        )
        assert ours("--default-client-id", {"client-id": None}) == {"consumer_byte_rate": 4096.0}
    finally:
        both.ours("quotas alter --default-client-id --delete consumer_byte_rate")


def test_log_directories_are_the_same(both: Both) -> None:
    def theirs() -> list[tuple[str, str, int]]:
        shown = both.theirs(TOOLS + "LogDirsCommand", "--describe", "--topic-list", TOPIC)
        folders = json.loads(shown.splitlines()[-1])["brokers"][0]["logDirs"]
        return sorted(
            (one["logDir"], each["partition"], each["size"]) for one in folders for each in one["partitions"]
        )

    def ours() -> list[tuple[str, str, int]]:
        return sorted(
            (folder["log_dir"], f"{each['topic']}-{each['partition']}", each["size"])
            for folder in both.our_json(f"log-dirs {TOPIC}")
            for each in folder["partitions"]
        )

    same(theirs, ours)
    assert len(ours()) == 2


def test_cluster_is_the_same(both: Both) -> None:
    cluster = both.our_json("cluster describe")
    assert both.theirs(TOOLS + "ClusterTool", "cluster-id").split()[-1] == cluster["cluster_id"]
    features = {row["feature"] for row in both.our_json("cluster features")}
    assert features == set(re.findall(r"Feature: (\S+)", both.theirs(TOOLS + "FeatureCommand", "describe")))
    status = both.theirs(TOOLS + "MetadataQuorumCommand", "describe", "--status")
    quorum = both.our_json("cluster quorum")
    assert re.findall(r"(?:LeaderId|LeaderEpoch):\s+(\d+)", status) == [
        str(quorum["leader_id"]), str(quorum["leader_epoch"])
    ]  # fmt: skip


@pytest.mark.parametrize("broker", ["apache_kafka", "our_broker"])
def test_transactions_are_the_same_and_ours_aborts_one(
    broker: str, request: pytest.FixtureRequest, tools: JavaTools, capsys: pytest.CaptureFixture[str]
) -> None:
    both = Both(request.getfixturevalue(broker).bootstrap_servers, tools, capsys)
    tool = TOOLS + "TransactionsCommand"
    with KafkaAdminClient(bootstrap_servers=both.servers) as admin:
        admin.create_topics([NewTopic("facts-open", num_partitions=1)], wait_for_metadata=True)
    producer = KafkaProducer(
        bootstrap_servers=both.servers,
        transactional_id="facts-payments",
        transaction_timeout_ms=LONG_TRANSACTION_MS,
    )
    try:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("facts-open", b"open").get(30)
        (ours,) = both.our_json("transactions describe facts-payments")
        listed = [row for row in words_of(both.theirs(tool, "list")) if row[0] == "facts-payments"]
        assert listed == [["facts-payments", str(ours["coordinator"]), str(ours["producer_id"]), "Ongoing"]]
        assert [
            row for row in words_of(both.ours("transactions list")) if row[0] == "facts-payments"
        ] == listed
        described = words_of(both.theirs(tool, "describe", "--transactional-id", "facts-payments"))[-1]
        assert described[0:5] == [
            str(ours["coordinator"]), "facts-payments", str(ours["producer_id"]),
            str(ours["producer_epoch"]), "Ongoing",
        ]  # fmt: skip
        assert ours["partitions"] == ["facts-open:0"]
        writing = ("describe-producers", "--topic", "facts-open", "--partition", "0")
        theirs = words_of(both.theirs(tool, *writing))[-1]
        (row,) = both.our_json("transactions producers facts-open:0")
        assert theirs[:2] == [str(row["producer_id"]), str(row["producer_epoch"])]
        assert theirs[-1] == str(row["transaction_start_offset"]) == "0"
        assert both.our_json("transactions find-hanging") == []
        shown = both.ours("transactions abort facts-open:0 --start-offset 0")
        assert shown.startswith(f"aborted the transaction of producer {ours['producer_id']} ")
        same(lambda: words_of(both.theirs(tool, *writing))[-1][-1], lambda: "None")
        assert both.our_json("transactions producers facts-open:0")[0]["transaction_start_offset"] is None
        assert both.ours("transactions fence facts-payments").startswith(
            "fenced the producers of facts-payments"
        )
    finally:
        producer.close(0)


@pytest.fixture
def unverified_broker() -> Iterator[EmbeddedBroker]:
    """Start a broker on which a batch can begin a transaction that its coordinator does not know."""
    with EmbeddedBroker(transaction_partition_verification_enable=False) as broker:
        yield broker


def test_hanging_transactions_are_the_same(
    unverified_broker: EmbeddedBroker, tools: JavaTools, capsys: pytest.CaptureFixture[str]
) -> None:
    both = Both(unverified_broker.bootstrap_servers, tools, capsys)
    tool = TOOLS + "TransactionsCommand"
    long_ago_ms = SYSTEM_CLOCK.wall_ms() - 7_200_000
    with KafkaAdminClient(bootstrap_servers=both.servers) as admin:
        admin.create_topics([NewTopic("hung", num_partitions=3)], wait_for_metadata=True)
    producer = KafkaProducer(
        bootstrap_servers=both.servers,
        transactional_id="hung-known",
        transaction_timeout_ms=LONG_TRANSACTION_MS,
    )
    try:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("hung", b"open", partition=0, timestamp_ms=long_ago_ms).get(30)
        (known,) = both.our_json("transactions describe hung-known")
        assert both.our_json("transactions find-hanging") == []
        # Partition 1 is not part of the known transaction, and the other producer has none.
        for partition, producer_id in ((1, known["producer_id"]), (2, 4711)):
            begin_unverified(both.servers, "hung", partition, producer_id, long_ago_ms)
        ours = both.our_json("transactions find-hanging --topic hung")
        assert [(row["partition"], row["producer_id"], row["start_offset"]) for row in ours] == [
            (1, known["producer_id"], 0), (2, 4711, 0),
        ]  # fmt: skip
        theirs = words_of(both.theirs(tool, "find-hanging", "--topic", "hung"))[-2:]
        fields = ("topic", "partition", "producer_id", "producer_epoch", "coordinator_epoch", "start_offset")
        assert sorted(row[:6] for row in theirs) == [[str(row[name]) for name in fields] for row in ours]
        assert both.our_json("transactions find-hanging --max-transaction-timeout PT3H") == []
        assert both.our_json("transactions find-hanging --topic hung:0") == []
        for row in ours:
            both.ours(f"transactions abort hung:{row['partition']} --start-offset {row['start_offset']}")
        assert both.our_json("transactions find-hanging") == []
    finally:
        producer.close(0)


def begin_unverified(servers: str, topic: str, partition: int, producer_id: int, timestamp_ms: int) -> None:
    """Append a batch of a transaction, as a delayed request of an earlier transaction would."""
    records = batch(
        b"late", timestamp=timestamp_ms, is_transactional=True, producer_id=producer_id, producer_epoch=0,
        base_sequence=0,
    )  # fmt: skip
    topics = [{"name": topic, "partition_data": [{"index": partition, "records": records}]}]
    request = made(ProduceRequest, transactional_id="unknown", acks=-1, timeout_ms=30_000, topic_data=topics)
    with Line(servers) as connection:
        answer = connection.ask(request, 11)
    assert answer.responses[0].partition_responses[0].error_code == 0


def test_replicas_stay_where_they_are(both: Both, tmp_path: Path) -> None:
    file = tmp_path / "moves.json"
    file.write_text(
        json.dumps({"version": 1, "partitions": [{"topic": TOPIC, "partition": 0, "replicas": [1]}]})
    )
    assert both.our_json(f"reassign plan {file} --execute")[0]["new_replicas"] == [1]
    assert both.our_json(f"reassign verify {file}")[0]["status"] == "complete"
    verified = both.theirs(
        TOOLS + "reassign.ReassignPartitionsCommand", "--verify", "--reassignment-json-file", str(file)
    )
    assert f"Reassignment of partition {TOPIC}-0 is completed" in verified
    assert both.our_json("reassign list") == []
    elected = both.our_json(f"elect-leaders {TOPIC}")
    assert [row["outcome"] for row in elected] == ["not needed"] * 2
