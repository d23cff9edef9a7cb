"""Our producer and consumer and the Java client through Apache Kafka, in both directions.

The other Python clients are combined with the Java client as well. This validates the test code, so that a
difference found with our client is a fault of our client.
"""

from __future__ import annotations

import pyarrow
import pytest
from eventually import BUDGET_S
from peers.apache_kafka import ApacheKafka
from peers.clients import CLIENT_NAMES, CODECS, Client, clients
from peers.java_peer import JavaPeer, Sample
from peers.samples import T0, by_place, edge_samples, expected, sized_samples

from kafkacore import KafkaProducer

PARTITIONS = 3


@pytest.fixture(scope="session")
def by_name(java_peer: JavaPeer) -> dict[str, Client]:
    return clients(java_peer)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("name", CLIENT_NAMES)
def test_java_reads_what_a_client_wrote(
    apache_kafka: ApacheKafka, java_peer: JavaPeer, by_name: dict[str, Client], name: str, codec: str
) -> None:
    servers, topic = apache_kafka.bootstrap_servers, f"to-java-{name}-{codec}"
    java_peer.create_topic(servers, topic, PARTITIONS)
    samples = edge_samples(PARTITIONS) + sized_samples()
    places = by_name[name].produce(servers, topic, samples, codec)
    assert sorted(java_peer.consume(servers, topic, len(samples)), key=by_place) == expected(samples, places)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("name", CLIENT_NAMES)
def test_client_reads_what_java_wrote(
    apache_kafka: ApacheKafka, java_peer: JavaPeer, by_name: dict[str, Client], name: str, codec: str
) -> None:
    servers, topic = apache_kafka.bootstrap_servers, f"from-java-{name}-{codec}"
    java_peer.create_topic(servers, topic, PARTITIONS)
    samples = edge_samples(PARTITIONS) + sized_samples()
    places = by_name["java"].produce(servers, topic, samples, codec)
    read = by_name[name].consume(servers, topic, PARTITIONS, len(samples))
    assert sorted(read, key=by_place) == expected(samples, places)


def test_null_header_values_go_both_ways(
    apache_kafka: ApacheKafka, java_peer: JavaPeer, by_name: dict[str, Client]
) -> None:
    servers, topic = apache_kafka.bootstrap_servers, "null-header-values"
    java_peer.create_topic(servers, topic)
    samples = [Sample(b"v", None, 0, T0, (("null", None), ("", b"empty key"), ("null", None)))]
    for name in ("kafkacore", "java"):
        by_name[name].produce(servers, topic, samples, "none")
    ours = by_name["kafkacore"].consume(servers, topic, 1, 2)
    assert ours == java_peer.consume(servers, topic, 2)
    assert [record.headers for record in ours] == [samples[0].headers] * 2


@pytest.mark.parametrize(("writer", "reader"), [("kafkacore", "java"), ("java", "kafkacore")])
def test_topic_with_100_partitions_goes_both_ways(
    apache_kafka: ApacheKafka, java_peer: JavaPeer, by_name: dict[str, Client], writer: str, reader: str
) -> None:
    servers, topic = apache_kafka.bootstrap_servers, f"hundred-{writer}"
    java_peer.create_topic(servers, topic, 100)
    keys = [b"key %d" % number for number in range(2_000)]
    samples = [Sample(b"value", key, None, T0 + number) for number, key in enumerate(keys)]
    places = by_name[writer].produce(servers, topic, samples, "lz4")
    assert [partition for partition, _ in places] == java_peer.partitions_for_keys(keys, 100)
    read = by_name[reader].consume(servers, topic, 100, len(samples))
    assert sorted(read, key=by_place) == expected(samples, places)


def test_log_append_time_is_read_as_java_reads_it(
    apache_kafka: ApacheKafka, java_peer: JavaPeer, by_name: dict[str, Client]
) -> None:
    servers, topic = apache_kafka.bootstrap_servers, "log-append-time"
    java_peer.create_topic(servers, topic, config={"message.timestamp.type": "LogAppendTime"})
    for codec in CODECS:
        by_name["kafkacore"].produce(servers, topic, edge_samples(1), codec)
    count = len(CODECS) * len(edge_samples(1))
    ours = by_name["kafkacore"].consume(servers, topic, 1, count)
    assert ours == java_peer.consume(servers, topic, count)
    assert {record.timestamp_type for record in ours} == {1}


def test_transaction_markers_are_no_records(
    apache_kafka: ApacheKafka, java_peer: JavaPeer, by_name: dict[str, Client]
) -> None:
    servers, topic = apache_kafka.bootstrap_servers, "transactions"
    java_peer.create_topic(servers, topic)
    for end in ("commit", "abort", "commit"):
        config = {"transactional.id": "writer"}
        java_peer.produce(servers, topic, [Sample(end.encode(), None, 0, T0)] * 2, config, transaction=end)
    read = by_name["kafkacore"].consume(servers, topic, 1, 6)
    assert [(record.offset, record.value) for record in read] == [
        (0, b"commit"), (1, b"commit"), (3, b"abort"), (4, b"abort"), (6, b"commit"), (7, b"commit"),
    ]  # fmt: skip


@pytest.mark.parametrize("codec", CODECS)
def test_java_reads_what_send_arrow_wrote(apache_kafka: ApacheKafka, java_peer: JavaPeer, codec: str) -> None:
    servers, topic = apache_kafka.bootstrap_servers, f"arrow-to-java-{codec}"
    java_peer.create_topic(servers, topic, PARTITIONS)
    samples = edge_samples(PARTITIONS) + sized_samples((1, 10, 100, 1_000, 10_000, 100_000))
    header = pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())])
    table = pyarrow.table(
        {
            "key": pyarrow.array([sample.key for sample in samples], pyarrow.binary()),
            "value": pyarrow.array([sample.value for sample in samples], pyarrow.binary()),
            "timestamp": pyarrow.array([sample.timestamp for sample in samples], pyarrow.timestamp("ms")),
            "partition": pyarrow.array([sample.partition for sample in samples], pyarrow.int32()),
            "headers": pyarrow.array(
                [[{"key": key, "value": value} for key, value in sample.headers] for sample in samples],
                pyarrow.list_(header),
            ),
        }
    )
    with KafkaProducer(
        bootstrap_servers=servers, compression_type=None if codec == "none" else codec, batch_size=20_000
    ) as producer:
        future = producer.send_arrow(topic, table)
        places = [
            (future[row].get(BUDGET_S).partition, future[row].get(BUDGET_S).offset)
            for row in range(len(samples))
        ]
        assert future.get(0).tolist() == [offset for _, offset in places]
    assert sorted(java_peer.consume(servers, topic, len(samples)), key=by_place) == expected(samples, places)
