from collections.abc import Sequence
from typing import Self, final

from typing_extensions import Buffer

@final
class NetworkSend:
    """A frame to send. Its size field of 4 bytes is added before the pieces.

    Parameters
    ----------
    destination_id:
        Id of the channel.
    pieces:
        Buffers and :class:`~kafkacore.wire.FileSlice` objects, in order. The frame references these objects
        until it is completely written or the channel is closed. They must not change until then.

    Raises
    ------
    ValueError
        If the pieces exceed 2 GiB - 1, the maximum size of a frame.
    """

    destination_id: str
    size_in_bytes: int
    remaining: int
    def __new__(cls, destination_id: str, pieces: Sequence[Buffer]) -> Self: ...
    @property
    def is_completed(self) -> bool:
        """Whether the frame has been completely written to the transport."""
    @property
    def holds_pieces(self) -> bool:
        """Whether the pieces are still referenced.

        The pieces are released when the frame is completely written or the channel is closed.
        """
    def drain(self) -> bytes:
        """Return the unwritten bytes, and mark the frame as written; for mocks of :class:`Selector`."""
