from collections.abc import Iterator
from typing import Never, Self, final

from typing_extensions import Buffer, disjoint_base

from kafkacore.record._header import BatchHeader
from kafkacore.structs import TimestampType

@final
class RecordBatch(BatchHeader):
    """A batch of :class:`Record` objects. Each iteration over the batch starts at the first record.

    In format 0 and 1, a batch is one message or one compressed message set.

    :func:`read_batches` creates batches.
    """
    def __init__(self, *args: Never, **kwargs: Never) -> None: ...
    def __iter__(self) -> RecordIterator: ...
    def __len__(self) -> int: ...

@disjoint_base
class Record:
    """A record: its position in the batch. Key, value and headers are created each time they are read.

    A loop over a batch reuses a record object if nothing else refers to the object. A record that the caller
    keeps does not change. Such a record keeps the memory of its batch alive until :meth:`detach` is called.

    Attributes
    ----------
    offset:
        Offset in the partition.
    timestamp:
        Milliseconds since the epoch; -1 for none.
    """
    def __init__(self, *args: Never, **kwargs: Never) -> None: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def timestamp_type(self) -> TimestampType:
        """Timestamp type of the batch."""
    @property
    def key(self) -> bytes | None:
        """Key as ``bytes``, or ``None``."""
    @property
    def value(self) -> bytes | None:
        """Value as ``bytes``, or ``None``."""
    @property
    def key_size(self) -> int:
        """Size of the key in bytes; -1 for null."""
    @property
    def value_size(self) -> int:
        """Size of the value in bytes; -1 for null."""
    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """Headers as a list of ``(str, bytes or None)``.

        As in Java, invalid UTF-8 in a key is decoded as U+FFFD.
        """
    def detach(self) -> Self:
        """Copy the record's bytes and release the batch. Returns the record.

        Call this for a record that is kept for long. Otherwise, a small record keeps a large fetch response
        in memory.
        """

@final
class _SmallRecord(Record): ...

@final
class RecordIterator(Iterator[Record]):
    """Iterator over the records of one batch, in order."""
    def __init__(self, *args: Never, **kwargs: Never) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Record: ...

@final
class BatchIterator(Iterator[RecordBatch]):
    """Iterator over the batches of one buffer, in order; see :func:`read_batches`."""
    def __init__(self, *args: Never, **kwargs: Never) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> RecordBatch: ...
    @property
    def position(self) -> int:
        """Position of the next batch, in bytes from the start of the buffer."""

def read_batches(buffer: Buffer, check_crcs: bool = True, max_decompressed_size: int = ...) -> BatchIterator:
    """Iterate over the batches in ``buffer``. A batch is checked when it is reached.

    Parameters
    ----------
    buffer:
        Consecutive batches. A truncated batch at the end, which a fetch response may have because of its size
        limit, ends the iteration.
    check_crcs:
        Whether to verify the checksum of each batch.
    max_decompressed_size:
        Maximum size of a decompressed batch in bytes.

    Raises
    ------
    CorruptRecordError
        A header is invalid or a CRC does not match. A message of format 0 or 1 is converted when the iterator
        reaches the message, so corruption in any part of the message raises the error then. The iterator does
        not advance past corrupt data, so its next call raises the error again.
    """
