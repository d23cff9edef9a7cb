"""On our broker, transactions and the KIP-848 group protocol fail at once with a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import aiokafka
import confluent_kafka
import kafka
import pytest
from eventually import BUDGET_S
from peers.jars import JavaToolError
from peers.java_peer import JavaPeer, Sample

from kafkacore import KafkaProducer
from kafkacore.errors import UnsupportedVersionError
from kafkacore.testing.embedded_broker import EmbeddedBroker

REASON = "This broker does not support transactions: use Apache Kafka for them."


def test_librdkafka_reports_the_brokers_reason_as_a_fatal_error(our_broker: EmbeddedBroker) -> None:
    settings = {"bootstrap.servers": our_broker.bootstrap_servers, "transactional.id": "pay"}
    with pytest.raises(confluent_kafka.KafkaException, match=REASON) as caught:
        confluent_kafka.Producer(settings).init_transactions(BUDGET_S)
    assert caught.value.args[0].fatal()


def test_java_reports_the_brokers_reason(our_broker: EmbeddedBroker, java_peer: JavaPeer) -> None:
    with pytest.raises(JavaToolError, match=f"Could not find a coordinator.*{REASON}"):
        java_peer.produce(
            our_broker.bootstrap_servers,
            "transactional",
            [Sample(b"value", None, 0)],
            config={"transactional.id": "pay"},
            transaction="commit",
        )


def with_kafkacore(servers: str) -> None:
    with KafkaProducer(bootstrap_servers=servers, transactional_id="pay") as producer:
        producer.init_transactions()


def with_kafka_python(servers: str) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=servers, transactional_id="pay")
    try:
        producer.init_transactions()
    finally:
        producer.close(timeout=0)


def with_aiokafka(servers: str) -> None:
    async def start() -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=servers, transactional_id="pay")
        try:
            await asyncio.wait_for(producer.start(), BUDGET_S)
        finally:
            await producer.stop()

    asyncio.run(start())


@pytest.mark.parametrize(
    ("initialize", "error"),
    [
        (with_kafkacore, UnsupportedVersionError),
        (with_kafka_python, kafka.errors.KafkaError),
        (with_aiokafka, aiokafka.errors.KafkaError),
    ],
)
def test_python_clients_name_an_unsupported_version(
    our_broker: EmbeddedBroker, initialize: Callable[[str], None], error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"UnsupportedVersionError|UNSUPPORTED_VERSION"):
        initialize(our_broker.bootstrap_servers)


def test_librdkafka_consumer_of_the_new_protocol_fails(our_broker: EmbeddedBroker) -> None:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": our_broker.bootstrap_servers,
            "group.id": "new-protocol",
            "group.protocol": "consumer",
        }
    )
    try:
        consumer.subscribe(["t"])
        message = consumer.poll(BUDGET_S)
        assert message is not None
        error = message.error()
        assert error.code() == confluent_kafka.KafkaError._FATAL
        assert "ConsumerGroupHeartbeat fatal error: Broker: API version not supported" in error.str()
    finally:
        consumer.close()
