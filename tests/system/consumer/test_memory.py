"""Memory while consuming much: fetched responses and the records the user keeps, but not past records."""

import re
import uuid
from pathlib import Path

import pytest

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.wire._blocks import statistics

MIB = 1 << 20
VALUE_SIZE = 10_000
COUNT = 8_000
#: Default of max_partition_fetch_bytes.
FETCH_SIZE = MIB
ALLOWED = FETCH_SIZE + 64 * MIB


@pytest.fixture(scope="module")
def partition(our_broker):
    """Return a partition with 80 MB of records."""
    topic = f"m-{uuid.uuid4().hex[:8]}"
    producer = KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers, batch_size=100_000, linger_ms=20)
    for number in range(COUNT):
        producer.send(topic, b"%0*d" % (VALUE_SIZE, number), partition=0)
    producer.flush()
    producer.close()
    return TopicPartition(topic, 0)


def resident(name):
    """Return ``VmRSS`` or ``VmHWM`` (its peak) of this process, in bytes."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024


def forget_peak():
    Path("/proc/self/clear_refs").write_text("5")


def take_records(consumer, kept):
    """Poll once, keep one record, and return the number of records.

    The kept record must not keep the response that it came in.
    """
    count = 0
    for records in consumer.poll(1000).values():
        assert all(len(record.value) == VALUE_SIZE for record in records)
        count += len(records)
        kept.append(records[0])
    return count


def take_columns(consumer, kept):
    return sum(len(columns) for columns in consumer.poll_arrow(1000).values())


@pytest.mark.parametrize("take", [take_records, take_columns])
def test_memory_is_flat_while_much_is_consumed(our_broker, partition, take):
    kept = []
    with KafkaConsumer(
        bootstrap_servers=our_broker.bootstrap_servers, max_partition_fetch_bytes=FETCH_SIZE
    ) as consumer:
        consumer.assign([partition])
        consumer.seek(partition, 0)
        take(consumer, [])
        before = resident("VmRSS")
        forget_peak()
        for _ in range(3):
            count = 0
            consumer.seek(partition, 0)
            while count < COUNT:
                count += take(consumer, kept)
    # The consumer has read 80 MB three times, and had about one megabyte of it in memory at any time.
    assert resident("VmHWM") - before < ALLOWED
    assert len({record.value for record in kept}) > 50 or take is take_columns


@pytest.mark.parametrize("fetch_max_bytes", [MIB, 8 * MIB])
def test_responses_take_no_more_than_twice_fetch_max_bytes(our_broker, partition, fetch_max_bytes):
    with KafkaConsumer(
        bootstrap_servers=our_broker.bootstrap_servers,
        fetch_max_bytes=fetch_max_bytes,
        max_partition_fetch_bytes=64 * MIB,
        max_poll_records=30,  # Fewer than in a response, so that one remains after each poll.
    ) as consumer:
        consumer.assign([partition])
        consumer.seek(partition, 0)
        before, used, count = statistics()["used_bytes"], [], 0
        while count < COUNT:
            count += sum(len(records) for records in consumer.poll(1000).values())
            used.append(statistics()["used_bytes"] - before)
    # One response is being returned and one is in flight. Blocks are slightly larger than their contents.
    assert max(used) <= 2.5 * fetch_max_bytes
    assert max(used) >= fetch_max_bytes / 2
