"""``kafkacore acls`` and ``kafkacore users`` against Apache Kafka with an authorizer."""

import json

import pytest
from eventually import eventually

from kafkacore.cli.main import main


@pytest.fixture
def run(secure_kafka, capsys):
    """Return a function that runs a command on the cluster, and returns its status, output and errors."""

    def run(words, *more):
        capsys.readouterr()
        status = main(
            [*words.split(), *more, "--bootstrap", secure_kafka.settings("PLAINTEXT")["bootstrap_servers"]]
        )
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return run


def becomes(wanted, ask):
    """Wait until ``ask`` returns this response: the broker learns of a change after its controller."""
    eventually(lambda: ask() == wanted, lambda: f"{ask()} instead of {wanted}")


def row(operation, kind, name, pattern="LITERAL", host="*", permission="ALLOW"):
    return {
        "principal": "User:cli",
        "permission": permission,
        "operation": operation,
        "resource_type": kind,
        "resource_name": name,
        "pattern": pattern,
        "host": host,
    }


def test_entries_are_added_listed_and_removed(run):
    status, shown, _ = run(
        "acls",
        "add",
        "--allow",
        "User:cli",
        "--operation",
        "describe,read",
        "--topic",
        "cli-orders",
        "--json",
    )
    reading = [row("DESCRIBE", "TOPIC", "cli-orders"), row("READ", "TOPIC", "cli-orders")]
    assert (status, json.loads(shown)) == (0, reading)
    never = "acls add --deny User:cli --operation write --topic-prefix cli- --host 192.0.2.7"
    assert run(never)[0] == 0
    denied = row("WRITE", "TOPIC", "cli-", "PREFIXED", "192.0.2.7", "DENY")

    def listed(*words):
        status, shown, _ = run("acls list --json", *words)
        assert status == 0
        return json.loads(shown)

    # The entries that apply to a topic, including prefixed ones.
    becomes([*reading, denied], lambda: listed("--topic", "cli-orders", "--principal", "User:cli"))
    assert listed("--topic", "cli-orders", "--permission", "deny") == [denied]
    assert listed("--principal", "User:cli", "--operation", "read") == [reading[1]]
    _, shown, _ = run("acls list --principal User:cli")
    assert shown.splitlines()[0].split() == [
        "principal", "permission", "operation", "resource", "name", "pattern", "host"
    ]  # fmt: skip
    assert "User:cli   DENY        WRITE      TOPIC     cli-        PREFIXED  192.0.2.7" in shown
    # ``remove`` takes only the topic's own entries, not those of its prefix.
    status, shown, _ = run("acls remove --topic cli-orders --json")
    assert (status, json.loads(shown)) == (0, reading)
    status, shown, _ = run("acls remove --principal User:cli --json")
    assert (status, json.loads(shown)) == (0, [denied])


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        ("acls remove", 2, "this would remove the entries of all principals: add --principal"),
        ("acls add --allow User:a --operation read", 2, "add --topic, --group"),
        (
            "acls add --allow User:a --operation reed --cluster",
            2,
            "'reed' is unknown: use one of all, read",
        ),
        ("acls add --allow a --operation alter --cluster", 1, "principal"),
        ("users delete unknown", 1, "user 'unknown' does not exist: see `kafkacore users list`"),
    ],
)
def test_what_cannot_be_is_a_sentence(run, words, status, sentence):
    printed = run(words)
    assert printed[0] == status
    assert sentence in printed[2]
    assert printed[2].count("\n") == 1


def test_users_are_created_listed_and_deleted(run, monkeypatch, tmp_path):
    monkeypatch.setenv("KAFKACORE_NEW_PASSWORD", "hunter2-zq7")
    made = {"user": "cli-anna", "mechanism": "SCRAM-SHA-512", "iterations": 4096}
    status, shown, _ = run("users create cli-anna --json")
    assert (status, json.loads(shown)) == (0, [made])
    (tmp_path / "password").write_text("other\n")
    weak = [
        "--mechanism",
        "scram-sha-256",
        "--iterations",
        "5000",
        "--new-password-file",
        str(tmp_path / "password"),
    ]
    assert run("users create cli-anna", *weak)[0] == 0
    other = {"user": "cli-anna", "mechanism": "SCRAM-SHA-256", "iterations": 5000}

    def listed():
        found = json.loads(run("users list --json")[1])
        return [each for each in found if each["user"].startswith("cli-")]

    becomes([other, made], listed)
    status, _, said = run("users create cli-bert --iterations 16")
    assert (status, "iterations" in said.lower()) == (1, True)
    status, _, said = run("users create cli-bert --iterations 99999999")
    assert (status, "4096 to 16384" in said) == (2, True)
    assert json.loads(run("users delete cli-anna --mechanism SCRAM-SHA-256 --json")[1]) == [
        {"user": "cli-anna", "mechanism": "SCRAM-SHA-256"}
    ]
    becomes([made], listed)
    assert run("users delete cli-anna")[0] == 0
    becomes([], listed)
