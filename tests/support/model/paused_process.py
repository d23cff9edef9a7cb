"""Suspend a process with SIGSTOP, and wait until it is stopped."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eventually import eventually


@contextmanager
def paused(pid: int) -> Iterator[None]:
    """Suspend ``pid`` within the block. The wait is necessary because the signal takes effect later."""
    os.kill(pid, signal.SIGSTOP)
    try:
        eventually(lambda: _all_threads_stopped(pid))
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _all_threads_stopped(pid: int) -> bool:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    states = {(task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks}
    return states == {"T"}
