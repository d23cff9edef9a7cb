from typing import Protocol, Self, final

class _Holder(Protocol):
    def release_hold(self) -> None: ...

@final
class FileSlice:
    """Bytes of a file from a position on. They must not change.

    Parameters
    ----------
    fd:
        Of the file; stays its owner's.
    position, size:
        Where the bytes are, and how many, at least one.
    holder:
        Keeps ``fd`` open until its ``release_hold()`` is called, once: by :meth:`release`, or when nobody has
        the slice any more.
    """

    fd: int
    position: int
    size: int
    def __new__(cls, fd: int, position: int, size: int, holder: _Holder) -> Self: ...
    def __len__(self) -> int: ...
    def __bytes__(self) -> bytes: ...
    def release(self) -> None:
        """The bytes have been sent, or will not be."""
    def read(self) -> bytes:
        """The bytes, or fewer if the file has become shorter: for those who cannot send from a file."""
