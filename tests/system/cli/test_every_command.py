"""Every command of the parser: no broker, a wrong option, valid JSON, and plain text on a terminal."""

import argparse
import json
import os
import pty
import sys
import threading
from contextlib import contextmanager, suppress

import pytest
from eventually import BUDGET_S, LONG_TRANSACTION_MS

from kafkacore import KafkaProducer
from kafkacore.admin import KafkaAdminClient, NewTopic, UserScramCredentialUpsertion
from kafkacore.cli import common
from kafkacore.cli.main import build_parser, main
from kafkacore.structs import OffsetAndMetadata, TopicPartition
from kafkacore.testing.embedded_broker import EmbeddedBroker

#: Command → arguments. ``{own}`` is the name of a topic and of a group that only this run changes.
ROWS = {
    "topics list": "",
    "topics describe": "",
    "topics configs": "",
    "topics create": "{own}-new --partitions 2",
    "topics alter": "{own} --config segment.ms=70000",
    "topics add-partitions": "{own} --partitions 3",
    "topics delete-records": "{own} --all-records",
    "topics delete": "{own}-gone",
    "produce": "{own} --file {folder}/lines",
    "consume": "{own} --from-beginning --exit",
    "acls list": "",
    "acls add": "--allow User:alice --operation read --topic {own}",
    "acls remove": "--principal User:bert",
    "users list": "",
    "users create": "{own}-new --new-password-file {folder}/lines",
    "users delete": "{own}-gone",
    "lag-exporter": "--once",
    "groups list": "",
    "groups describe": "--all",
    "groups reset": "{own} --all-topics --to-latest --execute",
    "groups delete": "{own}-gone",
    "groups delete-offsets": "{own} --topic {own}:1",
    "offsets": "",
    "configs describe": "topic",
    "configs alter": "topic {own} --set retention.ms=70000",
    "configs reset": "topic {own}",
    "cluster describe": "",
    "cluster brokers": "",
    "cluster features": "",
    "cluster update-feature": "transaction.version 2",
    "cluster quorum": "",
    "cluster apis": "",
    "transactions list": "",
    "transactions describe": "t",
    "transactions producers": "{own}",
    "transactions find-hanging": "",
    "transactions abort": "{own}-open:0 --start-offset 0",
    "transactions fence": "t",
    "quotas describe": "",
    "quotas alter": "--user {own} --set producer_byte_rate=5",
    "log-dirs": "",
    "elect-leaders": "--all",
    "reassign generate": "{own} --brokers 1",
    "reassign plan": "{folder}/moves.json",
    "reassign verify": "{folder}/moves.json",
    "reassign list": "",
    "reassign cancel": "--all",
    "dump-log": "{log}",
    # Tests of their own run these.
    "demo": "",
    "broker": "--ephemeral",
    "pipeline": "",
    "bench": "produce --peers none",
    "completion": "bash",
}
#: The topics and groups of the run with ``--json`` and of the other one.
RUNS = ("as-json", "as-text")


