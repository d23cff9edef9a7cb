"""Memory while consuming much: what is fetched and what the user keeps, not what has gone by."""

import re
import uuid
from pathlib import Path

import pytest

from kafkacore import KafkaConsumer, KafkaProducer, TopicPartition
from kafkacore.wire._blocks import statistics

MIB = 1 << 20
VALUE_SIZE = 10_000
COUNT = 8_000
#: As fetch settings; the default of max_partition_fetch_bytes.
FETCH_SIZE = MIB
ALLOWED = FETCH_SIZE + 64 * MIB


@pytest.fixture(scope="module")
def partition(our_broker):
    """80 MB of records."""
    topic = f"m-{uuid.uuid4().hex[:8]}"
    producer = KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers, batch_size=100_000, linger_ms=20)
    for number in range(COUNT):
        producer.send(topic, b"%0*d" % (VALUE_SIZE, number), partition=0)
    producer.flush()
    producer.close()
    return TopicPartition(topic, 0)


def resident(name):
    """``VmRSS`` or ``VmHWM`` (its peak) of this process, in bytes."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024


def forget_peak():
    Path("/proc/self/clear_refs").write_text("5")


def take_records(consumer, kept):
    """One record of each poll is kept: it must not hold the response it came in."""
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
    # Three times 80 MB have gone by, and a megabyte of them was to be seen at a time.
    assert resident("VmHWM") - before < ALLOWED
    assert len({record.value for record in kept}) > 50 or take is take_columns


@pytest.mark.parametrize("fetch_max_bytes", [MIB, 8 * MIB])
def test_responses_take_no_more_than_twice_fetch_max_bytes(our_broker, partition, fetch_max_bytes):
    with KafkaConsumer(
        bootstrap_servers=our_broker.bootstrap_servers,
        fetch_max_bytes=fetch_max_bytes,
        max_partition_fetch_bytes=64 * MIB,
        max_poll_records=30,  # Less than a response holds, so that one is there after each poll.
    ) as consumer:
        consumer.assign([partition])
        consumer.seek(partition, 0)
        before, used, count = statistics()["used_bytes"], [], 0
        while count < COUNT:
            count += sum(len(records) for records in consumer.poll(1000).values())
            used.append(statistics()["used_bytes"] - before)
    # One that is handed out, one on its way; blocks are a little larger than what is in them.
    assert max(used) <= 2.5 * fetch_max_bytes
    assert max(used) >= fetch_max_bytes / 2
