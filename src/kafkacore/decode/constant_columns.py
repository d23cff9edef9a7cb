"""Build columns with the same value in every row, for the topic and the partition of a batch.

An array is built once from buffers and then sliced. ``pyarrow.repeat`` is avoided because the first PyArrow
scalar of a process imports pandas if it is installed. This import takes 0.25 CPU seconds and 30 MB in each
worker.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacore.decode.decoder import ArrowArray

#: Minimum number of rows of a constant array. The columns of batches are slices of the array.
LEAST_ROWS = 1024


class ConstantColumns:
    """Builder of the topic and partition columns for consecutive batches."""

    def __init__(self) -> None:
        self._topic: str | None = None
        self._topics: pa.StringArray | None = None
        self._partition: int | None = None
        self._partitions: ArrowArray | None = None

    def topics(self, topic: str | None, row_count: int) -> pa.StringArray:
        """Return a column of ``row_count`` rows that all contain ``topic``."""
        if self._topics is None or topic != self._topic or row_count > len(self._topics):
            self._topic, self._topics = topic, repeated_text(topic, _capacity(row_count))
        return self._topics.slice(0, row_count)

    def partitions(self, partition: int | None, row_count: int) -> ArrowArray:
        """Return a column of ``row_count`` rows that all contain ``partition``."""
        if self._partitions is None or partition != self._partition or row_count > len(self._partitions):
            self._partition, self._partitions = partition, repeated_int32(partition, _capacity(row_count))
        return self._partitions.slice(0, row_count)


def repeated_text(text: str | None, row_count: int) -> pa.StringArray:
    """Return a string column of ``row_count`` rows that all contain ``text``, of less than 2 GiB."""
    import pyarrow as pa

    if text is None:
        return pa.nulls(row_count, pa.string())
    encoded = text.encode()
    size = len(encoded)
    offsets = array("i", range(0, size * row_count + 1, size)) if size else array("i", [0]) * (row_count + 1)
    return pa.StringArray.from_buffers(row_count, pa.py_buffer(offsets), pa.py_buffer(encoded * row_count))


def repeated_int32(number: int | None, row_count: int) -> ArrowArray:
    """Return an int32 column of ``row_count`` rows that all contain ``number``."""
    import pyarrow as pa

    if number is None:
        return pa.nulls(row_count, pa.int32())
    numbers = array("i", [number]) * row_count
    return pa.Array.from_buffers(pa.int32(), row_count, [None, pa.py_buffer(numbers)])


def _capacity(row_count: int) -> int:
    return max(LEAST_ROWS, 1 << (row_count - 1).bit_length())
