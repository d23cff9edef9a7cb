"""The real disk of a broker, with faults that a test can switch on: a full disk, or failing operations.

``kafkacore.testing.disk`` simulates a disk that loses power.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from kafkacore.broker.storage.disk import Buffer, Disk

#: Operations that can fail.
VERBS = ("write", "sync", "create")


class SwitchedDisk(Disk):
    """A disk whose faults any thread may switch on and off at any time."""

    def __init__(self) -> None:
        self._errors: dict[str, int] = {}

    def fill(self) -> None:
        """Make writes and the creation of files fail with ENOSPC."""
        self._errors |= {"write": errno.ENOSPC, "create": errno.ENOSPC}

    def free(self) -> None:
        """Remove all faults."""
        self._errors = {}

    def fail(self, verb: str, number: int = errno.EIO) -> None:
        """Make ``"write"``, ``"sync"`` or ``"create"`` fail with this errno.

        Raises
        ------
        ValueError
            If ``verb`` is not one of these names.
        """
        if verb not in VERBS:
            raise ValueError(f"unknown operation {verb!r}; use one of {', '.join(VERBS)}")
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
