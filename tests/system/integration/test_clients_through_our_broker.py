"""Every client's consumer reads what every client's producer has written to our broker.

Each producer writes one topic, with all five codecs in one log; each consumer then reads the whole topic.
"""

from __future__ import annotations

import pytest
from peers.clients import CLIENT_NAMES, CODECS, Client, clients
from peers.java_peer import JavaPeer, Received, Sample
from peers.samples import T0, by_place, edge_samples, expected, sized_samples

from kafkacore.testing.embedded_broker import EmbeddedBroker

PARTITIONS = 3


class Writings:
    """The topics of the producers, each written on first use."""

    def __init__(self, broker: EmbeddedBroker, peer: JavaPeer) -> None:
        self.servers = broker.bootstrap_servers
        self.clients: dict[str, Client] = clients(peer)
        self._peer = peer
        self._done: dict[str, list[Received]] = {}

    def of(self, writer: str) -> tuple[str, list[Received]]:
        """Return the topic that ``writer`` wrote, and the records that a consumer must read."""
        topic = f"written-by-{writer}"
        if writer not in self._done:
            self._peer.create_topic(self.servers, topic, PARTITIONS)
            samples = edge_samples(PARTITIONS) + sized_samples()
            records: list[Received] = []
            for codec in CODECS:
                records += expected(
                    samples, self.clients[writer].produce(self.servers, topic, samples, codec)
                )
            self._done[writer] = sorted(records, key=by_place)
        return topic, self._done[writer]


@pytest.fixture(scope="module")
def writings(our_broker: EmbeddedBroker, java_peer: JavaPeer) -> Writings:
    return Writings(our_broker, java_peer)


@pytest.mark.parametrize("writer", CLIENT_NAMES)
def test_offsets_that_a_producer_is_told_are_without_gap(writings: Writings, writer: str) -> None:
    _, records = writings.of(writer)
    for partition in range(PARTITIONS):
        offsets = [record.offset for record in records if record.partition == partition]
        assert offsets == list(range(len(offsets)))


@pytest.mark.parametrize("reader", CLIENT_NAMES)
@pytest.mark.parametrize("writer", CLIENT_NAMES)
def test_consumer_reads_what_a_producer_wrote(writings: Writings, writer: str, reader: str) -> None:
    topic, records = writings.of(writer)
    read = writings.clients[reader].consume(writings.servers, topic, PARTITIONS, len(records))
    assert sorted(read, key=by_place) == records


@pytest.mark.parametrize("writer", CLIENT_NAMES)
def test_topic_with_100_partitions_takes_keyed_records(
    our_broker: EmbeddedBroker, java_peer: JavaPeer, writings: Writings, writer: str
) -> None:
    topic = f"hundred-by-{writer}"
    java_peer.create_topic(our_broker.bootstrap_servers, topic, 100)
    keys = [b"key %d" % number for number in range(500)]
    samples = [Sample(b"value", key, None, T0 + number) for number, key in enumerate(keys)]
    places = writings.clients[writer].produce(our_broker.bootstrap_servers, topic, samples, "none")
    assert len({partition for partition, _ in places}) > 90
    read = java_peer.consume(our_broker.bootstrap_servers, topic, len(samples))
    assert sorted(read, key=by_place) == expected(samples, places)
