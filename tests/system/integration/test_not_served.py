"""On our broker, the KIP-848 group protocol fails at once with a reason."""

from __future__ import annotations

import confluent_kafka
from eventually import BUDGET_S

from kafkacore.testing.embedded_broker import EmbeddedBroker


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
