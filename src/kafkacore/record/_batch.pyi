from collections.abc import Iterator
from typing import Never, Self, final

from typing_extensions import Buffer, disjoint_base

from kafkacore.record._header import BatchHeader
from kafkacore.structs import TimestampType

@final
class RecordBatch(BatchHeader):
    """One batch. Iterating it gives its :class:`Record` objects; more than once if asked to.

    In format 0 and 1 it is one message, or one compressed set of them.

    Made by :func:`read_batches`.
    """
    def __init__(self, *args: Never, **kwargs: Never) -> None: ...
    def __iter__(self) -> RecordIterator: ...
    def __len__(self) -> int: ...

@disjoint_base
class Record:
    """One record: its place in the batch. Key, value and headers are made each time they are asked for.

    The loop over a batch fills the same objects anew as long as nobody keeps them. One that is kept stays
    what it is, and keeps the memory of its batch until :meth:`detach`.

    Attributes
    ----------
    offset:
        Its offset in the partition.
    timestamp:
        Milliseconds since the epoch, -1 for none.
    """
    def __init__(self, *args: Never, **kwargs: Never) -> None: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def timestamp_type(self) -> TimestampType:
        """As the batch's."""
    @property
    def key(self) -> bytes | None:
        """``bytes`` or ``None``."""
    @property
    def value(self) -> bytes | None:
        """``bytes`` or ``None``."""
    @property
    def key_size(self) -> int:
        """Bytes of the key, -1 for none."""
    @property
    def value_size(self) -> int:
        """Bytes of the value, -1 for none."""
    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """List of ``(str, bytes or None)``. A key that is not UTF-8 has U+FFFD where it breaks, as in Java."""
    def detach(self) -> Self:
        """Copy the record's bytes and let go of the batch: a small record that is kept for long then does not
        keep a large fetch response. Returns the record.
        """

@final
class _SmallRecord(Record): ...

@final
class RecordIterator(Iterator[Record]):
    """The records of one batch, in order."""
    def __init__(self, *args: Never, **kwargs: Never) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Record: ...

@final
class BatchIterator(Iterator[RecordBatch]):
    """The batches of one buffer, in order; see :func:`read_batches`."""
    def __init__(self, *args: Never, **kwargs: Never) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> RecordBatch: ...
    @property
    def position(self) -> int:
        """Bytes from the start of the buffer to the next batch."""

def read_batches(buffer: Buffer, check_crcs: bool = True, max_decompressed_size: int = ...) -> BatchIterator:
    """The batches in ``buffer``, one by one; a batch is checked when it is reached.

    Parameters
    ----------
    buffer:
        Batches one behind the other. One that is cut short at the end (a fetch is cut at its size limit) ends
        the iteration.
    check_crcs:
        Whether to compute the CRC of each.
    max_decompressed_size:
        Limit of one decompressed batch, in bytes.

    Raises
    ------
    CorruptRecordError
        A header breaks the format, a CRC differs, or a message of format 0 or 1 is broken, for it is unpacked
        when it is reached. Asked again, the iterator raises it again.
    """
