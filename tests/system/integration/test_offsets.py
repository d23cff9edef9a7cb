"""Offsets by timestamp: our broker and consumer give the offsets of Apache Kafka and its Java consumer."""

from __future__ import annotations

import random

import pytest
from peers.apache_kafka import ApacheKafka
from peers.java_peer import JavaPeer, Offsets, Sample
from peers.samples import T0

from kafkacore import KafkaConsumer, TopicPartition
from kafkacore.testing.embedded_broker import EmbeddedBroker

PARTITIONS = 3


def samples(codec: str) -> list[Sample]:
    """Return timestamps that mostly increase, with ties and steps back; partition 2 stays empty."""
    chance = random.Random(codec)
    times = [T0 + number * 10 + chance.randint(-40, 40) for number in range(300)]
    return [
        Sample(b"x" * chance.randint(0, 200), None, number % 2, time) for number, time in enumerate(times)
    ]


def our_offsets(servers: str, topic: str, timestamps: list[int]) -> Offsets:
    """Return the offsets that our consumer reports for all partitions of the topic."""
    consumer = KafkaConsumer(bootstrap_servers=servers)
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    try:
        found = [consumer.offsets_for_times(dict.fromkeys(partitions, timestamp)) for timestamp in timestamps]
        return Offsets(
            {tp.partition: offset for tp, offset in consumer.beginning_offsets(partitions).items()},
            {tp.partition: offset for tp, offset in consumer.end_offsets(partitions).items()},
            [
                {tp.partition: (hit.offset, hit.timestamp) if hit else None for tp, hit in one.items()}
                for one in found
            ],
        )
    finally:
        consumer.close()


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_offsets_by_timestamp_are_apache_kafkas(
    apache_kafka: ApacheKafka, our_broker: EmbeddedBroker, java_peer: JavaPeer, codec: str
) -> None:
    topic = f"by-timestamp-{codec}"
    timestamps = [0, T0 - 50, *range(T0 - 45, T0 + 3_100, 37), T0 + 10_000]
    # Small batches, so that a lookup must search inside a batch and across batches.
    config = {"batch.size": "600", "linger.ms": "5", "compression.type": codec}
    answers = []
    for servers in (apache_kafka.bootstrap_servers, our_broker.bootstrap_servers):
        java_peer.create_topic(servers, topic, PARTITIONS)
        java_peer.produce(servers, topic, samples(codec), config)
        answers.append(java_peer.offsets(servers, topic, timestamps))
        answers.append(our_offsets(servers, topic, timestamps))
    assert answers[0].end == {0: 150, 1: 150, 2: 0}
    assert answers[1:] == answers[:1] * 3
