"""The descriptors of all logs' files: opened when a file is used, closed when too many others are.

Paths in, bytes in and out. Nothing is closed under whoever uses it: a file that is read, synced or sent has a
hold on its descriptor, whatever becomes of the file meanwhile. Does not know: what the files contain.
"""

from __future__ import annotations

import errno
import logging
import resource
from collections import OrderedDict
from pathlib import Path
from threading import RLock

from kafkacore.broker.log._log_file import CLOSED, LogFile
from kafkacore.broker.storage.disk import Disk

logger = logging.getLogger(__name__)

__all__ = ["CLOSED", "MIN_OPEN", "LogFile", "OpenFiles", "descriptor_budget"]

#: Fewer would open and close at each step of what one partition does.
MIN_OPEN = 32
_TOO_MANY = (errno.EMFILE, errno.ENFILE)


def descriptor_budget() -> int:
    """Half of what the process may open: the rest is for connections and for small files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(soft // 2, MIN_OPEN) if soft != resource.RLIM_INFINITY else 1 << 20


class OpenFiles:
    """Who has a descriptor. May be used by any thread.

    Parameters
    ----------
    limit:
        Descriptors kept open; more only while more than that are in use.
    """

    def __init__(self, disk: Disk, limit: int | None = None) -> None:
        self.disk = disk
        self.limit = descriptor_budget() if limit is None else limit
        # Guards the two, and each file's fields. Held while a file is opened or closed, never while it is
        # read, written or synced. Entered anew when the garbage collector drops a slice in the midst of that.
        self.lock = RLock()
        # In the order in which they were opened or last spared.
        self._open: OrderedDict[LogFile, None] = OrderedDict()

    @property
    def open_count(self) -> int:
        return len(self._open)

    def file(self, path: Path, *, creates: bool) -> LogFile:
        """The file at ``path``, opened when it is used."""
        return LogFile(self, path, creates)

    def size(self, path: Path) -> int | None:
        """Size of a file that need not be open; ``None`` if it is missing."""
        return self.disk.file_size(path)

    # ---- With the lock held ---------------------------------------------------------------------------

    def opened(self, file: LogFile) -> int:
        """A descriptor for ``file``, which has none."""
        if len(self._open) >= self.limit:
            self._close_idle(len(self._open) - self.limit + 1)
        try:
            fd = self.disk.open(file.path, create=file.creates)
        except OSError as error:
            # Others of the process have taken what was meant for logs, or for nobody.
            if error.errno not in _TOO_MANY or not self._close_idle(len(self._open) // 2 + 1):
                raise
            fd = self.disk.open(file.path, create=file.creates)
        self._open[file] = None
        return fd

    def _close_idle(self, count: int) -> int:
        """Close at most ``count`` files that are not in use, those first that have not been for long; how
        many.
        """
        closed = 0
        # Who was used since its last turn is spared once. The system may forget with the last descriptor
        # that it could not write: files that wait for a sync are closed last.
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
            # Its bytes are as they were: whoever needs them on disk syncs, and hears of it there.
            logger.warning("closing %s failed: %s", file.path, error)
