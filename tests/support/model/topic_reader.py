"""A topic as our own consumer reads it, from its beginning to its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from model.history import LogRecord

from kafkacore import ConsumerRecord, KafkaConsumer, TopicPartition
from kafkacore.clock import SYSTEM_CLOCK


def records_of(
    servers: str,
    topics: Iterable[str],
    partitions: int,
    limit_s: float,
    isolation_level: str = "read_uncommitted",
) -> Iterator[ConsumerRecord]:
    """All records of ``topics`` that are there now; fails when they have not been read within ``limit_s``."""
    places = [TopicPartition(topic, number) for topic in topics for number in range(partitions)]
    with KafkaConsumer(
        bootstrap_servers=servers, isolation_level=isolation_level, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        deadline_ms = SYSTEM_CLOCK.monotonic_ms() + limit_s * 1000
        while any(consumer.position(each) < ends[each] for each in places):
            assert SYSTEM_CLOCK.monotonic_ms() < deadline_ms
            for records in consumer.poll(timeout_ms=200).values():
                yield from records


def read_log(
    servers: str, topic: str, partitions: int, limit_s: float, isolation_level: str = "read_uncommitted"
) -> list[LogRecord]:
    """All records of ``topic`` as :func:`records_of` has them, with no more of each than a judge needs."""
    found = records_of(servers, [topic], partitions, limit_s, isolation_level)
    return [LogRecord(record.partition, record.offset, record.value) for record in found]


def await_markers(servers: str, topic: str, partitions: int, limit_s: float) -> None:
    """Wait until nothing of the topic is open: a commit returns when it is decided, markers come later."""
    places = [TopicPartition(topic, number) for number in range(partitions)]
    with (
        KafkaConsumer(bootstrap_servers=servers, isolation_level="read_committed") as committed,
        KafkaConsumer(bootstrap_servers=servers) as uncommitted,
    ):
        deadline_ms = SYSTEM_CLOCK.monotonic_ms() + limit_s * 1000
        while (open_from := committed.end_offsets(places)) != (ends := uncommitted.end_offsets(places)):
            assert SYSTEM_CLOCK.monotonic_ms() < deadline_ms, f"open from {open_from} to {ends}"
