"""The real disk of a broker, with switches: full, or failing at what it is told to.

The verbs of :class:`kafkacore.broker.storage.disk.Disk` in; what the operating system does, or the
``OSError`` that was switched on, out. Does not know: logs. For a disk that loses its power, see
``kafkacore.testing.disk``.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from kafkacore.broker.storage.disk import Buffer, Disk

#: What can be made to fail.
VERBS = ("write", "sync", "create")


class SwitchedDisk(Disk):
    """May be switched by any thread, at any time."""

    def __init__(self) -> None:
        self._errors: dict[str, int] = {}

    def fill(self) -> None:
        """Nothing more can be written, and no file made: ENOSPC."""
        self._errors |= {"write": errno.ENOSPC, "create": errno.ENOSPC}

    def free(self) -> None:
        """All works again."""
        self._errors = {}

    def fail(self, verb: str, number: int = errno.EIO) -> None:
        """Let ``"write"``, ``"sync"`` or ``"create"`` fail with this errno.

        Raises
        ------
        ValueError
            There is no such verb.
        """
        if verb not in VERBS:
            raise ValueError(f"a disk cannot fail at {verb!r}; it can at {', '.join(VERBS)}")
        self._errors = {**self._errors, verb: number}

    def _check(self, verb: str) -> None:
        number = self._errors.get(verb)
        if number is not None:
            raise OSError(number, os.strerror(number))

    def open(self, path: Path, *, create: bool = False) -> int:
        if create and not self.exists(path):
            self._check("create")
        return super().open(path, create=create)

    def mkdir(self, path: Path) -> None:
        self._check("create")
        super().mkdir(path)

    def pwritev(self, fd: int, buffers: Sequence[Buffer], position: int) -> None:
        self._check("write")
        super().pwritev(fd, buffers, position)

    def fdatasync(self, fd: int) -> None:
        self._check("sync")
        super().fdatasync(fd)
