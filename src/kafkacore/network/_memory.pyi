from typing import Self, final

@final
class MemoryPool:
    """A limit on the memory of frames that are being received or are still referenced.

    Parameters
    ----------
    limit:
        Maximum bytes. While no memory is in use, the pool accepts a frame of any size, so that a frame above
        the limit does not wait forever. Small frames may use another eighth of the limit, so that peers that
        announce large frames cannot block small frames.
    """

    limit: int
    used: int
    def __new__(cls, limit: int) -> Self: ...

@final
class Chunk:
    """A block of memory. A view of any part keeps the whole block alive."""
