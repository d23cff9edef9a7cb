"""A piece of a frame that lies in a file, and goes to a socket without passing through this process.

Does not know: what is in the file, who sends it.
"""

cimport cython
from libc.stdint cimport int64_t

import os


@cython.final
cdef class FileSlice:
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

    def __cinit__(self, int fd, int64_t position, Py_ssize_t size, holder):
        if size < 1 or position < 0:
            raise ValueError(f"{size} bytes from {position} on are no part of a file")
        self.fd = fd
        self.position = position
        self.size = size
        self.holder = holder

    def __del__(self):
        self.release()

    def __len__(self):
        return self.size

    def __repr__(self):
        return f"FileSlice({self.size} bytes from {self.position} on of descriptor {self.fd})"

    def release(self):
        """The bytes have been sent, or will not be."""
        holder, self.holder = self.holder, None
        if holder is not None:
            self.fd = -1
            holder.release_hold()

    def read(self):
        """The bytes, or fewer if the file has become shorter: for those who cannot send from a file."""
        return os.pread(self.fd, self.size, self.position)

    def __bytes__(self):
        return self.read()
