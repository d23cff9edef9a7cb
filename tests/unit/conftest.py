"""No unit test reads the machine's clock: it passes a VirtualClock, or a BlockingClock where threads wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafkacore.clock import Clock

#: The clock's own tests.
MAY_READ = {"test_clock"}


def guarded(name: str, read_by: list[str]) -> Callable[..., Any]:
    """Return the method ``name`` of the machine's clock, refused to the thread of the tests.

    Threads that a session's fixtures have started in the same process may read it.
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
    """Fail a test that reads the machine's clock, also by an object that has it by default."""
    read_by: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        if request.module.__name__.rpartition(".")[2] not in MAY_READ:
            for name in ("monotonic_ms", "wall_ms", "sleep_ms"):
                patch.setattr(Clock, name, guarded(name, read_by))
        yield
    assert not read_by, "a test of this module reads the machine's clock, and the error was caught"
