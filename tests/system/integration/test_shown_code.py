"""Run README.md, and examples of the guides that need more than the embedded broker, on Apache Kafka."""

from __future__ import annotations

import pytest
from eventually import BUDGET_S
from peers.secure_kafka import PASSWORDS
from peers.shown_code import code_blocks, run_readme

import kafkacore
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.structs import TopicPartition


@pytest.fixture
def topics(apache_kafka):
    """Create the topics that the page names, of one partition."""
    names = ["greetings", "invoices", "orders"]
    with KafkaAdminClient(bootstrap_servers=apache_kafka.bootstrap_servers) as admin:
        # The test of another page on the same Apache Kafka may have used one of these names.
        admin.delete_topics([name for name in names if name in admin.list_topics()])
        admin.create_topics([NewTopic(name, 1) for name in names])
        yield
        admin.delete_topics(names)


def test_blocks_and_the_transaction_run_on_apache_kafka(topics, apache_kafka, capsys):
    servers = apache_kafka.bootstrap_servers
    run_readme(servers)
    assert "0 2 None b'world'" in capsys.readouterr().out
    [shown] = [
        block
        for block in code_blocks("docs/guides/transactions.md", {"localhost:9092": servers})
        if 'producer.send("invoices", b"...")' in block
    ]
    exec(shown, {})
    with kafkacore.KafkaConsumer(
        "invoices",
        bootstrap_servers=servers,
        group_id="billing",
        isolation_level="read_committed",
        auto_offset_reset="earliest",
    ) as consumer:
        assert next(consumer).value == b"..."
        assert consumer.committed(TopicPartition("orders", 0)) == 43


def test_a_secure_producer_is_made_as_shown(secure_kafka, monkeypatch):
    settings = secure_kafka.settings("SASL_SSL")
    places = {"broker:9093": settings["bootstrap_servers"], '"ca.pem"': repr(settings["ssl_cafile"])}
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORDS["alice"])
    [shown] = [block for block in code_blocks("docs/guides/security.md", places) if "SCRAM-SHA-512" in block]
    names = {}
    exec(shown, names)
    with names["producer"] as producer:
        assert producer.send("shown-secure", b"v").get(timeout=BUDGET_S).offset == 0
