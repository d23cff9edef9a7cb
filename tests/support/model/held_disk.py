"""The real file system with one call that waits, so that a test can stand between a call and its end."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from eventually import BUDGET_S

from kafkacore.broker.storage.disk import Disk


class HeldDisk(Disk):
    """A disk on which one call, of :attr:`verb` with :attr:`name` in the file's name, waits to be let go."""

    def __init__(self) -> None:
        self.verb = self.name = ""
        self.failure: OSError | None = None
        self.is_held = threading.Event()
        self.may_go = threading.Event()

    def hold(self, verb: str, name: str) -> None:
        """Let the next such call wait until :attr:`may_go` is set."""
        self.verb, self.name = verb, name
        self.is_held.clear()
        self.may_go.clear()

    def _pass(self, verb: str, path: Path) -> None:
        if verb == self.verb and self.name in path.name:
            self.verb = ""
            self.is_held.set()
            assert self.may_go.wait(BUDGET_S), "never let go"
            if self.failure is not None:
                raise self.failure

    def mkdir(self, path: Path) -> None:
        self._pass("mkdir", path)
        super().mkdir(path)

    def rename(self, source: Path, target: Path) -> None:
        self._pass("rename", source)
        super().rename(source, target)

    def fdatasync(self, fd: int) -> None:
        self._pass("fdatasync", Path(os.readlink(f"/proc/self/fd/{fd}")))
        super().fdatasync(fd)
