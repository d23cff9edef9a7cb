"""The operator's commands on our broker: text, ``--json``, wrong arguments, and no broker."""

import json
import os
import pty
import subprocess
import sys

import pytest
from eventually import eventually
from model.shown_terminal import shown_on

from kafkacore import KafkaConsumer, KafkaProducer
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.cli import common
from kafkacore.cli.main import main
from kafkacore.structs import OffsetAndMetadata, TopicPartition
from kafkacore.testing.embedded_broker import EmbeddedBroker

#: Commands that only print, with a line that their text contains.
READING = [
    ("topics describe cli-orders", "partition  leader  replicas  isr  offline"),
    ("topics configs cli-orders --all", "retention.ms"),
    ("groups list", "cli-billing"),
    ("groups describe cli-billing", "(total)"),
    ("groups describe cli-billing --members", "group cli-billing: Empty, type classic, 0 members, lag 8"),
    ("groups reset cli-billing --topic cli-orders --to-earliest", "current-offset  new-offset"),
    ("offsets cli-orders", "earliest  latest  offsets"),
    ("offsets cli-orders:0 --at 2020-01-01T00:00:00Z", "timestamp"),
    ("configs describe topic cli-orders --all", "retention.ms"),
    ("configs describe broker 1 --all", "log.retention.ms"),
    ("cluster describe", "controller 1, 1 brokers"),
    ("cluster brokers", "is-controller"),
    ("cluster features", "metadata.version"),
    ("cluster quorum", "quorum: leader 1"),
    ("configs describe broker-logger 1", "kafkacore.broker"),
    ("cluster apis --broker 1", "api_versions"),
    ("transactions producers cli-orders", "producer-epoch"),
    ("quotas describe", "user=cli-anna"),
    ("log-dirs", "usable-bytes"),
    ("log-dirs cli-orders", "offset-lag"),
    ("elect-leaders cli-orders", "not needed"),
]


@pytest.fixture(scope="module")
def broker():
    """Start a broker with a topic, a group and a quota."""
    topic = TopicPartition("cli-orders", 0)
    with EmbeddedBroker() as broker:
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("cli-orders", num_partitions=2)])
            with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
                for _ in range(10):
                    producer.send(*topic[:1], b"value", partition=0)
            admin.alter_group_offsets("cli-billing", {topic: OffsetAndMetadata(2)})
        assert main(["quotas", "alter", "--user", "cli-anna", "--set", "producer_byte_rate=1e6",
                     "--bootstrap", broker.bootstrap_servers]) == 0  # fmt: skip
        yield broker


@pytest.fixture
def run(broker, capfd):
    """Return a function that runs a command, and returns its status, output and errors."""

    def run(words):
        capfd.readouterr()
        try:
            status = main([*words.split(), "--bootstrap", broker.bootstrap_servers])
        except SystemExit as ended:
            status = ended.code
        return status, *capfd.readouterr()

    return run


@pytest.mark.parametrize(("words", "line"), READING)
def test_command_prints_text_and_json(run, words, line):
    status, shown, _ = run(words)
    assert (status, line in shown) == (0, True), shown
    status, shown, _ = run(f"{words} --json")
    assert status == 0
    assert json.loads(shown)


def test_feature_level_changes_only_without_dry_run(run):
    def level():
        status, shown, _ = run("cluster features --json")
        assert status == 0
        return {row["feature"]: row["finalized"] for row in json.loads(shown)}["transaction.version"]

    status, _, errors = run("cluster update-feature transaction.version 1")
    assert status == 1
    assert "Can't downgrade the version of this feature" in errors
    lowered = "cluster update-feature transaction.version 1 --downgrade safe"
    assert run(f"{lowered} --dry-run")[:2] == (0, "transaction.version can be set to level 1\n")
    assert level() == 2
    assert run(lowered)[:2] == (0, "transaction.version has level 1\n")
    assert level() == 1
    assert run("cluster update-feature transaction.version 2")[0] == 0
    assert level() == 2


