"""A cache of open files, which limits the number of descriptors that all logs use together.

A file is opened when it is used. While a file is being read, synced or sent, a hold on its descriptor
prevents the cache from closing it.
"""

from __future__ import annotations

import errno
import resource
from collections import OrderedDict
from pathlib import Path
from threading import RLock

from kafkacore.broker.log._log_file import CLOSED, LogFile
from kafkacore.broker.storage.disk import Disk
from kafkacore.logs import logger_of

logger = logger_of(__name__)

__all__ = ["CLOSED", "MIN_OPEN", "LogFile", "OpenFiles", "descriptor_budget"]

#: Minimum limit. With fewer descriptors, even one partition would open and close files all the time.
MIN_OPEN = 32
_TOO_MANY = (errno.EMFILE, errno.ENFILE)


def descriptor_budget() -> int:
    """Return half of the process's limit of open files. The other half is for connections and other files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(soft // 2, MIN_OPEN) if soft != resource.RLIM_INFINITY else 1 << 20


class OpenFiles:
    """Opens files when they are used, and closes the least recently used files above a limit. Thread-safe.

    Parameters
    ----------
    disk:
        File system to use.
    limit:
        Maximum number of open descriptors. It is exceeded only while more files than that are in use at once.
        Default: :func:`descriptor_budget`.
    """

    def __init__(self, disk: Disk, limit: int | None = None) -> None:
        self.disk = disk
        self.limit = descriptor_budget() if limit is None else limit
        # Guards _open and the fields of each LogFile. The lock is held while a file is opened or closed, but
        # not while a file is read, written or synced. The lock is reentrant, because the garbage collector
        # may free a FileSlice while the lock is held.
        self.lock = RLock()
        # Open files in the order in which they were opened or last skipped by _close_idle().
        self._open: OrderedDict[LogFile, None] = OrderedDict()

    @property
    def open_count(self) -> int:
        """Number of open descriptors."""
        return len(self._open)

    def file(self, path: Path, *, creates: bool) -> LogFile:
        """Return the file at ``path``, which is opened on first use.

        Parameters
        ----------
        path:
            Path of the file.
        creates:
            Whether opening creates the file if it is missing.
        """
        return LogFile(self, path, creates)

    def size(self, path: Path) -> int | None:
        """Return the size of a file in bytes, or ``None`` if it is missing. The file is not opened."""
        return self.disk.file_size(path)

    # ---- Called with the lock held --------------------------------------------------------------------

    def opened(self, file: LogFile) -> int:
        """Open a descriptor for ``file``, closing idle files above the limit first."""
        if len(self._open) >= self.limit:
            self._close_idle(len(self._open) - self.limit + 1)
        try:
            fd = self.disk.open(file.path, create=file.creates)
        except OSError as error:
            # The process or the system has no descriptor left: close half of the idle files and retry.
            if error.errno not in _TOO_MANY or not self._close_idle(len(self._open) // 2 + 1):
                raise
            fd = self.disk.open(file.path, create=file.creates)
        self._open[file] = None
        return fd

    def _close_idle(self, count: int) -> int:
        """Close up to ``count`` idle files, the least recently used first. Return how many were closed."""
        closed = 0
        # A file that was used since the last call is skipped once. Files that need a sync are closed last,
        # because closing the only descriptor of a file may discard a write error.
        for spares_unsynced in (True, True, False):
            for _ in range(len(self._open)):
                if closed == count:
                    return closed
                file = next(iter(self._open))
                if file.holds or file.was_used or (spares_unsynced and file.is_unsynced):
                    file.was_used = False
                    self._open.move_to_end(file)
                else:
                    self.closed(file)
                    closed += 1
        return closed

    def closed(self, file: LogFile) -> None:
        """Close the descriptor of ``file``."""
        fd, file.fd = file.fd, CLOSED
        del self._open[file]
        try:
            self.disk.close(fd)
        except OSError as error:
            # The failed close does not affect the data: if a write has failed, the next sync reports it.
            logger.warning("failed to close %s: %s", file.path, error)
