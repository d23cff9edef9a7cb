import sys
from typing import Self, final

from typing_extensions import Buffer

from kafkacore.structs import Compression, TimestampType

@final
class LegacyBatchBuilder:
    """A builder of messages of format 0 or 1.

    Parameters
    ----------
    magic:
        The message format, 0 or 1.
    compression, compression_level:
        A :class:`Compression`, and the codec's level.
    timestamp_type:
        Timestamp type of messages of format 1.
    log_append_time_ms:
        Time of all messages with ``LOG_APPEND_TIME``, in milliseconds since the epoch.

    Raises
    ------
    UnsupportedCompressionTypeError
        These formats do not support zstd (KIP-110).
    ValueError
        The format, codec or timestamp type is unknown.
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
        """Append a record.

        Parameters
        ----------
        offset:
            Offset of the record, larger than that of the previous record.
        timestamp_ms:
            Milliseconds since the epoch; ignored in format 0.
        key, value:
            ``bytes`` or another contiguous buffer, or ``None``.

        Raises
        ------
        ValueError
            The offset is not larger than the previous one.
        IllegalStateError
            The builder is already closed.
        """
    def close(self) -> memoryview:
        """Finish the messages. With compression, wrap the compressed set in one message.

        Returns
        -------
        memoryview
            All messages, read-only. The view keeps the memory alive.

        Raises
        ------
        IllegalStateError
            The builder is already closed, or has no messages.
        """

def down_convert(
    buffer: Buffer, to_magic: int, first_offset: int = 0, max_decompressed_size: int = ...
) -> bytes:
    """Convert the batches in ``buffer`` for a client that supports message formats up to ``to_magic``.

    Record headers and control batches are left out. A batch of format ``to_magic`` or older stays unchanged;
    a converted batch keeps its codec. Uncompressed messages before ``first_offset`` are left out too. In the
    old formats, each such message is a batch of its own, and the response to a fetch begins with the batch
    that contains the requested offset. Some versions of librdkafka rely on this.

    Parameters
    ----------
    buffer:
        Consecutive batches.
    to_magic:
        The message format, 0 or 1.
    first_offset:
        Offset from which the client reads.
    max_decompressed_size:
        Maximum size of a decompressed batch in bytes.

    Raises
    ------
    UnsupportedCompressionTypeError
        A batch is compressed by zstd (KIP-110).
    CorruptRecordError
        A batch is corrupt.
    ValueError
        The format is not 0 or 1.
    """

def down_convert_some(
    buffer: Buffer,
    to_magic: int,
    first_offset: int = 0,
    max_decompressed_size: int = ...,
    max_plain_bytes: int = ...,
) -> tuple[bytes, int]:
    """Convert batches as :func:`down_convert` does, up to a size.

    The conversion stops once the batches read have a total decompressed size of ``max_plain_bytes`` or more.

    Returns
    -------
    tuple
        The converted batches, and the decompressed size in bytes of the batches that were read.
    """