def test_pipe_gets_the_result_and_a_terminal_the_remark(broker):
    words = ["groups", "reset", "cli-billing", "--all-topics", "--to-latest", "--export"]
    ended = subprocess.run(
        [sys.executable, "-m", "kafkacore", *words, "--bootstrap", broker.bootstrap_servers],
        capture_output=True,
        check=True,
        text=True,
    )
    assert ended.stdout == "cli-orders,0,10\ncli-orders,1,0\n"
    assert ended.stderr == "kafkacore: dry run, nothing was changed: add --execute to commit these offsets\n"


def test_terminal_shows_what_a_pipe_gets(broker):
    words = [sys.executable, "-m", "kafkacore", "groups", "describe", "cli-billing"]
    words += ["--bootstrap", broker.bootstrap_servers]
    piped = subprocess.run(words, capture_output=True, check=True)
    terminal, side = pty.openpty()
    try:
        subprocess.run(words, stdout=side, stderr=subprocess.PIPE, check=True)
    finally:
        os.close(side)
    shown = shown_on(terminal)
    os.close(terminal)
    assert shown.replace(b"\r\n", b"\n") == piped.stdout


def test_offsets_of_a_group_move_only_with_execute(run, tmp_path):
    def committed():
        (group,) = json.loads(run("groups describe cli-mover --json")[1])
        return [each["current_offset"] for each in group["partitions"]]

    reset = "groups reset cli-mover --topic cli-orders:0"
    assert run(f"{reset} --to-offset 6 --execute")[0] == 0
    assert run(f"{reset} --shift-by -4")[0] == 0
    assert committed() == [6]
    status, _, said = run(f"{reset} --shift-by 9 --execute")
    assert (status, committed()) == (0, [10])
    assert "cli-orders-0: offset 15 is outside of the log; 10 is the nearest" in said
    file = tmp_path / "offsets.csv"
    file.write_text(run(f"{reset} --to-datetime 2020-01-01 --export")[1])
    assert run(f"groups reset cli-mover --from-file {file} --execute")[0] == 0
    assert committed() == [0]
    assert run("groups delete-offsets cli-mover --topic cli-orders --json")[0] == 0
    status, _, said = run("groups delete-offsets cli-mover --topic cli-orders")
    assert (status, "has no committed offset for topic 'cli-orders'" in said) == (1, True)
    assert run("groups reset cli-gone --topic cli-orders --to-latest --execute")[0] == 0
    assert run("groups delete cli-gone")[1] == "deleted group cli-gone and its committed offsets\n"


def test_group_of_the_consumer_protocol_is_managed_like_a_classic_one(run, broker):
    def described():
        (group,) = json.loads(run("groups describe cli-modern --json")[1])
        return group

    with KafkaConsumer(
        "cli-orders",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="cli-modern",
        group_protocol="consumer",
        auto_offset_reset="earliest",
    ) as consumer:
        eventually(lambda: len(consumer.poll(timeout_ms=100)) > 0)
        consumer.commit()
        assert "cli-modern" in run("groups list --type consumer --state Stable")[1]
        assert "cli-modern" not in run("groups list --type classic")[1]
        group = described()
        assert (group["state"], group["type"], group["assignor"], group["lag"]) == (
            "Stable",
            "consumer",
            "uniform",
            0,
        )
        (member,) = group["members"]
        assert group["group_epoch"] == group["assignment_epoch"] == 2
        assert {each["member_id"] for each in group["partitions"]} == {member["member_id"]}
        reset = "groups reset cli-modern --all-topics --to-earliest --execute"
        assert "is Stable: stop its members" in run(reset)[2]
        assert "GROUP_SUBSCRIBED_TO_TOPIC" in run("groups delete-offsets cli-modern --topic cli-orders:0")[2]
        assert "because it has members" in run("groups delete cli-modern")[2]
    assert described()["state"] == "Empty"
    assert run(reset)[0] == 0
    assert described()["lag"] == 10
    assert run("groups delete-offsets cli-modern --topic cli-orders:0")[0] == 0
    assert run("groups delete cli-modern")[1] == "deleted group cli-modern and its committed offsets\n"
    assert "cli-modern" not in run("groups list")[1]


