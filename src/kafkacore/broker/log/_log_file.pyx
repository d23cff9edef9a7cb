"""One file of a log. The file is opened when it is used, and may stay open afterwards."""

cimport cython

from kafkacore.wire import FileSlice

# Value of LogFile.fd while no descriptor is open.
CLOSED = -1


@cython.final
cdef class LogFile:
    """A file that is opened when it is used.

    The class is thread-safe, but the log must order writes and syncs.

    Parameters
    ----------
    files:
        Cache that opens and closes the file. The lock of the cache guards the attributes.
    path:
        Path of the file.
    creates:
        Whether opening creates the file if it is missing.

    Attributes
    ----------
    fd:
        The descriptor, or ``CLOSED``.
    holds:
        Number of current users of the descriptor.
    was_used:
        Whether the file was used since it was opened, or since the cache last considered closing it.
    is_unsynced:
        Whether the file was written since it was last synced.
    """

    cdef readonly object path
    cdef public bint creates, was_used, is_unsynced
    cdef public int fd
    cdef readonly int holds
    cdef object files, lock, disk
    # Whether to close the descriptor when the last hold is released.
    cdef bint is_closing

    def __init__(self, files, path, bint creates):
        self.files = files
        self.lock = files.lock
        self.disk = files.disk
        self.path = path
        self.creates = creates
        self.fd = CLOSED

    def hold(self):
        """Return the descriptor and keep it open until a matching call of :meth:`release_hold`."""
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
        """Close the descriptor as soon as there are no holds. The next use opens the file again."""
        with self.lock:
            if self.fd >= 0:
                self.is_closing = self.holds > 0
                if not self.holds:
                    self.files.closed(self)

    def move(self, path, *, bint must_exist=True):
        """Rename the file. During the rename, no other thread can open the file."""
        with self.lock:
            if must_exist or self.disk.exists(self.path):
                self.disk.rename(self.path, path)
            self.path = path

    def exists(self):
        return self.disk.exists(self.path)

    def slice(self, position, size):
        """Return a part of the file. This part stays readable even if the file is renamed or removed."""
        fd = self.take_hold()
        try:
            return FileSlice(fd, position, size, self)
        except BaseException:
            self.release_hold()
            raise

    # ---- The operations of Disk -----------------------------------------------------------------------

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
        # Clear the flag before the sync. A write during the sync then sets the flag again, because the sync
        # may miss that write.
        self.is_unsynced = False
        try:
            self.disk.fdatasync(fd)
        except BaseException:
            self.is_unsynced = True
            raise
        finally:
            self.release_hold()
