"""Fill topics with records for the Spark benchmark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kafkacore.bench.cluster import BenchCluster
from kafkacore.bench.settings import TUNED_BATCH_BYTES, TUNED_BUFFER_BYTES, TUNED_LINGER_MS
from kafkacore.clock import Clock
from kafkacore.consumer import KafkaConsumer
from kafkacore.producer import KafkaProducer
from kafkacore.settings import Config
from kafkacore.structs import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

#: Number of consecutive records that are sent to one partition.
TURN = 10_000
#: Number of distinct records. A topic with more records repeats them.
DISTINCT = 100_000
_LETTERS = bytes(b"0123456789abcdef"[byte % 16] for byte in range(256))


def fill(
    cluster: BenchCluster, partitions: int, records: int, values: Iterable[bytes], codec: str = "none"
) -> str:
    """Create a topic with ``records`` records, distributed evenly over the partitions, and return its name.

    The keys are the numbers of the records.

    Parameters
    ----------
    cluster:
        The cluster.
    partitions, records:
        Number of partitions and records.
    values:
        Values of the records. They are repeated if there are fewer than ``records``.
    codec:
        Compression codec of the record batches.
    """
    import pyarrow as pa

    topic = cluster.create_topic(partitions)
    distinct = [value for value, _ in zip(values, range(min(DISTINCT * 4, records)), strict=False)]
    keys = [b"%08d" % number for number in range(len(distinct))]
    table = pa.RecordBatch.from_pydict(
        {"key": pa.array(keys, pa.binary()), "value": pa.array(distinct, pa.binary())}
    )
    compression: Config = {"compression_type": codec}
    with KafkaProducer(
        bootstrap_servers=cluster.bootstrap,
        batch_size=TUNED_BATCH_BYTES,
        linger_ms=TUNED_LINGER_MS,
        buffer_memory=TUNED_BUFFER_BYTES,
        **compression,
    ) as producer:
        # With few records, send fewer to a partition at a time, so that every partition gets some.
        turn = max(1, min(TURN, records // partitions))
        for number, piece in enumerate(_pieces(table, records, turn)):
            producer.send_arrow(topic, piece, partition=number % partitions)
        producer.flush()
    return topic


def _pieces(table: pa.RecordBatch, records: int, turn: int) -> Iterator[pa.RecordBatch]:
    done = at = 0
    while done < records:
        at = at if at < table.num_rows else 0
        piece = table.slice(at, min(turn, records - done))
        yield piece
        done, at = done + piece.num_rows, at + piece.num_rows


def letters(count: int, size: int, seed: int = 7) -> list[bytes]:
    """Return values of ``size`` bytes, which are random letters out of sixteen."""
    blob = Clock(seed).random.randbytes(count * size).translate(_LETTERS)
    return [blob[at : at + size] for at in range(0, count * size, size)]


def record_count(bootstrap: str, topic: str, partitions: int) -> int:
    """Return the number of records that were written to a topic, from its end offsets."""
    places = [TopicPartition(topic, number) for number in range(partitions)]
    with KafkaConsumer(bootstrap_servers=bootstrap) as consumer:
        return sum(consumer.end_offsets(places).values())
