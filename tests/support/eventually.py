"""The one way to wait for what another thread, process or connection does: look until it is so."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

#: Seconds until a test gives up: much longer than anything takes on a busy machine.
#: ``KAFKACORE_TEST_BUDGET=3`` makes it three times as long.
BUDGET_S: Final = 60.0 * float(os.environ.get("KAFKACORE_TEST_BUDGET", "1"))


def _pause() -> None:
    time.sleep(0.005)


def eventually(condition: Callable[[], T], shown: object = "", *, step: Callable[[], object] = _pause) -> T:
    """Return the first true result of ``condition``.

    Parameters
    ----------
    shown:
        What the failure shows; a function is called for it.
    step:
        Called between two looks: a pause, or what brings the condition about, such as a selector's poll.
    """
    deadline_s = time.monotonic() + BUDGET_S
    while not (found := condition()):
        assert time.monotonic() < deadline_s, shown() if callable(shown) else shown or "it did not come to be"
        step()
    return found
