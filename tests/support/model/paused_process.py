"""A process that stands still: SIGSTOP, waited for until it holds."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eventually import eventually


@contextmanager
def paused(pid: int) -> Iterator[None]:
    """Nothing of ``pid`` runs within the block. The signal alone is not enough: it takes effect later."""
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
