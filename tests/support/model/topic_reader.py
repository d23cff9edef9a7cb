"""Read a topic with kafkacore's consumer from its beginning to its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eventually import eventually
from model.history import LogRecord

from kafkacore import ConsumerRecord, KafkaConsumer, TopicPartition


def records_of(
    servers: str,
    topics: Iterable[str],
    partitions: int,
    isolation_level: str = "read_uncommitted",
) -> Iterator[ConsumerRecord]:
    """Return all records that ``topics`` contain now."""
    places = [TopicPartition(topic, number) for topic in topics for number in range(partitions)]
    with KafkaConsumer(
        bootstrap_servers=servers, isolation_level=isolation_level, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign(places)
        ends = consumer.end_offsets(places)

        def is_read() -> bool:
            return all(consumer.position(each) >= ends[each] for each in places)

        polled: list[ConsumerRecord] = []

        def poll() -> None:
            for records in consumer.poll(timeout_ms=200).values():
                polled.extend(records)

        while not is_read():
            # Markers after the last record only advance the position.
            eventually(lambda: polled or is_read(), f"records up to {ends}", step=poll)
            yield from polled
            polled.clear()


def read_log(
    servers: str, topic: str, partitions: int, isolation_level: str = "read_uncommitted"
) -> list[LogRecord]:
    """Return all records of ``topic`` in the reduced form that a checker needs."""
    found = records_of(servers, [topic], partitions, isolation_level)
    return [LogRecord(record.partition, record.offset, record.value) for record in found]


def await_markers(servers: str, topic: str, partitions: int) -> None:
    """Wait until no transaction of the topic is open: a commit returns before its markers are written."""
    places = [TopicPartition(topic, number) for number in range(partitions)]
    with (
        KafkaConsumer(bootstrap_servers=servers, isolation_level="read_committed") as committed,
        KafkaConsumer(bootstrap_servers=servers) as uncommitted,
    ):

        def ends() -> list[dict[TopicPartition, int]]:
            return [consumer.end_offsets(places) for consumer in (committed, uncommitted)]

        def is_closed() -> bool:
            stable, written = ends()
            return stable == written

        eventually(is_closed, lambda: "last stable and last offsets: {} and {}".format(*ends()))


def values_of(servers: str, topic: str) -> list[bytes]:
    """Return the values of partition 0 in the order of the log."""
    return [record.value for record in records_of(servers, [topic], 1)]
