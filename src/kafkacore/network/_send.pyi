from collections.abc import Sequence
from typing import Self, final

from typing_extensions import Buffer

@final
class NetworkSend:
    """A frame to be written; the 4 bytes of its size are added.

    Parameters
    ----------
    destination_id:
        Of the channel.
    pieces:
        Buffers and :class:`~kafkacore.wire.FileSlice`, in order. They are held, and must not change, until
        all is written or the channel has closed.

    Raises
    ------
    ValueError
        When the pieces are together more than a frame can hold, 2 GiB - 1.
    """

    destination_id: str
    size_in_bytes: int
    remaining: int
    def __new__(cls, destination_id: str, pieces: Sequence[Buffer]) -> Self: ...
    @property
    def is_completed(self) -> bool:
        """Whether the transport has taken all of it."""
    @property
    def holds_pieces(self) -> bool:
        """Whether the buffers are still needed; ``False`` once all is written or the channel has closed."""
    def drain(self) -> bytes:
        """All that has not been written, as bytes; nothing is left. For stand-ins of a :class:`Selector`."""
