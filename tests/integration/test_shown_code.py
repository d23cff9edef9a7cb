"""What README.md shows of producers and consumers runs as it stands, on Apache Kafka."""

from __future__ import annotations

import os

import pyarrow
import pytest
from integration.secure_kafka import PASSWORDS
from integration.shown_code import code_blocks

import kafkacore
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.structs import TopicPartition

PRODUCE, MANY, PROMETHEUS, TRANSACTION, READ, GROUP, HOLD, COLUMNS = range(8)
#: Behind these come what is shown of secure connections.
SPARK, FIXTURES = -2, -1


class EnoughError(Exception):
    """A loop that a page shows without an end has done what it shows."""


class Consumer(kafkacore.KafkaConsumer):
    """Whose first commit is its last."""

    def commit(self, *arguments):
        super().commit(*arguments)
        raise EnoughError


@pytest.fixture(scope="module")
def blocks(apache_kafka):
    """Of the page; the topics that it names exist."""
    with KafkaAdminClient(bootstrap_servers=apache_kafka.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, 1) for name in ("greetings", "invoices", "bills")])
    # Another page's test has a topic "orders", too.
    places = {"localhost:9092": apache_kafka.bootstrap_servers, "port=9400": "port=0", '"orders"': '"bills"'}
    return code_blocks("README.md", places)


def test_records_are_sent_counted_and_read(blocks, capsys):
    names = {"table": pyarrow.table({"value": [b"column"]})}
    exec(blocks[PRODUCE] + blocks[MANY] + blocks[PROMETHEUS], names)
    names["exporter"].close()
    assert "RecordMetadata(topic='greetings', partition=0, " in capsys.readouterr().out
    assert list(names["offsets"]) == [3]
    seen = []

    def shown(*values):
        seen.append(values)
        if len(seen) == 4:
            raise EnoughError

    names["print"] = shown
    with pytest.raises(EnoughError):
        exec(blocks[READ], names)
    names["consumer"].close()
    assert [value for *_, value in seen] == [b"hello", b"hello", b"world", b"column"]


def test_transaction_moves_a_group_and_a_group_bills_and_holds(blocks, apache_kafka):
    servers = apache_kafka.bootstrap_servers
    with kafkacore.KafkaProducer(bootstrap_servers=servers) as producer:
        for number in range(50):
            producer.send("bills", b"%d" % number)
    billed = []
    names = {"bill": lambda record: billed.append(record.value), "bill_slowly": billed.append}
    exec(blocks[TRANSACTION], names)
    with pytest.raises(EnoughError):
        exec(blocks[GROUP], names | {"KafkaConsumer": Consumer, "TopicPartition": TopicPartition})
    settings = {"bootstrap_servers": servers, "enable_auto_commit": False}
    with Consumer("bills", group_id="billing", **settings) as consumer:
        assert consumer.committed(TopicPartition("bills", 0)) == 43 + len(billed)
    assert billed == [b"%d" % number for number in range(43, 43 + len(billed))]
    billed.clear()
    with (
        Consumer("bills", group_id="slow", auto_offset_reset="earliest", **settings) as consumer,
        pytest.raises(EnoughError),
    ):
        exec(blocks[HOLD], names | {"consumer": consumer, "TopicPartition": TopicPartition})
    assert [record.value for record in billed] == [b"0"]


def test_columns_become_a_table(blocks, apache_kafka):
    with kafkacore.KafkaConsumer(bootstrap_servers=apache_kafka.bootstrap_servers) as consumer:
        consumer.assign([TopicPartition("bills", 0)])
        consumer.seek_to_beginning()
        consumer.poll(0)
        names = {"consumer": consumer}
        while "table" not in names:
            exec(blocks[COLUMNS], names)
    assert names["table"].num_rows > 0


def test_a_secure_producer_is_made_as_shown(secure_kafka, monkeypatch):
    settings = secure_kafka.settings("SASL_SSL")
    places = {"broker:9093": settings["bootstrap_servers"], '"ca.pem"': repr(settings["ssl_cafile"])}
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORDS["alice"])
    [shown] = [block for block in code_blocks("README.md", places) if "SCRAM-SHA-512" in block]
    names = {"KafkaProducer": kafkacore.KafkaProducer, "os": os}
    exec(shown, names)
    with names["producer"] as producer:
        assert producer.send("shown-secure", b"v").get(timeout=60).offset == 0
