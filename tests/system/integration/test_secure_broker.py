"""Every client and Kafka's tools through each secure listener of our broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from peers.both_brokers import TOOLS
from peers.client_security import write_java_properties
from peers.clients import CLIENT_NAMES, clients
from peers.java_peer import JavaPeer, Received
from peers.java_tools import JavaTools, Printed, started_java_tools
from peers.samples import by_place, edge_samples, expected
from peers.secure_broker import SecureBroker
from peers.secure_listeners import MECHANISMS

PARTITIONS = 2
#: Each listener and mechanism of our broker.
WAYS = [
    ("SSL", None),
    ("MTLS", None),
    ("SASL_PLAINTEXT", "SCRAM-SHA-512"),
    *(("SASL_SSL", mechanism) for mechanism in MECHANISMS),
    ("SHORT_SESSIONS", "SCRAM-SHA-256"),
]


@pytest.mark.kafka(
    "SaslAuthenticatorTest.testValidSaslPlainOverSsl",
    "SaslAuthenticatorTest.testValidSaslPlainOverPlaintext",
    "SaslAuthenticatorTest.testMultipleServerMechanisms",
    "SaslAuthenticatorTest.testValidSaslScramMechanisms",
    "SaslAuthenticatorTest.testValidSaslOauthBearerMechanism",
    "SaslAuthenticatorTest.testSslClientAuthDisabledForSaslSslListener",
)
@pytest.mark.parametrize(("listener", "mechanism"), WAYS)
def test_every_client_reads_what_every_client_wrote_through_each_listener(
    secure_broker: SecureBroker, java_peer: JavaPeer, listener: str, mechanism: str | None
) -> None:
    topic = f"all-{listener}-{mechanism}"
    java_peer.create_topic(secure_broker.bootstrap_servers, topic, PARTITIONS)
    settings = secure_broker.settings(listener, mechanism)
    servers = settings["bootstrap_servers"]
    known = clients(java_peer, settings)
    samples = edge_samples(PARTITIONS)
    written: list[Received] = []
    for name in CLIENT_NAMES:
        written += expected(samples, known[name].produce(servers, topic, samples, "lz4"))
    for name in CLIENT_NAMES:
        read = known[name].consume(servers, topic, PARTITIONS, len(written))
        assert sorted(read, key=by_place) == sorted(written, key=by_place), name


# ---- Kafka's tools -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tools() -> Iterator[JavaTools]:
    with started_java_tools() as running:
        yield running


@pytest.mark.parametrize(
    ("listener", "mechanism"), [("MTLS", None), ("SASL_SSL", "SCRAM-SHA-512"), ("SASL_SSL", "OAUTHBEARER")]
)
def test_kafkas_tools_work_with_a_file_of_properties(
    secure_broker: SecureBroker, tools: JavaTools, tmp_path: Path, listener: str, mechanism: str | None
) -> None:
    settings = secure_broker.settings(listener, mechanism)
    config = write_java_properties(settings, tmp_path / "client.properties")
    topic = f"tools-{listener}-{mechanism}"

    def run(tool: str, *arguments: str) -> Printed:
        to = ("--bootstrap-server", settings["bootstrap_servers"], "--command-config", config)
        done = tools.run(TOOLS + tool, *to, *arguments)
        assert done.status == 0, done
        return done

    assert topic in run("TopicCommand", "--create", "--topic", topic).out
    assert topic in run("TopicCommand", "--list").out.split()
    assert f"{topic}:0:0" in run("GetOffsetShell", "--topic", topic).out
    assert "Topic:" in run("TopicCommand", "--describe", "--topic", topic).out
    run("consumer.group.ConsumerGroupCommand", "--list")
    run("TopicCommand", "--delete", "--topic", topic)
