import sys
from typing import Self, final

from typing_extensions import Buffer

from kafkacore.network._memory import MemoryPool

@final
class NetworkReceive:
    """A received frame, which also supports the buffer protocol.

    Parameters
    ----------
    source_id:
        Id of the channel that received the frame.
    payload:
        Bytes of the frame without its size field: a writable memoryview that keeps the bytes alive.
    """

    source_id: str
    def __init__(self, source_id: str, payload: memoryview) -> None: ...
    @property
    def payload(self) -> memoryview: ...
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class ReadBuffer:
    """Memory for reads of unknown size. The memory is reused from its start when no view of it exists."""

@final
class FrameReader:
    """Splits the byte stream of one channel into frames.

    Parameters
    ----------
    source_id:
        Id of the channel.
    max_size:
        Maximum bytes of a frame, without its size field; -1 for the protocol's limit of 2 GiB - 1.
    pool:
        Pool that limits the memory of the frames of all channels; ``None`` for no limit.
    """

    source_id: str
    max_size: int
    def __new__(cls, source_id: str, max_size: int = -1, pool: MemoryPool | None = None) -> Self: ...
    @property
    def is_within_frame(self) -> bool:
        """Whether only a part of the last frame has been received."""
    def feed(self, data: Buffer) -> list[NetworkReceive]:
        """Parse ``data`` and return the frames that are now complete, for streams that are not sockets.

        Parameters
        ----------
        data:
            The next bytes of the stream.

        Returns
        -------
        list of NetworkReceive
            The completed frames, in order.

        Raises
        ------
        InvalidReceiveError
            If a frame's size is negative or above the limit. No memory is allocated for such a frame.
        """
