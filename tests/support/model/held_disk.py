"""The real file system with one blocked call, so that a test can run code between its start and its end."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

from eventually import BUDGET_S

from kafkacore.broker.storage.disk import Disk


def path_of(fd: int) -> Path:
    """Return the path of an open file."""
    if (get_path := getattr(fcntl, "F_GETPATH", None)) is not None:  # macOS
        return Path(os.fsdecode(fcntl.fcntl(fd, get_path, bytes(1024)).rstrip(b"\0")))
    return Path(os.readlink(f"/proc/self/fd/{fd}"))


class HeldDisk(Disk):
    """A disk on which one call of :attr:`verb`, with :attr:`name` in the file name, blocks until released."""

    def __init__(self) -> None:
        self.verb = self.name = ""
        self.failure: OSError | None = None
        self.is_held = threading.Event()
        self.may_go = threading.Event()

    def hold(self, verb: str, name: str) -> None:
        """Block the next such call until :attr:`may_go` is set."""
        self.verb, self.name = verb, name
        self.is_held.clear()
        self.may_go.clear()

    def _pass(self, verb: str, path: Path) -> None:
        if verb == self.verb and self.name in path.name:
            self.verb = ""
            self.is_held.set()
            assert self.may_go.wait(BUDGET_S), "the call was never released"
            if self.failure is not None:
                raise self.failure

    def mkdir(self, path: Path) -> None:
        self._pass("mkdir", path)
        super().mkdir(path)

    def rename(self, source: Path, target: Path) -> None:
        self._pass("rename", source)
        super().rename(source, target)

    def fdatasync(self, fd: int) -> None:
        self._pass("fdatasync", path_of(fd))
        super().fdatasync(fd)
