import sys
from collections.abc import Sequence
from typing import Self, final

from typing_extensions import Buffer

from kafkacore.structs import Compression, TimestampType

@final
class RecordBatchBuilder:
    """One batch of format 2 as it is filled, and sealed.

    Parameters
    ----------
    batch_size:
        Bytes of the batch on the wire at which it counts as full. The first record always fits.
    compression:
        A :class:`Compression`.
    compression_level:
        One of the codec's levels (``compression.CODECS``); ``None`` for the default.
    timestamp_type:
        What the batch says of its timestamps.
    compression_ratio:
        Expected compressed size through plain size; a compressed batch takes plain bytes up to
        ``batch_size / compression_ratio``.

    Attributes
    ----------
    size_in_bytes:
        Bytes so far, header included: before compression while it is open, on the wire once it is sealed.
    base_timestamp, max_timestamp:
        Milliseconds since the epoch, -1 while it is empty.
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
        """No further record is expected to fit."""
    def append(
        self,
        timestamp_ms: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Sequence[tuple[str, Buffer | None]] = (),
    ) -> int:
        """Add a record.

        Parameters
        ----------
        timestamp_ms:
            Milliseconds since the epoch.
        key, value:
            ``bytes`` or another contiguous buffer, or ``None``.
        headers:
            Pairs of a ``str`` and ``bytes`` or ``None``.

        Returns
        -------
        Its place in the batch (0 for the first), or -1 if the batch has no room for it.

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
        """Seal the batch: compress it, write its header, compute the CRC; without the GIL what takes long.

        Returns
        -------
        A read-only memoryview of the whole batch, which keeps its memory alive.

        Raises
        ------
        IllegalStateError
            The batch is sealed already, or empty.
        """