def test_topic_grows_and_loses_its_oldest_records(run):
    assert run("topics create cli-growing --json")[0] == 0
    status, shown, _ = run("topics add-partitions cli-growing --partitions 3")
    assert (status, shown) == (0, "cli-growing: added 2 partitions, 3 in total\n")
    status, shown, _ = run("topics delete-records cli-growing --all-records --json")
    assert [row["log_start_offset"] for row in json.loads(shown)] == [0, 0, 0]
    status, _, said = run("topics add-partitions cli-growing --partitions 2")
    assert (status, "has 3 partitions already" in said) == (1, True)
    assert json.loads(run("topics delete cli-growing --json")[1]) == [{"topic": "cli-growing", "error": None}]


def test_compacted_topic_keeps_its_records(run):
    assert run("topics create cli-compacted --partitions 2 --config cleanup.policy=compact")[0] == 0
    status, shown, said = run("topics delete-records cli-compacted --all-records")
    assert (status, shown, said.count("\n")) == (1, "", 1)
    assert said.startswith("kafkacore: records of several partitions were not deleted: [Error 44] POLICY_")
    assert "records of cli-compacted-1: the cleanup.policy of the topic does not include delete" in said


def test_configuration_is_altered_and_reset(run):
    alter = "configs alter topic cli-orders --set segment.ms=70000 --append cleanup.policy=compact"
    assert run(f"{alter} --validate-only --json")[0] == 0
    assert run("configs describe topic cli-orders")[1] == ""
    status, shown, _ = run(alter)
    assert (status, shown.splitlines()) == (
        0,
        ["topic cli-orders: set segment.ms=70000", "topic cli-orders: append cleanup.policy=compact"],
    )
    rows = json.loads(run("configs describe topic cli-orders --json")[1])
    assert {row["config"]: row["value"] for row in rows} == {
        "cleanup.policy": "delete,compact",
        "segment.ms": "70000",
    }
    assert run("configs reset topic cli-orders --config segment.ms")[0] == 0
    assert run("configs reset topic cli-orders")[1] == "topic cli-orders: delete cleanup.policy\n"
    assert "nothing was reset" in run("configs reset topic cli-orders")[2]
    assert run("configs alter broker --default --set log.retention.ms=99999")[0] == 0
    assert len(json.loads(run("configs describe broker --default --json")[1])) == 1
    assert run("configs reset broker --default --config log.retention.ms")[0] == 0


def test_reassignment_is_planned_executed_and_verified(run, tmp_path):
    file = tmp_path / "moves.json"
    file.write_text('{"partitions": [{"topic": "cli-orders", "partition": 0, "replicas": [1]}]}')
    status, shown, said = run(f"reassign plan {file} --json")
    assert (status, "dry run" in said) == (0, True)
    assert json.loads(shown)[0]["replicas"] == [1]
    assert run(f"reassign plan {file} --execute")[0] == 0
    assert run(f"reassign verify {file}")[0] == 0
    assert run("reassign list --json")[1] == "[]\n"
    assert run("reassign cancel --all")[0] == 0
    file.write_text(file.read_text().replace("[1]", "[7]"))
    assert "brokers 7 do not exist" in run(f"reassign plan {file}")[2]


