"""``kafka.isolation.level=read_committed`` with an open transaction: both sources give the same rows.

A batch read stops before the transaction. A stream resumes when the transaction ends.
"""

from __future__ import annotations

import json
import random
import uuid

import pytest
from model.dose import dose, new_seed
from model.spark_reads import reader_of, rows_of
from peers.mixed_transactions import PARTITIONS, MixedTransactions
from peers.streams import SOURCES, Topic
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

STEPS = dose(80, 1_000)
#: Offsets per micro-batch, small enough for several micro-batches.
OF_A_BATCH = str(dose(100, 2_000))
COMMITTED = {"kafka__isolation__level": "read_committed"}


@pytest.fixture
def topic(apache_kafka):
    made = Topic(apache_kafka.bootstrap_servers)
    made.create(partitions=PARTITIONS)
    return made


@pytest.fixture
def transactions(topic):
    """Write interleaved committed and aborted transactions, and leave one open before the last of them."""
    mixed = MixedTransactions(topic.bootstrap_servers, topic.name, random.Random(new_seed()))
    mixed.write(STEPS)
    mixed.leave_open()
    return mixed


@pytest.fixture
def read(spark, topic):
    """Return a function that reads a batch, of committed records by default."""

    def of(source, **options):
        given = {**COMMITTED, **options}
        return rows_of(reader_of(spark, source, topic.bootstrap_servers, topic.name, **given).load())

    return of


def seen(rows):
    return {(partition, value) for partition, _, value, *_ in rows}


@pytest.mark.parametrize("commits", [True, False], ids=["committed", "aborted"])
def test_batch_ends_before_what_is_open_and_goes_on_when_that_has_ended(read, transactions, commits):
    before = read("kafka")
    for pieces in ("1", "50"):
        assert read("kafkacore", minPartitions=pieces) == before
    assert seen(before) == transactions.to_be_seen()
    transactions.end_open(commits)
    after = read("kafka")
    for pieces in ("1", "50"):
        assert read("kafkacore", minPartitions=pieces) == after
    assert seen(after) == transactions.to_be_seen()
    assert len(after) == len(before) + (2 if commits else 1) * PARTITIONS


def test_stream_waits_for_what_is_open_and_goes_on_when_that_is_committed(streams, topic, transactions):
    def row(found):
        return found.offset, bytes(found.value)

    def rows(running):
        return [
            (partition, *of_row) for (_, partition), found in running.settle().items() for of_row in found
        ]

    def start(source, **options):
        return streams.running(source, topic, folder=uuid.uuid4().hex, of=row, **options, **COMMITTED)

    latest = {"startingOffsets": "latest"}
    with (
        start("kafka", maxOffsetsPerTrigger=OF_A_BATCH) as theirs,
        start("kafkacore", maxOffsetsPerTrigger=OF_A_BATCH) as ours,
        start("kafka", **latest) as their_new,
        start("kafkacore", **latest) as our_new,
    ):
        before = sorted(rows(theirs))
        assert sorted(rows(ours)) == before
        assert seen(before) == transactions.to_be_seen()
        # The latest offset is that of the open transaction.
        assert rows(our_new) == rows(their_new) == []
        transactions.end_open(True)
        after = sorted(rows(theirs))
        assert sorted(rows(ours)) == after
        assert seen(after) == transactions.to_be_seen()
        assert sorted(rows(our_new)) == sorted(rows(their_new)) == sorted({*after} - {*before})
        # The next transactions are read from where the queries stopped.
        transactions.write(5)
        last = sorted(rows(theirs))
        assert sorted(rows(ours)) == last
        assert seen(last) == transactions.to_be_seen()


def test_micro_batches_are_the_same_up_to_what_is_open_and_when_that_is_aborted(streams, topic, transactions):
    options = {"maxOffsetsPerTrigger": OF_A_BATCH, **COMMITTED}
    first = [streams.drain(source, topic, **options) for source in SOURCES]
    assert first[0] == first[1]
    assert len(first[0]) > 1
    transactions.end_open(False)
    second = [streams.drain(source, topic, **options) for source in SOURCES]
    assert second[0] == second[1]
    assert sum(len(offsets) for batch in second[0] for offsets in batch.values()) == PARTITIONS


def test_offsets_and_times_behind_what_is_open_are_not_there_yet_for_both(read, topic, transactions):
    everything = read("kafka", kafka__isolation__level="read_uncommitted")
    ends = json.dumps({topic.name: {str(number): offset + 1 for number, offset, *_ in everything}})
    visible = read("kafka")
    time = max(row[-1] for row in everything)
    assert time > max(row[-1] for row in visible)
    time_ms = str(int(time.timestamp() * 1000))
    short = {"kafkaConsumer__pollTimeoutMs": "1500", "fetchOffset__numRetries": "1"}
    for sentence, options in (
        ("ends at offset [0-9]+ with isolation level read_committed", {"endingOffsets": ends}),
        ("the read would start at offset", {"startingOffsets": ends}),
        ("no record at or after the starting timestamp", {"startingTimestamp": time_ms}),
    ):
        with pytest.raises(PySparkException, match=sentence):
            read("kafkacore", **short, **options)
        with pytest.raises((PySparkException, Py4JJavaError)):
            read("kafka", **short, **options)
    for options in (
        {"endingOffsets": ends, "failOnDataLoss": "false"},
        {"endingTimestamp": time_ms},
    ):
        # Spark's source waits in vain for the records after the open transaction. 8 s suffice for the other
        # ones.
        patient = {**short, "kafkaConsumer__pollTimeoutMs": "8000"}
        assert read("kafkacore", **options) == read("kafka", **patient, **options) == visible
