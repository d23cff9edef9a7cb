"""Our source reads the same rows from a compacted topic as Spark's own source, on Apache Kafka.

The log has gaps of all sizes between its offsets. The source must neither report them as data loss nor wait
for the missing records.
"""

from __future__ import annotations

import json
import random
import uuid

import pytest
from eventually import eventually
from model.dose import new_seed
from model.spark_reads import reader_of
from model.topic_reader import await_markers
from peers.apache_kafka import ApacheKafka
from peers.streams import SOURCES, Topic

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.clock import SYSTEM_CLOCK

ROUNDS, KEYS = 60, 30
LOOKS = 4
SEGMENT_MS = 200
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": str(SEGMENT_MS),
    "delete.retention.ms": "0",
}
LEVELS = ("read_uncommitted", "read_committed")


def offsets_in(servers, topic):
    """Return the offsets of the remaining records, and the end offset."""
    place = TopicPartition(topic, 0)
    with KafkaConsumer(bootstrap_servers=servers) as consumer:
        consumer.assign([place])
        consumer.seek_to_beginning(place)
        end = consumer.end_offsets([place])
        found = []
        while consumer.position(place) < end[place]:
            for columns in consumer.poll_arrow(timeout_ms=200, columns=["offset"], end_offsets=end).values():
                found += [row["offset"] for row in _rows(columns)]
        return found, end[place]


def _rows(columns):
    import pyarrow as pa

    return pa.table(columns).to_pylist()


def write(servers, topic, chance):
    """Write batches of all sizes, some in transactions. Some keys occur once, the others many times."""
    with (
        KafkaProducer(bootstrap_servers=servers, linger_ms=1_000, compression_type="lz4") as plain,
        KafkaProducer(bootstrap_servers=servers, transactional_id=topic, linger_ms=1_000) as transactional,
    ):
        transactional.init_transactions()
        for turn in range(ROUNDS):
            producer = chance.choice([plain, transactional])
            if producer is transactional:
                producer.begin_transaction()
            for number in range(chance.choice([1, 3, 40])):
                once = turn % 10 == 0
                key = b"once %d %d" % (turn, number) if once else b"%d" % chance.randrange(KEYS)
                value = None if chance.random() < 0.1 else b"%d %d" % (turn, number)
                producer.send(topic, value, key=key)
            producer.flush()
            if producer is transactional:
                producer.abort_transaction() if turn % 3 == 0 else producer.commit_transaction()
        # The active segment is never cleaned: let it contain only the marker.
        transactional.begin_transaction()
        transactional.send(topic, b"last", key=b"last")
        transactional.flush()
        SYSTEM_CLOCK.sleep_ms(2.0 * SEGMENT_MS)
        transactional.commit_transaction()


@pytest.fixture(scope="module")
def topic(tmp_path_factory):
    """Create a compacted topic, and wait until the cleaner has finished with it."""
    with ApacheKafka(tmp_path_factory.mktemp("compacted"), {"log.cleaner.backoff.ms": "100"}) as kafka:
        made = Topic(kafka.bootstrap_servers)
        with KafkaAdminClient(bootstrap_servers=made.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(made.name, num_partitions=1, topic_configs=COMPACTED)])
        write(made.bootstrap_servers, made.name, random.Random(new_seed()))
        await_markers(made.bootstrap_servers, made.name, 1)
        # Require several equal reads in a row: an active cleaner runs ten times a second, unless the machine
        # delays it.
        looks, found = [], [0]

        def step():
            nonlocal found
            SYSTEM_CLOCK.sleep_ms(500.0)
            looks.append(found)
            found, made.end = offsets_in(made.bootstrap_servers, made.name)

        eventually(
            lambda: all(found == before for before in looks[-LOOKS:]) and len(found) <= found[-1] // 3,
            "the cleaner has removed nothing",
            step=step,
        )
        made.offsets = found
        yield made


@pytest.fixture
def rows_of(spark, topic):
    """Return offset, key and value of each row, in order."""

    def of(source, **options):
        # The time-out makes a reader fail that waits for a missing record.
        given = {"kafkaConsumer__pollTimeoutMs": "60000", **options}
        frame = reader_of(spark, source, topic.bootstrap_servers, topic.name, **given).load()
        return sorted(tuple(row) for row in frame.select("offset", "key", "value").collect())

    return of


def between(topic, first, end):
    return {
        "startingOffsets": json.dumps({topic.name: {"0": first}}),
        "endingOffsets": json.dumps({topic.name: {"0": end}}),
    }


@pytest.mark.parametrize("level", LEVELS)
def test_rows_are_the_same_however_the_read_is_split(rows_of, topic, level):
    isolation = {"kafka__isolation__level": level}
    theirs = rows_of("kafka", **isolation)
    assert 0 < len(theirs) <= len(topic.offsets)
    for split in ({}, {"minPartitions": "64"}, {"maxRecordsPerPartition": "9"}, {"minPartitions": "400"}):
        assert rows_of("kafkacore", **split, **isolation) == theirs
    assert rows_of("kafka", minPartitions="16", **isolation) == theirs


@pytest.mark.parametrize("level", LEVELS)
def test_ranges_that_begin_or_end_in_a_gap_give_the_same_rows_and_do_not_wait(rows_of, topic, level):
    bounds = zip(topic.offsets, topic.offsets[1:], strict=False)
    before, behind = max(bounds, key=lambda gap: gap[1] - gap[0])
    assert behind - before > 10
    middle = (before + behind) // 2
    for first, end, count in (
        (before + 1, behind, 0),
        (middle, middle + 1, 0),
        (before, middle, 1),
        (middle, behind + 1, 1),
    ):
        ours, theirs = (
            rows_of(source, kafka__isolation__level=level, **between(topic, first, end))
            for source in ("kafkacore", "kafka")
        )
        assert ours == theirs
        # With read_committed, the records of aborted transactions are missing.
        assert len(ours) <= count if level == "read_committed" else len(ours) == count


def test_a_range_of_nothing_but_the_last_marker_gives_no_row_and_does_not_wait(rows_of, topic):
    assert topic.offsets[-1] < topic.end - 1
    for source in SOURCES:
        assert rows_of(source, **between(topic, topic.end - 1, topic.end)) == []


def test_micro_batches_are_the_same(streams, topic):
    options = {"maxOffsetsPerTrigger": "150", "minPartitions": "4"}
    theirs, ours = (streams.drain(source, topic, folder=uuid.uuid4().hex, **options) for source in SOURCES)
    assert ours == theirs
    assert [offset for batch in ours for offset in batch["", 0]] == topic.offsets
