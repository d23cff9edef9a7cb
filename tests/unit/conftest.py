"""Fail unit tests that read the machine's clock: they use a VirtualClock, or a BlockingClock for threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafkacore.clock import Clock

#: Modules that test the clock itself.
MAY_READ = {"test_clock"}


def guarded(name: str, read_by: list[str]) -> Callable[..., Any]:
    """Return a version of the clock's method ``name`` that fails in the test thread.

    Threads of session fixtures in the same process may call it.
    """
    method = getattr(Clock, name)

    def refuse(clock: Clock, *arguments: Any) -> Any:
        if type(clock) is Clock and threading.current_thread() is threading.main_thread():
            read_by.append(name)
            raise AssertionError(f"Clock.{name}() in a unit test: pass VirtualClock() or BlockingClock()")
        return method(clock, *arguments)

    return refuse


@pytest.fixture(scope="module", autouse=True)
def no_real_clock(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that reads the machine's clock, directly or through an object's default clock."""
    read_by: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        if request.module.__name__.rpartition(".")[2] not in MAY_READ:
            for name in ("monotonic_ms", "wall_ms", "sleep_ms"):
                patch.setattr(Clock, name, guarded(name, read_by))
        yield
    assert not read_by, "a test of this module read the machine's clock and caught the error"
