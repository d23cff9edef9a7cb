"""Clients of our broker with exactly the permissions that they need, and without any.

Each client works, or reports the missing permission.
"""

from __future__ import annotations

from collections.abc import Iterator

import confluent_kafka
import pytest
from model.authorisation_matrix import GROUP, READ, TOPIC, WRITE, Grant
from model.granted import Granted
from peers.clients import clients
from peers.java_peer import JavaPeer, Sample
from peers.samples import T0, expected

from kafkacore.broker.config.broker_config import BrokerConfig
from kafkacore.broker.process.server import KafkaBroker

SAMPLES = [Sample(b"value %d" % number, b"key", 0, T0 + number) for number in range(20)]
CLIENTS = ("kafkacore", "java", "confluent-kafka", "kafka-python", "aiokafka")
OPEN, SHUT = "open", "shut"
#: librdkafka looks up its group although it assigns partitions itself.
RIGHTS = (Grant(WRITE, TOPIC, OPEN), Grant(READ, TOPIC, OPEN), Grant(READ, GROUP, "assigned-only"))


@pytest.fixture
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("refusing")
    config = BrokerConfig.from_properties({"data_dir": folder, "port": 0, "flush": "os"})
    with KafkaBroker(config) as broker:
        services = broker.services
        assert services is not None

        def begin() -> None:
            for name in (OPEN, SHUT):
                services.topics.create(name, 1, {})
            services.authorizer = Granted(RIGHTS)

        broker.call(begin)
        yield f"127.0.0.1:{broker.port}"


@pytest.mark.parametrize("name", CLIENTS)
def test_client_with_the_right_to_a_topic_writes_and_reads_it(
    servers: str, java_peer: JavaPeer, name: str
) -> None:
    client = clients(java_peer)[name]
    places = client.produce(servers, OPEN, SAMPLES, "lz4")
    assert client.consume(servers, OPEN, 1, len(places)) == expected(SAMPLES, places)


@pytest.mark.parametrize("name", [name for name in CLIENTS if name != "confluent-kafka"])
def test_client_without_a_right_to_a_topic_says_so(servers: str, java_peer: JavaPeer, name: str) -> None:
    with pytest.raises(Exception, match=r"(?i)authoriz\w+.*shut"):
        clients(java_peer)[name].produce(servers, SHUT, SAMPLES[:1], "lz4")


def test_librdkafka_is_told_in_its_delivery_report(servers: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    reports = []
    producer.produce(SHUT, b"value", on_delivery=lambda error, _: reports.append(error))
    producer.flush(60)
    (error,) = reports
    assert error.code() == confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize("name", ["kafkacore", "java"])
def test_reader_without_a_right_to_a_topic_says_so(servers: str, java_peer: JavaPeer, name: str) -> None:
    with pytest.raises(Exception, match=r"(?i)authoriz\w+.*shut"):
        clients(java_peer)[name].consume(servers, SHUT, 1, 1)
