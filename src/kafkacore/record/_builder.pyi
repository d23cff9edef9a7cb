import sys
from collections.abc import Sequence
from typing import Self, final

from typing_extensions import Buffer

from kafkacore.structs import Compression, TimestampType

@final
class RecordBatchBuilder:
    """A builder of one batch of format 2.

    Parameters
    ----------
    batch_size:
        Size on the wire, in bytes, at which the batch is full. The first record always fits.
    compression:
        A :class:`Compression`.
    compression_level:
        One of the codec's levels (``compression.CODECS``); ``None`` for the default.
    timestamp_type:
        Timestamp type of the batch.
    compression_ratio:
        Expected ratio of compressed to uncompressed size. A compressed batch accepts ``batch_size /
        compression_ratio`` uncompressed bytes.

    Attributes
    ----------
    size_in_bytes:
        Size of the batch in bytes, including the header. It is the uncompressed size while the batch is open,
        and the size on the wire once the batch is sealed.
    base_timestamp, max_timestamp:
        Milliseconds since the epoch; -1 while the batch is empty.
    """
    def __new__(
        cls,
        batch_size: int,
        compression: Compression | int = ...,
        compression_level: int | None = None,
        timestamp_type: TimestampType | int = ...,
        compression_ratio: float = 1.0,
    ) -> Self: ...
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def base_timestamp(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...
    @property
    def record_count(self) -> int: ...
    @property
    def is_closed(self) -> bool: ...
    @property
    def size_in_bytes(self) -> int: ...
    @property
    def max_record_size(self) -> int: ...
    @property
    def is_full(self) -> bool:
        """Whether the batch is full; no further record is expected to fit."""
    def append(
        self,
        timestamp_ms: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Sequence[tuple[str, Buffer | None]] = (),
    ) -> int:
        """Append a record.

        Parameters
        ----------
        timestamp_ms:
            Milliseconds since the epoch.
        key, value:
            ``bytes`` or another contiguous buffer, or ``None``.
        headers:
            Pairs of ``str`` and ``bytes`` or ``None``.

        Returns
        -------
        int
            Index of the record in the batch, from 0, or -1 if the record does not fit.

        Raises
        ------
        IllegalStateError
            The batch is sealed.
        """
    def close(
        self,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        is_transactional: bool = False,
        is_control: bool = False,
        base_offset: int = 0,
        partition_leader_epoch: int = -1,
    ) -> memoryview:
        """Seal the batch: compress it, write its header and compute the CRC.

        Compression and the CRC of a large batch run without the GIL.

        Returns
        -------
        memoryview
            The whole batch, read-only. The view keeps the memory alive.

        Raises
        ------
        IllegalStateError
            The batch is already sealed, or is empty.
        """
