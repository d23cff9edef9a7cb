"""The consumer rejects a batch with a flipped byte, names its offset, and can seek past it.

The byte is in a closed segment of our broker, which sends files without reading them, as Kafka does.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from eventually import eventually
from peers.jars import JavaToolError
from peers.java_peer import JavaPeer

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.errors import CorruptRecordError
from kafkacore.testing.embedded_broker import EmbeddedBroker

RECORDS = 400
EACH = 10
HEADER, CRC, ATTRIBUTES, LAST_DELTA = 61, 17, 21, 23


class Batch(NamedTuple):
    """Position and size of a batch in its file, with its first and last offsets."""

    position: int
    size: int
    first: int
    last: int


def batches_of(file: Path) -> Iterator[Batch]:
    data, position = file.read_bytes(), 0
    while position < len(data):
        first, length = struct.unpack_from(">qi", data, position)
        (delta,) = struct.unpack_from(">i", data, position + LAST_DELTA)
        yield Batch(position, 12 + length, first, first + delta)
        position += 12 + length


def flip(file: Path, position: int) -> None:
    """Flip one bit of the file that the broker has open."""
    with file.open("r+b") as stream:
        stream.seek(position)
        (byte,) = stream.read(1)
        stream.seek(position)
        stream.write(bytes([byte ^ 0x10]))


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(log_segment_bytes=4096, log_retention_ms=-1) as running:
        yield running


def write(broker: EmbeddedBroker, topic: str, codec: str | None) -> None:
    """Write batches of ten records, whose values are their offsets."""
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, compression_type=codec) as producer:
        for first in range(0, RECORDS, EACH):
            values = [b"%d " % number * 10 for number in range(first, first + EACH)]
            producer.send_batch(topic, values, partition=0)
            producer.flush()


def read(consumer: KafkaConsumer, found: list[int], end: int) -> None:
    """Collect the offsets of the records up to ``end``, or to the first error."""

    def step() -> None:
        for records in consumer.poll(timeout_ms=200).values():
            assert all(record.value == b"%d " % record.offset * 10 for record in records)
            found.extend(record.offset for record in records)

    eventually(lambda: found and found[-1] + 1 >= end, lambda: found[-1:], step=step)


@pytest.mark.parametrize("is_restarted", [False, True], ids=["running", "restarted"])
@pytest.mark.parametrize("place", [CRC, ATTRIBUTES + 6, HEADER + 20, -1])
@pytest.mark.parametrize("codec", [None, "zstd"])
def test_flipped_byte_is_refused_with_its_place_and_what_is_behind_it_can_be_read(
    broker: EmbeddedBroker, java_peer: JavaPeer, codec: str | None, place: int, is_restarted: bool
) -> None:
    topic = f"flipped-{codec}-{place}-{is_restarted}"
    java_peer.create_topic(broker.bootstrap_servers, topic, 1)
    write(broker, topic, codec)
    closed, *others = sorted(broker.data_dir.glob(f"{topic}-0/*.log"))
    assert others, "the topic has no closed segment"
    batches = list(batches_of(closed))
    bad = batches[len(batches) // 2]
    flip(closed, bad.position + place % bad.size)
    if is_restarted:
        broker.restart()
    tp = TopicPartition(topic, 0)
    with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([tp])
        before: list[int] = []
        for _ in range(2):
            with pytest.raises(CorruptRecordError) as caught:
                read(consumer, before, RECORDS)
            assert (caught.value.topic_partition, caught.value.offset) == (tp, bad.first)
            assert topic in str(caught.value)
            assert f"offset {bad.first}" in str(caught.value)
        assert before == list(range(bad.first))
        assert consumer.position(tp) == bad.first
        consumer.seek(tp, bad.last + 1)
        behind: list[int] = []
        read(consumer, behind, RECORDS)
        assert behind == list(range(bad.last + 1, RECORDS))


def test_javas_consumer_is_sent_the_flipped_byte_too(broker: EmbeddedBroker, java_peer: JavaPeer) -> None:
    java_peer.create_topic(broker.bootstrap_servers, "flipped-for-java", 1)
    write(broker, "flipped-for-java", None)
    closed = min(broker.data_dir.glob("flipped-for-java-0/*.log"))
    bad = list(batches_of(closed))[2]
    flip(closed, bad.position + HEADER + 20)
    said = re.compile(f"flipped-for-java-0 at offset {bad.first} is invalid")
    with pytest.raises(JavaToolError, match=said):
        java_peer.consume(broker.bootstrap_servers, "flipped-for-java", RECORDS)
