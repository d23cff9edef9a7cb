"""Read log segments in Spark through ``binaryFile``, for comparison with ``format("kafkacore-log")``.

``binaryFile`` reads whole files as bytes, and functions for ``mapInArrow`` decode their records. One function
uses aiokafka's compiled decoder, the fastest alternative. The other function uses kafkacore's own decoder, so
that it differs from ``kafkacore-log`` only in the path through Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Protocol

from kafkacore.record import decode

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacore.decode.decoder import ArrowArray

SCHEMA = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int"
)
_COLUMNS = ("key", "value", "offset", "timestamp", "timestamp_type")
#: Maximum rows of a batch that is returned to the JVM.
_ROWS = 100_000

Exploder = Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]


def records_by_kafkacore(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Decode the columns ``path`` and ``content`` of ``binaryFile`` with kafkacore, for ``mapInArrow``."""
    import pyarrow as pa

    for topic, partition, data in _files(batches):
        found = pa.record_batch(decode(data, _COLUMNS, timestamp_unit="us", timezone="UTC"))
        columns = {name: found.column(name) for name in _COLUMNS}
        whole = _with_place(topic, partition, columns)
        for start in range(0, whole.num_rows, _ROWS):
            yield whole.slice(start, _ROWS)


def records_by_aiokafka(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Decode the columns ``path`` and ``content`` with aiokafka, which creates one object per record."""
    import pyarrow as pa

    for topic, partition, data in _files(batches):
        records = _aiokafka_records(bytes(data))
        for first in records:
            some = [first, *islice(records, _ROWS - 1)]
            times = pa.array([record.timestamp * 1_000 for record in some], pa.int64())
            columns: dict[str, ArrowArray] = {
                "key": pa.array([record.key for record in some], pa.binary()),
                "value": pa.array([record.value for record in some], pa.binary()),
                "offset": pa.array([record.offset for record in some], pa.int64()),
                "timestamp": times.cast(pa.timestamp("us", "UTC")),
                "timestamp_type": pa.array([record.timestamp_type for record in some], pa.int32()),
            }
            yield _with_place(topic, partition, columns)


#: Name of the package that decodes → its function for ``mapInArrow``.
EXPLODERS: dict[str, Exploder] = {"kafkacore": records_by_kafkacore, "aiokafka": records_by_aiokafka}


class _Record(Protocol):
    """Record of aiokafka, which has no type annotations."""

    key: bytes | None
    value: bytes | None
    offset: int
    timestamp: int
    timestamp_type: int


def _aiokafka_records(data: bytes) -> Iterator[_Record]:
    from aiokafka.errors import CorruptRecordException  # type: ignore[import-untyped]
    from aiokafka.record.memory_records import MemoryRecords  # type: ignore[import-untyped]

    found = MemoryRecords(data)

    def checked() -> Iterator[Iterable[_Record]]:
        while found.has_next():
            batch = found.next_batch()
            if not batch.validate_crc():
                raise CorruptRecordException(f"wrong CRC of the batch at offset {batch.base_offset}")
            yield batch

    return chain.from_iterable(checked())


def _files(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, int, memoryview]]:
    """Yield topic, partition and bytes of each file ``.../<topic>-<partition>/<base offset>.log``."""
    for batch in batches:
        for path, content in zip(batch.column("path").to_pylist(), batch.column("content"), strict=True):
            topic, _, partition = str(path).split("/")[-2].rpartition("-")
            yield topic, int(partition), memoryview(content.as_buffer())


def _with_place(topic: str, partition: int, columns: dict[str, ArrowArray]) -> pa.RecordBatch:
    import pyarrow as pa

    count = len(columns["offset"])
    return pa.RecordBatch.from_pydict(
        {
            "key": columns["key"],
            "value": columns["value"],
            "topic": pa.repeat(pa.scalar(topic, pa.string()), count),
            "partition": pa.repeat(pa.scalar(partition, pa.int32()), count),
            "offset": columns["offset"],
            "timestamp": columns["timestamp"],
            "timestampType": columns["timestamp_type"],
        }
    )
