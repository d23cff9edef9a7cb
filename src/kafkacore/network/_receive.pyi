import sys
from typing import Self, final

from typing_extensions import Buffer

from kafkacore.network._memory import MemoryPool

@final
class NetworkReceive:
    """One frame.

    Parameters
    ----------
    source_id:
        Of the channel it came by.
    payload:
        Its bytes without the size: a writable memoryview that owns its memory. The receive is a buffer of the
        same bytes itself.
    """

    source_id: str
    def __init__(self, source_id: str, payload: memoryview) -> None: ...
    @property
    def payload(self) -> memoryview: ...
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class ReadBuffer:
    """Memory that reads go to before their size is known. Used from its start again when no view of it is
    out.
    """

@final
class FrameReader:
    """Cuts one channel's stream into frames.

    Parameters
    ----------
    source_id:
        Of the channel.
    max_size:
        Bytes of a frame, without its size; -1 for no limit but the format's.
    pool:
        Bounds the memory of all frames together.
    """

    source_id: str
    max_size: int
    def __new__(cls, source_id: str, max_size: int = -1, pool: MemoryPool | None = None) -> Self: ...
    @property
    def is_within_frame(self) -> bool:
        """Whether the stream would end in the middle of a frame if it ended now."""
    def feed(self, data: Buffer) -> list[NetworkReceive]:
        """The frames that are complete with ``data``; for streams that are no sockets.

        Raises
        ------
        InvalidReceiveError
            For a size that is negative or above the limit, before memory is taken for it.
        """
