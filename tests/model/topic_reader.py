"""A topic as our own consumer reads it, from its beginning to its end."""

from __future__ import annotations

from model.history import LogRecord

from kafkacore import KafkaConsumer, TopicPartition
from kafkacore.clock import SYSTEM_CLOCK


def read_log(
    servers: str, topic: str, partitions: int, limit_s: float, isolation_level: str = "read_uncommitted"
) -> list[LogRecord]:
    """All records that are there now; fails when they have not been read within ``limit_s``."""
    log: list[LogRecord] = []
    mine = [TopicPartition(topic, partition) for partition in range(partitions)]
    with KafkaConsumer(
        bootstrap_servers=servers, isolation_level=isolation_level, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign(mine)
        ends = consumer.end_offsets(mine)
        deadline_ms = SYSTEM_CLOCK.monotonic_ms() + limit_s * 1000
        while any(consumer.position(each) < ends[each] for each in mine):
            assert SYSTEM_CLOCK.monotonic_ms() < deadline_ms
            for each, records in consumer.poll(timeout_ms=200).items():
                log += [LogRecord(each.partition, record.offset, record.value) for record in records]
    return log
