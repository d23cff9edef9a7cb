import sys
from typing import Self, final

from typing_extensions import Buffer

from kafkacore.structs import Compression, TimestampType

@final
class LegacyBatchBuilder:
    """Messages of format 0 or 1 as they are written.

    Parameters
    ----------
    magic:
        The format, 0 or 1.
    compression, compression_level:
        A :class:`Compression`, and the library's level.
    timestamp_type:
        What format 1 says of its timestamps.
    log_append_time_ms:
        With ``LOG_APPEND_TIME`` the time of all messages, in milliseconds since the epoch.

    Raises
    ------
    UnsupportedCompressionTypeError
        These formats have no zstd (KIP-110).
    ValueError
        There is no such format, codec or timestamp type.
    """
    def __new__(
        cls,
        magic: int,
        compression: Compression | int = ...,
        compression_level: int | None = None,
        timestamp_type: TimestampType | int = ...,
        log_append_time_ms: int = -1,
    ) -> Self: ...
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...
    @property
    def magic(self) -> int: ...
    @property
    def record_count(self) -> int: ...
    def append(self, offset: int, timestamp_ms: int, key: Buffer | None, value: Buffer | None) -> None:
        """Add a record.

        Parameters
        ----------
        offset:
            Its offset, larger than that of the record before.
        timestamp_ms:
            Milliseconds since the epoch; format 0 has no place for it.
        key, value:
            ``bytes`` or another contiguous buffer, or ``None``.

        Raises
        ------
        ValueError
            The offset is not larger.
        IllegalStateError
            The messages are written already.
        """
    def close(self) -> memoryview:
        """Finish: without compression there is nothing to do, with it the set is compressed and wrapped.

        Returns
        -------
        A read-only memoryview of all messages, which keeps its memory alive.

        Raises
        ------
        IllegalStateError
            They are written already, or there are none.
        """

def down_convert(
    buffer: Buffer, to_magic: int, first_offset: int = 0, max_decompressed_size: int = ...
) -> bytes:
    """The batches in ``buffer`` for a client that knows no newer format than ``to_magic``.

    Headers are left out, and so are control batches. A batch that is old enough stays as it is; another keeps
    its codec. Of plain messages only those from ``first_offset`` on are written, for they are batches of
    their own: a client that asked for them from there (some versions of librdkafka) relies on it.

    Parameters
    ----------
    to_magic:
        0 or 1.
    first_offset:
        Offset from which the client reads.
    max_decompressed_size:
        Limit of one decompressed batch in bytes.

    Raises
    ------
    UnsupportedCompressionTypeError
        A batch is compressed by zstd (KIP-110).
    CorruptRecordError
        A batch is broken.
    ValueError
        There is no such format.
    """

def down_convert_some(
    buffer: Buffer,
    to_magic: int,
    first_offset: int = 0,
    max_decompressed_size: int = ...,
    max_plain_bytes: int = ...,
) -> tuple[bytes, int]:
    """As :func:`down_convert`, but no further than the batch with which ``max_plain_bytes`` are read.

    Returns
    -------
    tuple
        The converted batches, and how many bytes were converted, after decompression.
    """
