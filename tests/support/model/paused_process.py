"""A process that stands still: SIGSTOP, waited for until it holds."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kafkacore.clock import SYSTEM_CLOCK

LIMIT_MS = 10_000.0


@contextmanager
def paused(pid: int) -> Iterator[None]:
    """Nothing of ``pid`` runs within the block. The signal alone is not enough: it takes effect later."""
    os.kill(pid, signal.SIGSTOP)
    try:
        deadline_ms = SYSTEM_CLOCK.monotonic_ms() + LIMIT_MS
        while not _all_threads_stopped(pid):
            assert SYSTEM_CLOCK.monotonic_ms() < deadline_ms
            SYSTEM_CLOCK.sleep_ms(1)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _all_threads_stopped(pid: int) -> bool:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    states = {(task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks}
    return states == {"T"}
