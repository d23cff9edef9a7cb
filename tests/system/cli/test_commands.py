"""The commands that need no Spark, with our broker: pipes, round trips, corrupt files, error messages."""

import json
import subprocess
import sys

import pytest
from eventually import BUDGET_S
from peers.config_requests import TOPIC, config_requests

from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.cli import common
from kafkacore.cli.main import main
from kafkacore.client.network_client import NetworkClient

#: No broker listens at this address.
NOWHERE = ["--bootstrap", "127.0.0.1:1", "--timeout", "1"]
RECORDS = [
    {"timestamp": 5, "key_base64": "/wA=", "value": None, "headers": [{"key": "h", "value": None}]},
    {"timestamp": 6, "key": "", "value": "grüße\nzwei"},
    {"timestamp": 7, "key": None, "value_base64": "gA==", "headers": [{"key": "g", "value_base64": "/w=="}]},
]


@pytest.fixture
def run(our_broker, tmp_path, capfdbinary):
    """Return a function that runs a command with our broker and returns its status, output and errors."""

    def run(*arguments, lines=None):
        if lines is not None:
            file = tmp_path / "lines"
            file.write_bytes(b"".join(line.encode() + b"\n" for line in lines))
            arguments = (*arguments, "--file", str(file))
        capfdbinary.readouterr()
        status = main([*arguments, "--bootstrap", our_broker.bootstrap_servers])
        shown = capfdbinary.readouterr()
        return status, shown.out.decode(), shown.err.decode()

    return run


@pytest.fixture
def empty_topic(our_broker, request):
    topic = "".join(c if c.isalnum() else "-" for c in request.node.name)
    with KafkaAdminClient(bootstrap_servers=our_broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=1)])
    return topic


def test_records_survive_consume_piped_into_produce(run, empty_topic):
    assert run("produce", empty_topic, "--json", lines=map(json.dumps, RECORDS)) == (0, "", "")
    _, first, _ = run("consume", empty_topic, "--from-beginning", "--exit-at-end", "--json")
    shown = [json.loads(line) for line in first.splitlines()]
    assert [
        {name: line.get(name) for name in want} for line, want in zip(shown, RECORDS, strict=True)
    ] == RECORDS
    assert run("produce", empty_topic, "--json", lines=first.splitlines())[0] == 0
    _, both, _ = run("consume", empty_topic, "--from-beginning", "--exit-at-end", "--json")
    again = [json.loads(line) | {"offset": n} for n, line in enumerate(both.splitlines()[3:])]
    assert again == shown


def test_tombstone_and_empty_value_are_printed_differently(run, empty_topic):
    values = (None, "", "null")
    lines = [json.dumps({"key": "k", "value": value}) for value in values]
    assert run("produce", empty_topic, "--json", lines=lines) == (0, "", "")
    assert run("consume", empty_topic, "--from-beginning", "--exit-at-end")[1] == "null\n\nnull\n"
    _, shown, _ = run("consume", empty_topic, "--from-beginning", "--exit-at-end", "--json")
    assert [json.loads(line)["value"] for line in shown.splitlines()] == [*values]


def test_keys_stand_before_the_separator(run, empty_topic):
    assert run("produce", empty_topic, "--key-separator", ":", lines=["anna:1:x", "bert:"])[0] == 0
    _, shown, _ = run(
        "consume", empty_topic, "--partition", "0", "--offset", "0", "--max-records", "2", "--json"
    )
    assert [(r["key"], r["value"]) for r in map(json.loads, shown.splitlines())] == [
        ("anna", "1:x"),
        ("bert", ""),
    ]


@pytest.mark.parametrize(
    ("arguments", "line", "sentence"),
    [
        (["--json"], "notjson", "line 2 is not JSON"),
        (["--json"], "[]", "line 2 must be an object"),
        (["--json"], '{"headers":[{"k":1}]}', "line 2: headers must be a list"),
        (["--json"], '{"value_base64":"%"}', "line 2: value_base64 is not base64"),
        (
            ["--json"],
            '{"value":"a","timestamp":"noon"}',
            "line 2 cannot be sent: timestamp_ms must be an int",
        ),
        (["--key-separator", "::"], "a:b", "line 2 has no key separator '::'"),
        ([], "x" * 2_000_000, "line 2 cannot be sent: [Error 10] MESSAGE_TOO_LARGE"),
    ],
)
def test_line_that_cannot_be_sent_is_named(run, our_broker, empty_topic, arguments, line, sentence):
    good = "a::1" if "--json" not in arguments else '{"value":"a::1"}'
    status, _, said = run("produce", empty_topic, *arguments, lines=[good, line])
    assert status == 1
    assert said.startswith(f"kafkacore: {sentence}")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["consume", "nowhere"], "topic 'nowhere' does not exist"),
        (["topics", "delete", "nowhere"], "topic 'nowhere' does not exist"),
        (["topics", "describe", "nowhere", "too"], "topics 'nowhere', 'too' do not exist"),
        (["topics", "create", "bad name"], "Topic name is invalid"),
        (["topics", "create", "t", "--config", "x=y"], "Unknown topic config name: x"),
        (["topics", "alter", "nowhere", "--config", "retention.ms=5"], "Topic 'nowhere' does not exist"),
        (["topics", "alter", "nowhere", "--config", "retention.ms=x"], "Invalid value x for configuration"),
    ],
)
def test_what_the_broker_does_not_have_is_a_sentence(run, arguments, sentence):
    status, shown, said = run(*arguments)
    assert (status, shown) == (1, "")
    assert sentence in said
    assert said.count("\n") == 1


