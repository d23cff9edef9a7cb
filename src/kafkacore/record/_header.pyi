from typing import Never

from typing_extensions import Buffer, disjoint_base

from kafkacore.structs import Compression, TimestampType

@disjoint_base
class BatchHeader:
    """The fields of one batch's header, under Kafka's names.

    Of a message of format 0 or 1 (``magic``), offsets are that of the message (of the last one if it is a
    compressed set), ``record_count`` is -1, and what the format does not have is -1.

    Attributes
    ----------
    position:
        Bytes from the start of the buffer to this batch.
    size_in_bytes:
        Bytes of the whole batch, header included.
    base_timestamp, max_timestamp:
        Milliseconds since the epoch, or -1.
    """
    def __init__(self, *args: Never, **kwargs: Never) -> None: ...
    @property
    def position(self) -> int: ...
    @property
    def size_in_bytes(self) -> int: ...
    @property
    def base_offset(self) -> int: ...
    @property
    def last_offset(self) -> int:
        """Offset of the last record, which compaction may have taken away."""
    @property
    def next_offset(self) -> int:
        """The offset from which to go on behind this batch."""
    @property
    def base_timestamp(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...
    @property
    def producer_id(self) -> int: ...
    @property
    def producer_epoch(self) -> int: ...
    @property
    def base_sequence(self) -> int: ...
    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record, -1 without one; numbers wrap from 2^31 - 1 to 0."""
    @property
    def record_count(self) -> int: ...
    @property
    def crc(self) -> int: ...
    @property
    def partition_leader_epoch(self) -> int: ...
    @property
    def magic(self) -> int: ...
    @property
    def compression(self) -> Compression:
        """The codec, as :class:`Compression`."""
    @property
    def timestamp_type(self) -> TimestampType:
        """Whose clock the timestamps are of, as :class:`TimestampType`."""
    @property
    def is_transactional(self) -> bool: ...
    @property
    def is_control(self) -> bool: ...
    @property
    def has_delete_horizon(self) -> bool:
        """``base_timestamp`` is when tombstones may go (KIP-534)."""

def read_batch_headers(buffer: Buffer) -> list[BatchHeader]:
    """The headers of all whole batches in ``buffer``, of any format; records are not looked at, nor is the
    CRC.

    Raises
    ------
    CorruptRecordError
        A header breaks the format. A batch cut short at the end is left out.
    """

def assign_offset(buffer: Buffer, base_offset: int, leader_epoch: int) -> None:
    """Write base offset and leader epoch into a batch, in place. Both lie outside the CRC, which stays right.

    Parameters
    ----------
    buffer:
        Writable; begins with the batch, of format 2.
    """
