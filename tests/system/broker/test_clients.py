"""Other Kafka clients against the broker process: each reads back what it and the others wrote.

The clients consume without a group.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import aiokafka
import confluent_kafka
import kafka
import pytest
from confluent_kafka import admin as confluent_admin
from eventually import BUDGET_S, eventually
from kafka.admin import NewTopic

from kafkacore.testing import EmbeddedBroker

LARGEST = 1_000_000


class Sent(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


#: A record with neither key nor value is missing, because two of these clients refuse to send it.
SAMPLES = [
    Sent(b"key", b"value", (("trace", b"1"), ("trace", b"2"), ("empty", b""))),
    Sent(None, b"no key"),
    Sent(b"no value", None),
    Sent(b"", b""),
    *(
        Sent(b"%d" % size, bytes(range(256)) * (size // 256) + b"x" * (size % 256))
        for size in (1, 1000, LARGEST)
    ),
    *(Sent(b"k%d" % number, b"a repeated value, number %d" % number) for number in range(50)),
]


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(num_partitions=1) as broker:
        yield broker


def gather(count: int, poll: Callable[[], list[Sent]]) -> list[Sent]:
    found: list[Sent] = []
    eventually(lambda: len(found) >= count, lambda: found, step=lambda: found.extend(poll()))
    return found


# ---- kafka-python ----------------------------------------------------------------------------------------


def kafka_python_writes(servers: str, topic: str, codec: str) -> list[int]:
    producer = kafka.KafkaProducer(
        bootstrap_servers=servers,
        compression_type=None if codec == "none" else codec,
        max_request_size=1 << 21,
    )
    try:
        futures = [producer.send(topic, s.value, s.key, list(s.headers), partition=0) for s in SAMPLES]
        return [future.get(BUDGET_S).offset for future in futures]
    finally:
        producer.close()


def kafka_python_reads(servers: str, topic: str) -> list[Sent]:
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=servers, group_id=None, max_partition_fetch_bytes=1 << 22
    )
    try:
        partition = kafka.TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)

        def poll() -> list[Sent]:
            records = consumer.poll(timeout_ms=200).get(partition, [])
            return [Sent(r.key, r.value, tuple(tuple(h) for h in r.headers)) for r in records]

        return gather(len(SAMPLES), poll)
    finally:
        consumer.close()


# ---- aiokafka --------------------------------------------------------------------------------------------


def aiokafka_writes(servers: str, topic: str, codec: str) -> list[int]:
    async def run() -> list[int]:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=servers,
            compression_type=None if codec == "none" else codec,
            max_request_size=1 << 21,
            enable_idempotence=True,
        )
        await producer.start()
        try:
            futures = [
                await producer.send(topic, s.value, s.key, partition=0, headers=list(s.headers))
                for s in SAMPLES
            ]
            return [(await future).offset for future in futures]
        finally:
            await producer.stop()

    return asyncio.run(run())


def aiokafka_reads(servers: str, topic: str) -> list[Sent]:
    async def run() -> list[Sent]:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=servers, group_id=None, max_partition_fetch_bytes=1 << 22
        )
        await consumer.start()
        try:
            partition = aiokafka.TopicPartition(topic, 0)
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            found: list[Sent] = []
            async with asyncio.timeout(BUDGET_S):
                while len(found) < len(SAMPLES):
                    records = (await consumer.getmany(partition, timeout_ms=200)).get(partition, [])
                    found += [Sent(r.key, r.value, tuple(tuple(h) for h in r.headers)) for r in records]
            return found
        finally:
            await consumer.stop()

    return asyncio.run(run())


# ---- confluent-kafka (librdkafka) ------------------------------------------------------------------------


def confluent_writes(servers: str, topic: str, codec: str) -> list[int]:
    offsets: list[int] = []
    errors: list[Any] = []

    def on_delivery(error: Any, message: Any) -> None:
        (errors.append(error) if error else offsets.append(message.offset()))

    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": servers,
            "compression.type": codec,
            "message.max.bytes": 1 << 21,
            "enable.idempotence": True,
        }
    )
    for sample in SAMPLES:
        producer.produce(
            topic,
            value=sample.value,
            key=sample.key,
            partition=0,
            headers=list(sample.headers),
            on_delivery=on_delivery,
        )
    assert producer.flush(BUDGET_S) == 0
    assert errors == []
    return offsets


def confluent_reads(servers: str, topic: str) -> list[Sent]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "unused",
            "enable.auto.commit": False,
            "max.partition.fetch.bytes": 1 << 22,
        }
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])

        def poll() -> list[Sent]:
            messages = consumer.consume(100, 0.2)
            for message in messages:
                assert message.error() is None, message.error()
            return [Sent(m.key(), m.value(), tuple(m.headers() or ())) for m in messages]

        return gather(len(SAMPLES), poll)
    finally:
        consumer.close()


WRITERS = {"kafka-python": kafka_python_writes, "aiokafka": aiokafka_writes, "confluent": confluent_writes}
READERS = {"kafka-python": kafka_python_reads, "aiokafka": aiokafka_reads, "confluent": confluent_reads}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("writer", WRITERS)
def test_client_reads_back_what_it_and_others_wrote(server: EmbeddedBroker, writer: str, codec: str) -> None:
    topic = f"{writer}-{codec}"
    offsets = WRITERS[writer](server.bootstrap_servers, topic, codec)
    assert offsets == list(range(len(SAMPLES)))
    # The writer and one other client read each topic. Over all codecs every pair of clients occurs.
    others = [name for name in READERS if name != writer]
    for reader in (writer, others[CODECS.index(codec) % 2]):
        assert READERS[reader](server.bootstrap_servers, topic) == SAMPLES, reader


def test_topic_of_100_partitions_is_written_and_read_in_all_of_them(server: EmbeddedBroker) -> None:
    servers = server.bootstrap_servers
    admin = confluent_admin.AdminClient({"bootstrap.servers": servers})
    admin.create_topics([confluent_admin.NewTopic("wide", 100, 1)])["wide"].result(BUDGET_S)
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    for number in range(1000):
        producer.produce("wide", b"%d" % number, partition=number % 100)
    assert producer.flush(BUDGET_S) == 0
    consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": "unused"})
    try:
        consumer.assign([confluent_kafka.TopicPartition("wide", p, 0) for p in range(100)])
        places: set[tuple[int, int]] = set()

        def poll() -> list[Sent]:
            messages = consumer.consume(500, 0.2)
            places.update((m.partition(), m.offset()) for m in messages if m.error() is None)
            return [Sent(None, m.value()) for m in messages if m.error() is None]

        found = gather(1000, poll)
    finally:
        consumer.close()
    assert {sent.value for sent in found} == {b"%d" % number for number in range(1000)}
    assert places == {(partition, offset) for partition in range(100) for offset in range(10)}


def test_kafka_python_administers_topics_and_finds_offsets(server: EmbeddedBroker) -> None:
    admin = kafka.KafkaAdminClient(bootstrap_servers=server.bootstrap_servers)
    try:
        admin.create_topics([NewTopic(name="managed", num_partitions=2, replication_factor=1)])
        assert "managed" in admin.list_topics()
        admin.create_partitions({"managed": 4})
        producer = kafka.KafkaProducer(bootstrap_servers=server.bootstrap_servers)
        consumer = kafka.KafkaConsumer(bootstrap_servers=server.bootstrap_servers, group_id=None)
        try:
            for number in range(5):
                producer.send("managed", b"x", partition=3, timestamp_ms=1000 + number)
            producer.flush()
            partition = kafka.TopicPartition("managed", 3)
            assert consumer.beginning_offsets([partition]) == {partition: 0}
            assert consumer.end_offsets([partition]) == {partition: 5}
            assert consumer.offsets_for_times({partition: 1002})[partition].offset == 2
            assert consumer.partitions_for_topic("managed") == {0, 1, 2, 3}
        finally:
            producer.close()
            consumer.close()
        admin.delete_topics(["managed"])
        assert "managed" not in admin.list_topics()
    finally:
        admin.close()


def test_record_ends_the_wait_of_a_fetch(server: EmbeddedBroker) -> None:
    async def run() -> bytes:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=server.bootstrap_servers)
        consumer = aiokafka.AIOKafkaConsumer(
            "awaited",
            bootstrap_servers=server.bootstrap_servers,
            group_id=None,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=25_000,
        )
        await producer.start()
        await consumer.start()
        try:
            await producer.send_and_wait("awaited", b"first")
            assert (await asyncio.wait_for(consumer.getone(), BUDGET_S)).value == b"first"
            # The consumer's next fetch is now waiting at the broker.
            waiting = asyncio.ensure_future(consumer.getone())
            await asyncio.wait([waiting], timeout=0.3)
            assert not waiting.done()
            await producer.send_and_wait("awaited", b"second")
            return bytes((await asyncio.wait_for(waiting, BUDGET_S)).value or b"")
        finally:
            await consumer.stop()
            await producer.stop()

    assert asyncio.run(run()) == b"second"


def test_acknowledged_records_survive_a_kill() -> None:
    with EmbeddedBroker() as broker:
        offsets = confluent_writes(broker.bootstrap_servers, "t", "lz4")
        broker.kill()
        broker.start()
        assert offsets == list(range(len(SAMPLES)))
        assert confluent_reads(broker.bootstrap_servers, "t") == SAMPLES
