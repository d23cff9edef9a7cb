"""Segment files of Apache Kafka, read without a broker, give the rows that a consumer reads.

Our dump of the files agrees with Kafka's own tool.
"""

from __future__ import annotations

import contextlib
import re
import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from eventually import eventually
from model.segment_reads import rows
from peers.apache_kafka import ApacheKafka
from peers.clients import CODECS
from peers.jars import run_java
from peers.java_peer import JavaPeer
from peers.samples import edge_samples, sized_samples

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.broker.log.dump import dump_log_segments
from kafkacore.clock import SYSTEM_CLOCK

COLUMNS = ["key", "value", "offset", "timestamp", "timestampType", "headers"]
SMALL = {"segment.bytes": str(1 << 20), "index.interval.bytes": "1000"}


def new_topic(kafka: ApacheKafka, peer: JavaPeer, **configs: str) -> str:
    name = f"files-{uuid.uuid4().hex[:8]}"
    settings = {**SMALL, **{key.replace("_", "."): value for key, value in configs.items()}}
    peer.create_topic(kafka.bootstrap_servers, name, 1, settings)
    return name


def consumed(kafka: ApacheKafka, topic: str, isolation: str = "read_uncommitted") -> list[dict[str, object]]:
    """Return the rows that our consumer reads; other tests compare our consumer with Java's."""
    place = TopicPartition(topic, 0)
    found = []
    with KafkaConsumer(
        bootstrap_servers=kafka.bootstrap_servers, isolation_level=isolation, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([place])
        end = consumer.end_offsets([place])[place]

        def step() -> None:
            for columns in consumer.poll_arrow(timeout_ms=200, timestamp_unit="us").values():
                found.append(pa.table(columns))

        eventually(lambda: consumer.position(place) >= end, step=step)
    names = {"timestamp_type": "timestampType"}
    table = pa.concat_tables(found)
    table = table.rename_columns([names.get(name, name) for name in table.column_names]).select(COLUMNS)
    times = table["timestamp"].cast(pa.timestamp("us", "UTC"))
    return table.set_column(COLUMNS.index("timestamp"), "timestamp", times).to_pylist()


def await_the_last_marker(kafka: ApacheKafka, topic: str) -> None:
    """Wait for the marker in the log: a commit is acknowledged before all markers are written."""
    place = TopicPartition(topic, 0)
    isolations = ("read_uncommitted", "read_committed")
    with contextlib.ExitStack() as stack:
        both = [
            stack.enter_context(
                KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, isolation_level=isolation)
            )
            for isolation in isolations
        ]
        eventually(lambda: len({consumer.end_offsets([place])[place] for consumer in both}) <= 1)


def read(kafka: ApacheKafka, topic: str, **options: object) -> list[dict[str, object]]:
    return rows(f"{kafka.segments_dir}/{topic}-*", " ".join(COLUMNS), **options).to_pylist()


@pytest.fixture(scope="module")
def topic(apache_kafka: ApacheKafka, java_peer: JavaPeer) -> str:
    """Write all codecs, in small batches and large ones, over several segments."""
    name = new_topic(apache_kafka, java_peer)
    samples = edge_samples(1) + sized_samples((1, 1_000, 50_000, 300_000)) + edge_samples(1) * 20
    for codec in CODECS:
        config = {"compression.type": codec, "linger.ms": "5", "batch.size": "2000"}
        java_peer.produce(apache_kafka.bootstrap_servers, name, samples, config)
    return name


@pytest.mark.parametrize("target", [1_000, 300_000, 1 << 30])
def test_rows_are_those_that_a_consumer_gets(apache_kafka: ApacheKafka, topic: str, target: int) -> None:
    files = list(apache_kafka.segments_dir.glob(f"{topic}-0/*.log"))
    assert len(files) > 1
    assert read(apache_kafka, topic, maxBytesPerPartition=target) == consumed(apache_kafka, topic)


