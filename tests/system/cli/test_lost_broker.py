"""Commands whose broker stops in the middle: they report it, and continue when the broker is back."""

import os

import pytest
from eventually import BUDGET_S

from kafkacore import KafkaConsumer, KafkaProducer
from kafkacore.cli.common import lost_brokers_reported
from kafkacore.client.connection_errors import ConnectionErrors
from kafkacore.testing.embedded_broker import EmbeddedBroker


@pytest.fixture
def broker():
    with EmbeddedBroker() as broker:
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            producer.send("lines", b"first").get(BUDGET_S)
        yield broker


def test_produce_says_that_its_broker_is_gone_and_writes_when_it_is_back(broker, start, tmp_path):
    given = tmp_path / "lines"
    os.mkfifo(given)
    command = start("produce", "lines", "--bootstrap", broker.bootstrap_servers, "--file", str(given))
    with (
        given.open("wb", buffering=0) as lines,
        KafkaConsumer(
            "lines", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
        ) as consumer,
    ):
        lines.write(b"second\n")
        assert [next(consumer).value for _ in range(2)] == [b"first", b"second"]
        broker.kill()
        lines.write(b"third\n")
        command.wait_until_it_says(f"kafkacore: no connection to {broker.bootstrap_servers}: ")
        broker.restart()
        command.wait_until_it_says("can be reached now")
        assert next(consumer).value == b"third"
    assert command.end() == 0


def test_consume_says_that_its_broker_is_gone_and_reads_when_it_is_back(broker, start):
    servers = broker.bootstrap_servers
    command = start("consume", "lines", "--bootstrap", servers, "--from-beginning", "--max-records", "2")
    assert command.process.stdout.readline() == b"first\n"
    broker.kill()
    command.wait_until_it_says(f"kafkacore: no connection to {servers}: ")
    broker.restart()
    command.wait_until_it_says("can be reached now")
    with KafkaProducer(bootstrap_servers=servers) as producer:
        producer.send("lines", b"second").get(BUDGET_S)
    assert command.process.stdout.readline() == b"second\n"
    assert command.end() == 0


def test_log_that_says_it_anyway_is_left_alone(caplog, capsys):
    with lost_brokers_reported():
        ConnectionErrors().failed("b:1", "refused")
    assert "no connection to b:1" in caplog.text
    assert capsys.readouterr().err == ""