def leaves(parser, path=()):
    """Yield each command without sub-commands, and its parser."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield from leaves(command, (*path, name))
            return
    yield " ".join(path), parser


COMMANDS = dict(leaves(build_parser()))


def having(option):
    return [
        name
        for name, parser in COMMANDS.items()
        if option in parser._option_string_actions and name not in ("demo", "broker", "pipeline", "bench")
    ]


@pytest.fixture(scope="module")
def broker():
    settings = {
        "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super_users": "User:ANONYMOUS",
    }
    with EmbeddedBroker(**settings) as broker:
        yield broker


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the files that the commands read."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "lines").write_text('{"value": "a"}\n')
    (folder / "moves.json").write_text(
        '{"partitions": [{"topic": "as-json", "partition": 0, "replicas": [1]}]}'
    )
    return folder


@pytest.fixture(scope="module")
def servers(broker):
    """Create what the commands of both runs change, and return the address of the broker."""
    servers = broker.bootstrap_servers
    with (
        KafkaAdminClient(bootstrap_servers=servers) as admin,
        KafkaProducer(bootstrap_servers=servers) as producer,
    ):
        for own in RUNS:
            names = (own, f"{own}-gone", f"{own}-open")
            admin.create_topics([NewTopic(name, num_partitions=2) for name in names])
            producer.send(own, b"value", partition=0)
            for group in (own, f"{own}-gone"):
                offsets = {TopicPartition(own, number): OffsetAndMetadata(0) for number in (0, 1)}
                admin.alter_group_offsets(group, offsets)
            admin.alter_user_scram_credentials(
                [UserScramCredentialUpsertion(f"{own}-gone", "SCRAM-SHA-256", "secret")]
            )
            leave_open(servers, f"{own}-open")
    leave_open(servers, "as-json-open", "t")
    return servers


def leave_open(servers, topic, transactional_id=None):
    """Leave a transaction open that begins with the next record of partition 0."""
    producer = KafkaProducer(
        bootstrap_servers=servers,
        transactional_id=transactional_id or topic,
        transaction_timeout_ms=LONG_TRANSACTION_MS,
    )
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"open", partition=0).get(BUDGET_S)
    producer.close(0)


@contextmanager
def terminal(monkeypatch):
    """Make standard output a terminal, and yield the list of what is shown there."""
    shown = []
    ours, theirs = pty.openpty()

    def read():
        # A terminal whose other end is closed raises an error instead of returning an empty text.
        with suppress(OSError):
            while data := os.read(ours, 100_000):
                shown.append(data)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        with os.fdopen(theirs, "w", encoding="utf-8") as stdout, monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", stdout)
            yield shown
    finally:
        reader.join()
        os.close(ours)


def words(name, *, own="topic", folder="/nonexistent", log="0.log"):
    return [*name.split(), *ROWS[name].format(own=own, folder=folder, log=log).split()]


def test_table_has_every_command():
    assert ROWS.keys() == COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_unknown_option_is_one_sentence(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*words(name), "--qqq"])
    shown, said = capsys.readouterr()
    assert (ended.value.code, shown) == (2, "")
    assert said.startswith(f"kafkacore {name}: error: unknown option --qqq; ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("name", having("--bootstrap"))
def test_broker_that_is_away_is_one_sentence(name, folder, capfd, monkeypatch):
    monkeypatch.setattr(common, "REFUSAL_PAUSE_MS", 0.0)
    assert main([*words(name, folder=folder), "--bootstrap", "127.0.0.1:1"]) == 1
    shown, said = capfd.readouterr()
    assert (shown, said.count("\n")) == ("", 1)
    assert said.startswith("kafkacore: no broker listens on 127.0.0.1:1: connection refused. Check")


def run(name, own, broker, servers, folder, monkeypatch, *options):
    log = broker.data_dir / f"{own}-0" / "00000000000000000000.log"
    monkeypatch.setenv("KAFKACORE_BOOTSTRAP", servers)
    return main([*words(name, own=own, folder=folder, log=log), *options])


@pytest.mark.parametrize("name", having("--json"))
def test_result_is_json(name, broker, servers, folder, capfd, monkeypatch):
    status = run(name, "as-json", broker, servers, folder, monkeypatch, "--json")
    shown, said = capfd.readouterr()
    for line in shown.splitlines():
        json.loads(line)
    assert status == 0, said
    assert bool(shown) == (name != "produce")
    assert all(line.startswith("kafkacore: ") for line in said.splitlines())


@pytest.mark.parametrize("name", having("--json"))
def test_result_is_plain_text_on_a_terminal(name, broker, servers, folder, capfd, monkeypatch):
    with terminal(monkeypatch) as shown:
        status = run(name, "as-text", broker, servers, folder, monkeypatch)
    said = capfd.readouterr().err
    assert status == 0, said
    assert b"\x1b" not in b"".join(shown)
    assert all(line.startswith("kafkacore: ") for line in said.splitlines())
