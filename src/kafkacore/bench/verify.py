"""Read back a topic and check that it contains every record exactly once."""

from __future__ import annotations

from importlib.util import find_spec

from kafkacore.bench.sequence import Sequences, Verdict
from kafkacore.bench.task import ClientSettings
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.consumer import KafkaConsumer
from kafkacore.errors import KafkaTimeoutError
from kafkacore.structs import TopicPartition

POLL_MS = 1_000
#: Maximum time to wait for the last records. With ``acks=0`` they may arrive after the client has exited.
ARRIVAL_LIMIT_MS = 5_000.0
#: Time without a record after which reading fails.
PATIENCE_MS = 30_000.0
CHECK_INTERVAL_MS = 20.0


def read_back(
    bootstrap: str,
    topic: str,
    partitions: int,
    size: int,
    records: int,
    distinct: int,
    warm_up: int,
    security: ClientSettings | None = None,
) -> Verdict:
    """Read all partitions from start to end, and compare the records with those that were sent.

    Parameters
    ----------
    bootstrap, topic, partitions:
        Cluster, name of the topic and number of its partitions.
    size:
        Bytes of a value.
    records, distinct:
        Number of records that were sent, and number of distinct values.
    warm_up:
        Number of warm-up records that were sent before.
    security:
        Security settings of kafkacore's clients for the cluster.
    """
    everything = [TopicPartition(topic, number) for number in range(partitions)]
    sequences = Sequences(size)
    with KafkaConsumer(
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=4 << 20,
        **(security or {}),
    ) as consumer:
        consumer.assign(everything)
        deadline_ms = SYSTEM_CLOCK.monotonic_ms() + ARRIVAL_LIMIT_MS
        ends = consumer.end_offsets(everything)
        while sum(ends.values()) < records + warm_up and SYSTEM_CLOCK.monotonic_ms() < deadline_ms:
            SYSTEM_CLOCK.sleep_ms(CHECK_INTERVAL_MS)
            ends = consumer.end_offsets(everything)
        _read_to(consumer, ends, sequences)
    return sequences.verdict(records, distinct)


def _read_to(consumer: KafkaConsumer, ends: dict[TopicPartition, int], sequences: Sequences) -> None:
    by_columns = find_spec("pyarrow") is not None and find_spec("numpy") is not None
    deadline_ms = SYSTEM_CLOCK.monotonic_ms() + PATIENCE_MS
    while any(consumer.position(partition) < end for partition, end in ends.items()):
        found = 0
        if by_columns:
            for columns in consumer.poll_arrow(POLL_MS, columns=("value",), end_offsets=ends).values():
                found += sequences.add_columns(columns)
        else:
            for records in consumer.poll(POLL_MS, max_records=10_000).values():
                sequences.add([record.value for record in records])
                found += len(records)
        now_ms = SYSTEM_CLOCK.monotonic_ms()
        if found:
            deadline_ms = now_ms + PATIENCE_MS
        elif now_ms > deadline_ms:
            raise KafkaTimeoutError(
                f"received no record in {PATIENCE_MS / 1000:g} s while reading the topic back"
            )
