"""One file of a log, which has a descriptor while it is used, and for a while after that.

Bytes in and out, as the disk's verbs. Does not know: when descriptors are too many (``open_files`` does),
what the file contains.
"""

cimport cython

from kafkacore.wire import FileSlice

# Instead of a descriptor.
CLOSED = -1


@cython.final
cdef class LogFile:
    """Its calls may come from any thread; their order is the log's care.

    Parameters
    ----------
    files:
        Opens and closes it; its lock guards what is here.
    creates:
        Opening makes it if it is missing.

    Attributes
    ----------
    fd:
        The descriptor, ``CLOSED`` if it has none.
    holds:
        How many use the descriptor now.
    was_used:
        Again, since it was opened or last in danger of being closed.
    is_unsynced:
        It has been written since it was last synced.
    """

    cdef readonly object path
    cdef public bint creates, was_used, is_unsynced
    cdef public int fd
    cdef readonly int holds
    cdef object files, lock, disk
    # To be closed when nobody uses it any more.
    cdef bint is_closing

    def __init__(self, files, path, bint creates):
        self.files = files
        self.lock = files.lock
        self.disk = files.disk
        self.path = path
        self.creates = creates
        self.fd = CLOSED

    def hold(self):
        """The descriptor. It stays open until :meth:`release_hold`, to be called once for each hold."""
        return self.take_hold()

    cdef int take_hold(self) except -1:
        with self.lock:
            if self.fd < 0:
                self.fd = self.files.opened(self)
            else:
                self.was_used = True
            self.holds += 1
            return self.fd

    def release_hold(self):
        with self.lock:
            self.holds -= 1
            if self.is_closing and not self.holds:
                self.is_closing = False
                self.files.closed(self)

    def release(self):
        """Give the descriptor back, now or with the last hold; the next use opens the file again."""
        with self.lock:
            if self.fd >= 0:
                self.is_closing = self.holds > 0
                if not self.holds:
                    self.files.closed(self)

    def move(self, path, *, bint must_exist=True):
        """Rename it; nobody opens it under its old name meanwhile."""
        with self.lock:
            if must_exist or self.disk.exists(self.path):
                self.disk.rename(self.path, path)
            self.path = path

    def exists(self):
        return self.disk.exists(self.path)

    def slice(self, position, size):
        """Part of it, which stays readable whatever becomes of the file."""
        fd = self.take_hold()
        try:
            return FileSlice(fd, position, size, self)
        except BaseException:
            self.release_hold()
            raise

    # ---- As the disk's verbs --------------------------------------------------------------------------

    def pread(self, size, position):
        fd = self.take_hold()
        try:
            return self.disk.pread(fd, size, position)
        finally:
            self.release_hold()

    def pwritev(self, buffers, position):
        fd = self.take_hold()
        self.is_unsynced = True
        try:
            self.disk.pwritev(fd, buffers, position)
        finally:
            self.release_hold()

    def truncate(self, size):
        fd = self.take_hold()
        self.is_unsynced = True
        try:
            self.disk.truncate(fd, size)
        finally:
            self.release_hold()

    def fdatasync(self):
        fd = self.take_hold()
        # Before: what is written meanwhile may not be synced.
        self.is_unsynced = False
        try:
            self.disk.fdatasync(fd)
        except BaseException:
            self.is_unsynced = True
            raise
        finally:
            self.release_hold()
