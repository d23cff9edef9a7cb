"""What one writes today to read log segments in Spark: whole files as bytes, their records by ``mapInArrow``.

The peer of ``format("kafkacore-log")``. Batches of ``binaryFile`` in, of Kafka's columns out. It leans on our
decoder, the fastest there is, so what is compared is the way through Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kafkacore.record import decode

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int"
)
_COLUMNS = ("key", "value", "offset", "timestamp", "timestamp_type")
#: Of one batch that goes back to the JVM.
_ROWS = 100_000


def records_of_segments(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For ``DataFrame.mapInArrow`` on the columns ``path`` and ``content`` of ``binaryFile``."""
    import pyarrow as pa

    for batch in batches:
        for path, content in zip(batch.column("path").to_pylist(), batch.column("content"), strict=True):
            # .../<topic>-<partition>/<first offset>.log
            topic, _, partition = str(path).split("/")[-2].rpartition("-")
            data = memoryview(content.as_buffer())
            found = pa.record_batch(decode(data, _COLUMNS, timestamp_unit="us", timezone="UTC"))
            count = found.num_rows
            columns = {name: found.column(name) for name in ("key", "value")}
            columns["topic"] = pa.repeat(pa.scalar(topic, pa.string()), count)
            columns["partition"] = pa.repeat(pa.scalar(int(partition), pa.int32()), count)
            columns |= {name: found.column(name) for name in ("offset", "timestamp")}
            columns["timestampType"] = found.column("timestamp_type")
            whole = pa.RecordBatch.from_pydict(columns)
            for start in range(0, count, _ROWS):
                yield whole.slice(start, _ROWS)
