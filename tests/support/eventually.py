"""The one way to wait for what another thread, process or connection does: look until it is so."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

T = TypeVar("T")

#: ``KAFKACORE_TEST_BUDGET=3`` makes every limit three times as long, pytest's own included.
SCALE: Final = float(os.environ.get("KAFKACORE_TEST_BUDGET", "1"))
#: Seconds until a test gives up: much longer than anything takes on a busy machine.
BUDGET_S: Final = 60.0 * SCALE
BUDGET_MS: Final = 1000 * BUDGET_S


class Child(Protocol):
    """A child process, as :class:`subprocess.Popen` has it."""

    args: Any

    def poll(self) -> int | None: ...


def _pause() -> None:
    time.sleep(0.005)


def eventually(
    condition: Callable[[], T],
    shown: object = "",
    *,
    step: Callable[[], object] = _pause,
    child: Child | None = None,
    budgets: int = 1,
) -> T:
    """Return the first true result of ``condition``.

    Parameters
    ----------
    shown:
        What the failure shows; a function is called for it.
    step:
        Called between two looks: a pause, or what brings the condition about, such as a selector's poll.
    child:
        The process that brings the condition about. If it ends before, the test fails at once.
    budgets:
        How many budgets the wait may take: more than one only for programs that start a JVM or a cluster.
    """
    deadline_s = time.monotonic() + budgets * BUDGET_S
    while True:
        # In this order, because what has come about at the last moment counts.
        has_ended = child is not None and child.poll() is not None
        is_late = time.monotonic() >= deadline_s
        if found := condition():
            return found
        if has_ended or is_late:
            what = f"{child.args} ended with status {child.poll()}" if has_ended and child else "not in time"
            raise AssertionError(f"{what}: {shown() if callable(shown) else shown}")
        step()