def test_a_timestamp_is_found_where_the_broker_finds_it(apache_kafka: ApacheKafka, topic: str) -> None:
    place = TopicPartition(topic, 0)
    all_rows = consumed(apache_kafka, topic)
    times = sorted({int(row["timestamp"].timestamp() * 1_000) for row in all_rows})  # type: ignore[attr-defined]
    with KafkaConsumer(bootstrap_servers=apache_kafka.bootstrap_servers) as consumer:
        for time in (times[0], times[len(times) // 2], times[-1]):
            offset = consumer.offsets_for_times({place: time})[place].offset
            found = read(apache_kafka, topic, startingTimestamp=time)
            assert found == [row for row in all_rows if row["offset"] >= offset]


def test_the_dump_says_what_kafkas_own_says(apache_kafka: ApacheKafka, topic: str) -> None:
    files = sorted(apache_kafka.segments_dir.glob(f"{topic}-0/*.log"))
    theirs = run_java("org.apache.kafka.tools.DumpLogSegments", "--files", ",".join(map(str, files))).decode()
    wanted = re.compile(
        r"baseOffset: (\d+) lastOffset: (\d+) .*position: (\d+) .*size: (\d+) .*compresscodec: (\w+)"
    )
    ours = "\n".join(line for file in files for line in dump_log_segments(file))
    assert wanted.findall(ours) == wanted.findall(theirs)
    assert wanted.findall(ours)


def test_transactions_are_read_as_a_consumer_reads_them(
    apache_kafka: ApacheKafka, java_peer: JavaPeer
) -> None:
    name = new_topic(apache_kafka, java_peer)
    producers = [
        KafkaProducer(bootstrap_servers=apache_kafka.bootstrap_servers, transactional_id=f"{name}-{number}")
        for number in range(3)
    ]
    for producer in producers:
        producer.init_transactions()
    for turn in range(4):
        for number, producer in enumerate(producers):
            producer.begin_transaction()
            for value in range(3):
                producer.send(name, b"%d %d %d" % (turn, number, value))
            producer.flush()
        for number, producer in enumerate(producers):
            if (turn + number) % 3 == 0:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    with KafkaProducer(bootstrap_servers=apache_kafka.bootstrap_servers) as plain:
        plain.send(name, b"plain")
    await_the_last_marker(apache_kafka, name)
    for target in (1, 1 << 30):
        committed = read(apache_kafka, name, isolation="read_committed", maxBytesPerPartition=target)
        assert committed == consumed(apache_kafka, name, "read_committed")
        assert len(committed) == 1 + 8 * 3
        assert read(apache_kafka, name, maxBytesPerPartition=target) == consumed(apache_kafka, name)
    # An open transaction holds back the records after it.
    producers[0].begin_transaction()
    producers[0].send(name, b"open")
    producers[0].flush()
    with KafkaProducer(bootstrap_servers=apache_kafka.bootstrap_servers) as plain:
        plain.send(name, b"behind")
    assert read(apache_kafka, name, isolation="read_committed") == committed
    assert [row["value"] for row in read(apache_kafka, name)[-2:]] == [b"open", b"behind"]
    producers[0].abort_transaction()
    for producer in producers:
        producer.close()


def test_a_compacted_log_is_read_as_a_consumer_reads_it(tmp_path: Path, java_peer: JavaPeer) -> None:
    with ApacheKafka(tmp_path, {"log.cleaner.backoff.ms": "100"}) as kafka:
        name = new_topic(
            kafka, java_peer, cleanup_policy="compact", min_cleanable_dirty_ratio="0.01", segment_ms="200",
            delete_retention_ms="0",
        )  # fmt: skip
        with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id=name) as producer:
            producer.init_transactions()
            for turn in range(6):
                producer.begin_transaction()
                for number in range(50):
                    producer.send(name, b"%d %d" % (turn, number), key=b"k%d" % (number % 7))
                producer.abort_transaction() if turn % 3 == 1 else producer.commit_transaction()

        def step() -> None:
            with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as plain:
                plain.send(name, b"roll", key=b"roll")
            SYSTEM_CLOCK.sleep_ms(100.0)

        eventually(lambda: len(consumed(kafka, name)) <= 200, step=step)
        for isolation in ("read_uncommitted", "read_committed"):
            eventually(
                lambda isolation=isolation: read_alike(kafka, name, isolation),
                "the cleaner kept changing the files",
            )


def read_alike(kafka: ApacheKafka, topic: str, isolation: str) -> bool:
    """Compare both ways to read the topic. Return False if the cleaner changed the files meanwhile."""
    try:
        before = state(kafka, topic)
        theirs, ours = consumed(kafka, topic, isolation), read(kafka, topic, isolation=isolation)
        is_unchanged = state(kafka, topic) == before
    except FileNotFoundError:
        # The cleaner has replaced a file that was about to be looked at.
        return False
    assert not is_unchanged or ours == theirs
    return is_unchanged


def state(kafka: ApacheKafka, topic: str) -> list[tuple[str, int, int]]:
    """Return names, inodes and sizes of the files, which change when the cleaner works."""
    files = sorted(kafka.segments_dir.glob(f"{topic}-0/*.log"))
    return [(file.name, file.stat().st_ino, file.stat().st_size) for file in files]
