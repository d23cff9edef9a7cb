"""The commands on Apache Kafka with TLS and SASL, configured by arguments and by a file for Kafka's tools."""

import json
import uuid

import pytest
from peers.client_security import write_java_properties
from peers.secure_kafka import PASSWORDS

from kafkacore.cli.main import main


@pytest.fixture
def run(capfdbinary, tmp_path):
    """Return a function that runs a command, and returns its status, output and errors."""

    def run(*words, lines=None):
        if lines is not None:
            (tmp_path / "lines").write_text("".join(f"{line}\n" for line in lines))
            words = (*words, "--file", str(tmp_path / "lines"))
        capfdbinary.readouterr()
        status = main(list(words))
        shown = capfdbinary.readouterr()
        return status, shown.out.decode(), shown.err.decode()

    return run


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"])
def test_records_go_in_and_out_by_arguments(secure_kafka, run, monkeypatch, mechanism):
    monkeypatch.setenv("KAFKACORE_PASSWORD", PASSWORDS["alice"])
    settings = secure_kafka.settings("SASL_SSL")
    where = ("--bootstrap", settings["bootstrap_servers"], "--cafile", settings["ssl_cafile"])
    where += ("--username", "alice", "--sasl-mechanism", mechanism)
    topic = f"commands-{uuid.uuid4().hex[:8]}"
    assert run("topics", "create", topic, *where) == (0, f"created {topic} with 1 partitions\n", "")
    assert run("produce", topic, *where, lines=["one", "two"]) == (0, "", "")
    assert run("consume", topic, *where, "--from-beginning", "--exit-at-end")[:2] == (0, "one\ntwo\n")
    assert topic in json.loads(run("topics", "list", "--json", *where)[1])


def test_file_that_javas_tools_take_is_taken(secure_kafka, run, tmp_path):
    settings = secure_kafka.settings("MTLS")
    config = write_java_properties(settings, tmp_path / "client.properties")
    where = ("--bootstrap", settings["bootstrap_servers"], "--command-config", config)
    status, shown, _ = run("users", "list", "--json", *where)
    assert status == 0
    assert {"user": "alice", "mechanism": "SCRAM-SHA-512", "iterations": 4096} in json.loads(shown)


@pytest.mark.parametrize(
    ("listener", "words", "sentence"),
    [
        ("SASL_SSL", ("--username", "alice"), "uthentication failed"),
        ("SASL_SSL", ("--username", "alice", "--sasl-mechanism", "GSSAPI"), "GSSAPI"),
        ("SSL", ("--security-protocol", "SASL_SSL", "--username", "alice"), "SASL"),
    ],
)
def test_who_is_not_let_in_is_told_why_in_a_sentence(
    secure_kafka, run, monkeypatch, listener, words, sentence
):
    monkeypatch.setenv("KAFKACORE_PASSWORD", "hunter2-zq7")
    settings = secure_kafka.settings(listener)
    where = ("--bootstrap", settings["bootstrap_servers"], "--cafile", settings["ssl_cafile"])
    status, shown, said = run("topics", "list", *where, *words)
    assert (status, shown) == (1, "") or (status, shown) == (2, "")
    assert sentence in said
    assert said.count("\n") == 1
    assert "hunter2" not in said


def test_certificate_of_a_stranger_is_named(secure_kafka, run):
    servers = secure_kafka.settings("SSL")["bootstrap_servers"]
    status, _, said = run("topics", "list", "--bootstrap", servers, "--security-protocol", "SSL")
    assert status == 1
    assert "certificate" in said
    assert said.count("\n") == 1
