"""The Java peer reports what it did, checked with Apache Kafka alone: other tests rely on it."""

from __future__ import annotations

import pytest
from eventually import eventually
from peers.apache_kafka import ApacheKafka
from peers.jars import JavaToolError
from peers.java_peer import JavaPeer, Sample

T0 = 1_700_000_000_000


def test_peer_reads_back_what_it_wrote(apache_kafka: ApacheKafka, java_peer: JavaPeer) -> None:
    servers, topic = apache_kafka.bootstrap_servers, "peer-reads-back"
    java_peer.create_topic(servers, topic, partitions=2)
    headers = (("a", b"1"), ("a", None), ("", b""))
    samples = [Sample(b"v", b"k", 1, T0, headers), Sample(None, None, 0, T0 + 1), Sample(b"", b"", 1, T0 + 2)]
    assert java_peer.produce(servers, topic, samples) == [(1, 0), (0, 0), (1, 1)]
    assert sorted(java_peer.consume(servers, topic, 3)) == [
        (0, 0, T0 + 1, 0, None, None, ()),
        (1, 0, T0, 0, b"k", b"v", headers),
        (1, 1, T0 + 2, 0, b"", b"", ()),
    ]
    offsets = java_peer.offsets(servers, topic, [T0 + 1])
    assert offsets.end == {0: 1, 1: 2}
    assert offsets.for_times == [{0: (0, T0 + 1), 1: (1, T0 + 2)}]


def test_failed_command_says_why_and_the_next_one_works(
    apache_kafka: ApacheKafka, java_peer: JavaPeer
) -> None:
    with pytest.raises(JavaToolError, match="InvalidTopicException"):
        java_peer.create_topic(apache_kafka.bootstrap_servers, "no/such/name")
    # From Kafka's UtilsTest.testMurmur2: "21" has the hash -973932308.
    assert java_peer.partitions_for_keys([b"21"], 1000) == [(-973932308 & 0x7FFFFFFF) % 1000]


def test_log_that_is_shorter_than_is_known_is_not_taken_for_read(
    apache_kafka: ApacheKafka, java_peer: JavaPeer
) -> None:
    servers, topic = apache_kafka.bootstrap_servers, "peer-knows-an-end"
    java_peer.create_topic(servers, topic, partitions=2)
    java_peer.produce(servers, topic, [Sample(b"v", partition=0), Sample(b"w", partition=1)])
    assert len(java_peer.consume(servers, topic, None, at_least={0: 1})) == 2

    def refusal() -> str:
        with pytest.raises(JavaToolError, match="was read in 4000 ms in partition") as refused:
            java_peer.consume(servers, topic, None, timeout_ms=4_000, at_least={0: 1, 1: 2})
        return str(refused.value)

    # On a slow machine, the time may pass before the other partition has been read.
    eventually(lambda: "in partition 1 to 1 of 2" in refusal())
