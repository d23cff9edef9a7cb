"""The single way to wait for another thread, process or connection: poll a condition."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

T = TypeVar("T")

#: Factor for every time limit, including pytest's own: ``KAFKACORE_TEST_BUDGET=3`` triples them.
SCALE: Final = float(os.environ.get("KAFKACORE_TEST_BUDGET", "1"))
#: Seconds until a wait fails; much longer than anything takes on a busy machine.
BUDGET_S: Final = 60.0 * SCALE
BUDGET_MS: Final = 1000 * BUDGET_S
#: Session timeout of members that stay in their group for a whole test. A broker accepts at most 30 minutes.
LONG_SESSION_MS: Final = int(min(10 * BUDGET_MS, 1_800_000))
#: The brokers' maximum, for transactions that must not be aborted while a test looks at them.
LONG_TRANSACTION_MS: Final = 900_000


class Child(Protocol):
    """A child process, such as :class:`subprocess.Popen`."""

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
        Value to show in the failure message, or a function that returns it.
    step:
        Called between two checks: a pause, or a call that makes progress, such as a selector's poll.
    child:
        The process that fulfils the condition. If it exits before, the test fails immediately.
    budgets:
        Number of budgets the wait may take; more than one only for programs that start a JVM or a cluster.
    """
    deadline_s = time.monotonic() + budgets * BUDGET_S
    while True:
        # Check the process first, so that a condition fulfilled just before it exits counts.
        has_ended = child is not None and child.poll() is not None
        is_late = time.monotonic() >= deadline_s
        if found := condition():
            return found
        if has_ended or is_late:
            what = f"{child.args} ended with status {child.poll()}" if has_ended and child else "not in time"
            raise AssertionError(f"{what}: {shown() if callable(shown) else shown}")
        step()
