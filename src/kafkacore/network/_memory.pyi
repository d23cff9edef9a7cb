from typing import Self, final

@final
class MemoryPool:
    """A bound of the bytes of frames that are being read or are still held by somebody.

    Parameters
    ----------
    limit:
        Bytes. One frame is always let in when nothing else is, so that a frame above the limit cannot block
        for ever. Small frames have an eighth more to themselves: who only claims large ones stops nobody
        else.
    """

    limit: int
    used: int
    def __new__(cls, limit: int) -> Self: ...

@final
class Chunk:
    """Plain memory; a view of a part of it keeps all of it alive."""