def test_topic_is_altered_and_put_back(run, our_broker, empty_topic):
    def own():
        with config_requests(our_broker.bootstrap_servers) as requests:
            (entries,) = requests.describe([(TOPIC, empty_topic)])
        return {name: entry.value for name, entry in entries.items() if entry.source == 1}

    changes = ("--config", "retention.ms=5", "--config", "segment.ms=7")
    status, shown, said = run("topics", "alter", empty_topic, *changes)
    assert (status, said) == (0, "")
    assert shown.splitlines() == [f"{empty_topic}: retention.ms=5", f"{empty_topic}: segment.ms=7"]
    assert own() == {"retention.ms": "5", "segment.ms": "7"}
    assert run("topics", "alter", empty_topic, "--delete-config", "segment.ms")[0] == 0
    assert own() == {"retention.ms": "5"}
    status, _, said = run("topics", "alter", empty_topic)
    assert (status, said.count("\n")) == (2, 1)
    assert "--config NAME=VALUE or --delete-config NAME" in said


@pytest.mark.parametrize("command", ["describe", "delete"])
def test_topic_that_is_not_there_is_named_and_nothing_is_done(run, empty_topic, command):
    status, shown, said = run("topics", command, empty_topic, "nowhere")
    assert (status, shown, said.count("\n")) == (1, "", 1)
    assert "topic 'nowhere' does not exist on " in said
    assert "kafkacore topics list" in said
    assert empty_topic in run("topics", "list")[1].splitlines()


def test_offset_that_is_not_there_is_a_sentence(run, empty_topic):
    status, _, said = run("consume", empty_topic, "--partition", "0", "--offset", "9")
    assert status == 1
    assert f"offset 9 is out of range: {empty_topic}-0 has offsets" in said
    assert "partition 7 does not exist" in run("consume", empty_topic, "--partition", "7")[2]


@pytest.mark.parametrize(
    "command", [["topics", "list"], ["consume", "t"], ["produce", "t", "--file", "/dev/null"]]
)
def test_no_broker_is_one_sentence_after_the_timeout(command, capfd):
    assert main([*command, *NOWHERE]) == 1
    said = capfd.readouterr().err
    assert "127.0.0.1:1" in said
    assert "1000" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    "command",
    [["topics", "list"], ["acls", "list"], ["users", "list"], ["consume", "t"],
     ["consume", "t", "--group", "g"], ["produce", "t"], ["consume", "t", "--last", "2"],
     ["consume", "t.*", "--regex", "--from", "1h"], ["produce", "t", "-k", "k", "--tombstone"],
     ["bench", "produce", "--peers", "none"]],
)  # fmt: skip
def test_refused_connection_fails_before_any_client_is_made(command, capfd, monkeypatch):
    monkeypatch.setattr(common, "REFUSAL_PAUSE_MS", 0.0)
    monkeypatch.setattr(NetworkClient, "poll", lambda *_: pytest.fail("a client polls"))
    assert main([*command, "--bootstrap", "127.0.0.1:1,[::1]:1"]) == 1
    said = capfd.readouterr().err
    assert said.startswith(
        "kafkacore: no broker listens on 127.0.0.1:1,[::1]:1: connection refused. Check the address"
    )
    assert said.count("\n") == 1


def test_consume_ends_when_its_reader_has_gone(our_broker, make_topic):
    topic = make_topic([b"one", b"two"])
    # fmt: off
    command = subprocess.Popen(
        [sys.executable, "-m", "kafkacore.cli.main", "consume", topic, "--from-beginning",
         "--bootstrap", our_broker.bootstrap_servers],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )
    # fmt: on
    assert command.stdout.readline() == b"one\n"
    command.stdout.close()
    assert command.wait(BUDGET_S) == 0
    assert command.stderr.read() == b""
    command.stderr.close()


def test_dump_log_reads_every_file_that_the_broker_leaves(our_broker, make_topic, capsys):
    topic = make_topic([b"one", b"two"])
    files = sorted(map(str, (our_broker.data_dir / f"{topic}-0").glob("0*")))
    assert len(files) >= 3
    assert main(["dump-log", *files, "--records", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["payload"] for row in rows if row["type"] == "record"] == ["one", "two"]


def test_dump_log_of_a_damaged_file_prints_what_is_sound_and_says_where_it_ends(
    our_broker, make_topic, tmp_path, capsys
):
    topic = make_topic([b"one"])
    topic = make_topic([b"two"])
    sound = (our_broker.data_dir / f"{topic}-0" / "00000000000000000000.log").read_bytes()
    file = tmp_path / "00000000000000000000.log"
    file.write_bytes(sound[:-1] + b"?")
    assert main(["dump-log", str(file)]) == 1
    shown = capsys.readouterr()
    assert shown.out.count("baseOffset") == 1
    assert shown.err.startswith(f"kafkacore: {file}: [Error 2] CORRUPT_MESSAGE: position")


def test_dump_log_of_another_file_says_what_it_reads(tmp_path, capsys):
    assert main(["dump-log", "/etc/passwd"]) == 2
    assert main(["dump-log", str(tmp_path / "0.log")]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "kafkacore: cannot dump passwd: the file name must be one of <offset>.log, <offset>.index, "
        "<offset>.timeindex, <offset>.txnindex, <offset>.snapshot",
        f"kafkacore: {tmp_path}/0.log: No such file or directory",
    ]