def test_quota_is_deleted(run):
    alter = "quotas alter --default-user --set producer_byte_rate=5 --validate-only --json"
    assert json.loads(run(alter)[1]) == {"entity": {"user": None}, "quotas": {"producer_byte_rate": 5.0}}
    assert run("quotas describe --default-user --json")[1] == "[]\n"
    assert run("quotas alter --user cli-bert --set request_percentage=12.5")[1] == (
        "user=cli-bert: request_percentage=12.5\n"
    )
    assert run("quotas alter --user cli-bert --delete request_percentage")[0] == 0
    assert json.loads(run("quotas describe --user cli-bert --json")[1]) == []


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        ("groups describe", 2, "no group given: name groups, or add --all"),
        ("groups describe nowhere", 1, "group 'nowhere' does not exist"),
        ("groups delete cli-billing nowhere", 1, "group 'nowhere' does not exist"),
        ("groups list --state Asleep", 2, "GroupState has no member 'Asleep'"),
        ("groups reset g --to-latest", 2, "give either --topic, --all-topics, or --from-file"),
        ("groups reset nowhere --all-topics --to-latest", 1, "has no committed offsets: name the topics"),
        ("groups reset g --topic cli-orders:9 --to-latest", 1, "cli-orders-9 does not exist"),
        ("topics configs nowhere", 1, "topic 'nowhere' does not exist"),
        ("topics delete-records --all-records", 2, "give either topics or --from-file"),
        ("offsets nowhere", 1, "topic 'nowhere' does not exist"),
        ("configs alter topic cli-orders", 2, "nothing to alter: add --set"),
        ("configs alter topic cli-orders --set x=y", 1, "Unknown topic config name: x"),
        ("configs describe topic cli-orders --default", 2, "--default is for brokers"),
        ("quotas alter --set producer_byte_rate=1", 2, "no entity given: add --user"),
        ("quotas alter --user a --set nonsense=1", 1, "nonsense"),
        ("elect-leaders", 2, "give either topics, --all, or --from-file"),
        ("reassign cancel", 2, "give either a file or --all"),
        ("reassign plan /dev/null", 2, "/dev/null is not JSON"),
        ("transactions abort cli-orders:0", 2, "give either --start-offset, or --producer-id"),
        ("transactions abort cli-orders:0 --start-offset 3", 1, "no open transaction of cli-orders-0"),
        ("log-dirs nowhere", 1, "topic 'nowhere' does not exist"),
        ("configs describe broker x", 2, "the broker's id, not 'x'"),
        ("configs alter broker-logger x --set a=INFO", 2, "the broker's id, not 'x'"),
        ("groups describe \udcff", 2, "is not valid Unicode"),
        ("consume \udcff --exit", 2, "'\\udcff' is not valid UTF-8"),
        ("quotas describe --user \udcff", 2, "'\\udcff' is not valid UTF-8"),
        (
            "topics delete-records cli-orders --before-offset 99",
            1,
            "OFFSET_OUT_OF_RANGE: records of cli-orders-0",
        ),
        ("lag-exporter --listen {broker}", 1, "cannot listen on 127.0.0.1:"),
    ],
)
def test_wrong_argument_is_one_sentence(run, broker, words, status, sentence):
    printed = run(words.format(broker=broker.bootstrap_servers))
    assert (printed[0], printed[1], sentence in printed[2]) == (status, "", True), printed
    assert printed[2].count("\n") == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("groups reset g --topic t --to-datetime noon", "'noon' is not a time: use ISO 8601"),
        ("groups reset g --topic t --by-duration hour", "argument --by-duration"),
        ("groups reset g --topic t:x --to-latest", "'x' is not a partition number"),
        ("configs describe topik", "unknown value 'topik'; did you mean 'topic'?"),
        ("quotas alter --user a --set rate=fast", "'fast' is not a number"),
    ],
)
def test_argument_that_cannot_be_parsed_is_named(run, words, sentence):
    status, shown, said = run(words)
    assert (status, shown) == (2, "")
    assert sentence in said.splitlines()[-1]


@pytest.mark.parametrize("words", [words for words, _ in READING] + ["transactions list", "reassign list"])
def test_command_without_a_broker_is_one_sentence(words, capfd, monkeypatch):
    monkeypatch.setattr(common, "REFUSAL_PAUSE_MS", 0.0)
    assert main([*words.split(), "--bootstrap", "127.0.0.1:1"]) == 1
    shown, said = capfd.readouterr()
    assert shown == ""
    assert said.startswith("kafkacore: no broker listens on 127.0.0.1:1: connection refused.")
    assert said.count("\n") == 1
