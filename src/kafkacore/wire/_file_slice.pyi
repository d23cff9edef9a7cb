from typing import Protocol, Self, final

class _Holder(Protocol):
    def release_hold(self) -> None: ...

@final
class FileSlice:
    """A range of bytes of a file. The bytes must not change.

    Parameters
    ----------
    fd:
        File descriptor. The slice does not close it.
    position, size:
        Position of the first byte, and the number of bytes, at least 1.
    holder:
        Object that keeps ``fd`` open until its ``release_hold()`` is called. The slice calls it once: in
        :meth:`release`, or when the slice is garbage-collected.
    """

    fd: int
    position: int
    size: int
    def __new__(cls, fd: int, position: int, size: int, holder: _Holder) -> Self: ...
    def __len__(self) -> int: ...
    def __bytes__(self) -> bytes: ...
    def release(self) -> None:
        """Release the file: the bytes have been sent, or will not be sent."""
    def read(self) -> bytes:
        """Return the bytes, or fewer if the file has become shorter.

        Callers that cannot send from a file use this method.
        """
