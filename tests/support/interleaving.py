"""Run the code of another thread between any two steps of a function, without a second thread."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any


def at_each_step(
    function: Callable[..., Any], prepare: Callable[[], tuple[Callable[[], Any], Callable[[], object]]]
) -> Iterator[Any]:
    """Yield the result or exception of a call, once for each step at which another thread may interrupt it.

    A thread may lose the GIL before any bytecode of a Python function, so each bytecode is a step.

    Parameters
    ----------
    function:
        Python function that the call runs, directly or indirectly, and whose steps count.
    prepare:
        Function that returns the call, and what the other thread does meanwhile. It is called for each step.
    """
    step = 0
    while True:
        call, other = prepare()
        was_reached, outcome = _interrupted(function.__code__, step, call, other)
        if not was_reached:
            assert step > 0, f"the call does not run {function}"
            return
        yield outcome
        step += 1


def _interrupted(
    code: CodeType, step: int, call: Callable[[], Any], other: Callable[[], object]
) -> tuple[bool, Any]:
    steps = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal steps
        if frame.f_code is not code:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            steps += 1
            if steps == step + 1:
                other()
        return trace

    before = sys.gettrace()
    # Python 3.12 reports bytecodes only if a frame wants them when the trace function is set.
    sys._getframe().f_trace_opcodes = True
    sys.settrace(trace)
    try:
        outcome = call()
    except Exception as error:  # noqa: BLE001 - the caller looks at it
        outcome = error
    finally:
        sys.settrace(before)
    return steps > step, outcome
