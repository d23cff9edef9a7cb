from typing import Never

from typing_extensions import Buffer, disjoint_base

from kafkacore.structs import Compression, TimestampType

@disjoint_base
class BatchHeader:
    """The header of one batch; the fields have Kafka's names.

    For a message of format 0 or 1 (``magic``), the offsets are those of the message, or of the last message
    of a compressed set. ``record_count`` and fields that the format lacks are -1.

    Attributes
    ----------
    position:
        Position of the batch, in bytes from the start of the buffer.
    size_in_bytes:
        Size of the whole batch with its header.
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
        """Offset of the last record. Compaction may have removed that record."""
    @property
    def next_offset(self) -> int:
        """Next offset after this batch."""
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
        """Sequence number of the last record; -1 for none. Sequence numbers wrap from 2^31 - 1 to 0."""
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
        """Compression codec, as :class:`Compression`."""
    @property
    def timestamp_type(self) -> TimestampType:
        """Timestamp type, as :class:`TimestampType`."""
    @property
    def is_transactional(self) -> bool: ...
    @property
    def is_control(self) -> bool: ...
    @property
    def has_delete_horizon(self) -> bool:
        """Whether ``base_timestamp`` is the time from which tombstones may be removed (KIP-534)."""

def read_batch_headers(buffer: Buffer) -> list[BatchHeader]:
    """Return the headers of all complete batches of any format in ``buffer``.

    Neither the records nor the CRCs are checked. A truncated batch at the end is left out.

    Raises
    ------
    CorruptRecordError
        A header is invalid.
    """

def assign_offset(buffer: Buffer, base_offset: int, leader_epoch: int) -> None:
    """Write the base offset and the leader epoch into a batch, in place.

    The CRC does not cover these fields, so it stays valid.

    Parameters
    ----------
    buffer:
        A writable buffer that starts with a batch of format 2.
    base_offset, leader_epoch:
        The new values.
    """
