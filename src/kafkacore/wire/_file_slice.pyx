"""A part of a frame that is sent from a file without being copied into this process."""

cimport cython
from libc.stdint cimport int64_t

import os


@cython.final
cdef class FileSlice:
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

    def __cinit__(self, int fd, int64_t position, Py_ssize_t size, holder):
        if size < 1 or position < 0:
            raise ValueError(f"invalid file slice: {size} bytes from position {position}")
        self.fd = fd
        self.position = position
        self.size = size
        self.holder = holder

    def __del__(self):
        self.release()

    def __len__(self):
        return self.size

    def __repr__(self):
        return f"FileSlice({self.size} bytes from position {self.position} of descriptor {self.fd})"

    def release(self):
        """Release the file: the bytes have been sent, or will not be sent."""
        holder, self.holder = self.holder, None
        if holder is not None:
            self.fd = -1
            holder.release_hold()

    def read(self):
        """Return the bytes, or fewer if the file has become shorter.

        Callers that cannot send from a file use this method.
        """
        return os.pread(self.fd, self.size, self.position)

    def __bytes__(self):
        return self.read()
