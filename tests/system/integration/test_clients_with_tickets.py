"""Clients with Kerberos tickets and signed tokens, on Apache Kafka and on our broker."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eventually import BUDGET_S, eventually
from missing_tools import GSSAPI, import_or_leave_out
from peers.clients import clients
from peers.jars import SHORT_LIVED, java_command
from peers.java_peer import JavaPeer, Sample
from peers.samples import T0, expected
from peers.shown_code import code_blocks
from peers.ticketed_kafka import (
    TicketedListener,
    krb5_login,
    started_ticketed_broker,
    started_ticketed_kafka,
    ticketed_listener,
)
from security.identity_provider import claims, identity_provider, signed

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import AuthenticationFailedError
from kafkacore.security.https import ALLOWED_URLS

import_or_leave_out("gssapi", GSSAPI)

SAMPLES = [Sample(b"value %d" % number, b"key", 0, T0 + number) for number in range(20)]
_topics = (f"ticketed-{number}" for number in itertools.count())


@pytest.fixture(scope="module", params=["Apache Kafka", "our broker"])
def listener(request: pytest.FixtureRequest) -> Iterator[TicketedListener]:
    started = {"Apache Kafka": started_ticketed_kafka, "our broker": started_ticketed_broker}[request.param]
    with ticketed_listener() as listener, pytest.MonkeyPatch.context() as patch:
        for name, value in listener.realm.environment.items():
            patch.setenv(name, value)
        patch.setenv(ALLOWED_URLS, listener.keys_url)
        with started(listener):
            yield listener


@pytest.fixture
def topic(listener: TicketedListener, java_peer: JavaPeer) -> str:
    name = next(_topics)
    java_peer.create_topic(listener.open_servers, name)
    return name


@pytest.mark.parametrize(
    ("mechanism", "peer"),
    [
        ("GSSAPI", "kafka-python"),
        ("GSSAPI", "aiokafka"),
        ("OAUTHBEARER", "kafka-python"),
        ("OAUTHBEARER", "confluent-kafka"),
    ],
)
def test_what_a_client_writes_the_other_reads(
    listener: TicketedListener, topic: str, java_peer: JavaPeer, mechanism: str, peer: str
) -> None:
    settings = listener.settings(mechanism)
    everyone, servers = clients(java_peer, settings), settings["bootstrap_servers"]
    for writer, reader in ((peer, "kafkacore"), ("kafkacore", peer)):
        places = everyone[writer].produce(servers, topic, SAMPLES, "lz4")
        first = places[0][1]
        assert everyone[reader].consume(servers, topic, 1, first + len(SAMPLES))[first:] == expected(
            SAMPLES, places
        )


def test_javas_tools_come_with_a_ticket(listener: TicketedListener, topic: str, tmp_path: Path) -> None:
    login = krb5_login(Path(listener.realm.environment["KRB5_CLIENT_KTNAME"]), "alice")
    properties = tmp_path / "client.properties"
    properties.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\n"
        f"sasl.jaas.config={login}\n"
    )
    common = ["--bootstrap-server", listener.servers, "--topic", topic, "--command-config", str(properties)]
    java(listener, "org.apache.kafka.tools.ConsoleProducer", *common, stdin=b"one\ntwo\n")
    limits = ["--from-beginning", "--max-messages", "2", "--timeout-ms", "30000"]
    said = java(listener, "org.apache.kafka.tools.consumer.ConsoleConsumer", *common, *limits)
    assert said == b"one\ntwo\n"


def java(listener: TicketedListener, tool: str, *arguments: str, stdin: bytes = b"") -> bytes:
    jvm = (*SHORT_LIVED, f"-Djava.security.krb5.conf={listener.realm.config}")
    done = subprocess.run(
        java_command(tool, *arguments, jvm=jvm), input=stdin, capture_output=True, timeout=2 * BUDGET_S
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_keytab_of_ones_own_is_used(listener: TicketedListener, topic: str) -> None:
    own = {
        "sasl_kerberos_keytab": listener.realm.environment["KRB5_CLIENT_KTNAME"],
        "sasl_kerberos_principal": "alice",
    }
    with KafkaProducer(**listener.settings("GSSAPI"), **own) as producer:
        assert producer.send(topic, b"value").get(BUDGET_S).offset == 0


def test_client_credentials_renew_the_session_while_records_flow(
    listener: TicketedListener, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens, and with them the broker's sessions, last a few seconds."""
    with identity_provider(tmp_path) as provider:
        monkeypatch.setenv(ALLOWED_URLS, provider.address)
        settings: dict[str, Any] = {
            **listener.settings("GSSAPI"),
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauthbearer_token_endpoint_url": provider.address,
            "sasl_oauthbearer_client_credentials_client_id": "me",
            "sasl_oauthbearer_client_credentials_client_secret": "secret",
            "sasl_oauthbearer_https_cafile": provider.cafile,
            # A token has half of its lifetime left when the client uses it. Kafka rejects a renewal within
            # one second.
            "sasl_login_refresh_window_factor": 0.5,
            "sasl_login_refresh_window_jitter": 0,
        }

        def answer() -> bytes:
            now_s = SYSTEM_CLOCK.wall_ms() / 1000
            return b'{"access_token":"%s"}' % signed(claims(int(now_s), exp=now_s + 6.0)).encode()

        provider.answer_with(answer)
        with (
            KafkaProducer(**settings) as producer,
            KafkaConsumer(**settings, auto_offset_reset="earliest") as consumer,
        ):
            consumer.assign([TopicPartition(topic, 0)])
            sent, got = 0, 0

            # Send and receive until each client has fetched at least two tokens after its first.
            def step() -> None:
                nonlocal got, sent
                producer.send(topic, b"%d" % sent).get(BUDGET_S)
                sent += 1
                got += sum(map(len, consumer.poll(timeout_ms=100).values()))

            eventually(lambda: len(provider.asked) >= 6, lambda: provider.asked, step=step)
            while got < sent:
                found = consumer.poll(timeout_ms=60_000)
                assert found, f"{got} of {sent} records"
                got += sum(map(len, found.values()))
        assert got == sent


def test_token_that_the_broker_refuses_is_told_to_who_sends(listener: TicketedListener, topic: str) -> None:
    settings = listener.settings("OAUTHBEARER", lifetime_s=-120.0)
    with (
        pytest.raises(AuthenticationFailedError, match="invalid_token"),
        KafkaProducer(**settings, max_block_ms=60_000) as producer,
    ):
        producer.send(topic, b"value").get(BUDGET_S)


def test_what_is_shown_of_tokens_runs(
    listener: TicketedListener, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with identity_provider(tmp_path) as provider:
        now_s = SYSTEM_CLOCK.wall_ms() // 1000
        provider.will_answer({"access_token": signed(claims(now_s))})
        places = {
            "broker:9093": listener.servers,
            "SASL_SSL": "SASL_PLAINTEXT",
            "https://idp.example/oauth2/token": provider.address,
            '"orders",': f'"{topic}",',
        }
        shown = next(
            block for block in code_blocks("docs/guides/security.md", places) if "token_endpoint_url" in block
        )
        for name, value in {
            ALLOWED_URLS: provider.address,
            "SSL_CERT_FILE": provider.cafile,
            "CLIENT_SECRET": "secret",
        }.items():
            monkeypatch.setenv(name, value)
        names: dict[str, Any] = {"os": os, "KafkaConsumer": KafkaConsumer}
        exec(shown, names)
        with names["consumer"] as consumer:
            assert topic in consumer.topics()
        assert len(provider.asked) == 1
