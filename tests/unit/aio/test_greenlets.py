"""The functions that run synchronous code in a task without blocking the event loop."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import greenlet
import pytest

from kafkacore.aio import _greenlets
from kafkacore.aio._greenlets import MAX_IDLE, begin, run, wait

NAME: ContextVar[str] = ContextVar("NAME")
VARIABLE: ContextVar[str] = ContextVar("VARIABLE", default="none")


@pytest.fixture(autouse=True)
def no_idle_calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(_greenlets, "_idle_calls", _greenlets._IdleCalls())
    return


def own_greenlet() -> greenlet.greenlet:
    return greenlet.getcurrent()


async def waiting(result: object) -> object:
    await asyncio.sleep(0)
    return result


async def begun(function: Callable[[], None]) -> None:
    rest = begin(function)
    if rest is not None:
        await rest


def test_code_waits_for_awaitables_while_other_tasks_run():
    async def main():
        order = []
        first, second = asyncio.Event(), asyncio.Event()

        def code(text, *, end):
            assert _greenlets.can_wait()
            order.append("began")
            first.set()
            _greenlets.wait(second.wait())
            order.append("continued")
            return text + end

        async def other():
            await first.wait()
            order.append("other")
            second.set()

        result, _ = await asyncio.gather(_greenlets.run(code, "a", end="b"), other())
        assert result == "ab"
        assert order == ["began", "other", "continued"]
        assert not _greenlets.can_wait()

    asyncio.run(main())


def test_an_exception_of_the_code_is_raised_by_run():
    def code():
        _greenlets.wait(asyncio.sleep(0))
        raise KeyError("missing")

    with pytest.raises(KeyError, match="missing"):
        asyncio.run(_greenlets.run(code))


def test_an_exception_of_the_awaitable_is_raised_in_the_code():
    async def fail():
        raise ValueError("no")

    def code():
        with pytest.raises(ValueError, match="no"):
            _greenlets.wait(fail())
        return "handled"

    assert asyncio.run(_greenlets.run(code)) == "handled"


def test_a_cancellation_is_raised_in_the_code():
    async def main():
        waits, seen = asyncio.Event(), []

        def code():
            waits.set()
            try:
                _greenlets.wait(asyncio.Event().wait())
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise

        task = asyncio.create_task(_greenlets.run(code))
        await waits.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert seen == ["cancelled"]

    asyncio.run(main())


def test_the_code_shares_the_context_of_the_task():
    async def main():
        NAME.set("outer")

        def code():
            assert NAME.get() == "outer"
            _greenlets.wait(asyncio.sleep(0))
            NAME.set("inner")

        await _greenlets.run(code)
        return NAME.get()

    assert asyncio.run(main()) == "inner"


def test_code_that_began_elsewhere_is_finished_by_a_task():
    async def main():
        order, event = [], asyncio.Event()

        def code():
            order.append("began")
            _greenlets.wait(event.wait())
            order.append("ended")

        rest = _greenlets.begin(code)
        assert order == ["began"]
        task = asyncio.create_task(rest)
        event.set()
        await task
        assert order == ["began", "ended"]
        assert _greenlets.begin(lambda: order.append("at once")) is None
        with pytest.raises(ZeroDivisionError):
            _greenlets.begin(lambda: 1 / 0)

    asyncio.run(main())


def test_only_code_of_run_may_wait():
    with pytest.raises(RuntimeError, match=r"outside of run\(\)"):
        _greenlets.wait(None)


def test_greenlet_is_used_again_for_calls_of_both_kinds() -> None:
    async def main() -> None:
        first = await run(own_greenlet)
        found: list[greenlet.greenlet] = []
        assert begin(lambda: found.append(own_greenlet())) is None
        assert await run(own_greenlet) is first is found[0]
        assert not first.dead

    asyncio.run(main())


def test_calls_at_the_same_time_have_a_greenlet_each() -> None:
    def call(number: int) -> tuple[int, object, greenlet.greenlet]:
        mine = own_greenlet()
        result = wait(waiting(number))
        assert own_greenlet() is mine
        return number, result, mine

    async def main() -> None:
        found = await asyncio.gather(*(run(call, number) for number in range(2 * MAX_IDLE)))
        assert [(number, result) for number, result, _ in found] == [(n, n) for n in range(2 * MAX_IDLE)]
        assert len({id(each) for *_, each in found}) == 2 * MAX_IDLE
        assert len(_greenlets._idle_calls._calls) == MAX_IDLE

    asyncio.run(main())


@pytest.mark.parametrize("waits", [False, True])
def test_call_after_an_exception_is_not_affected(waits: bool) -> None:
    def fails() -> None:
        if waits:
            wait(waiting(None))
        raise ValueError("mine")

    async def main() -> None:
        for _ in range(3):
            with pytest.raises(ValueError, match="mine"):
                await run(fails)
            with pytest.raises(ValueError, match="mine"):
                await begun(fails)
            assert await run(waiting_call) == 5

    def waiting_call() -> object:
        return wait(waiting(5))

    asyncio.run(main())


def test_cancelled_call_ends_and_the_next_one_runs() -> None:
    seen: list[BaseException] = []

    def call() -> None:
        try:
            wait(asyncio.Event().wait())
        except asyncio.CancelledError as error:
            seen.append(error)
            raise

    async def main() -> None:
        task = asyncio.create_task(run(call))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(seen) == 1
        assert await run(lambda: wait(waiting(1))) == 1

    asyncio.run(main())


def test_call_sees_the_variables_of_its_task_only() -> None:
    def call(value: str) -> tuple[str, str]:
        before = VARIABLE.get()
        VARIABLE.set(f"changed by {value}")
        wait(waiting(None))
        return before, VARIABLE.get()

    async def task(value: str) -> None:
        VARIABLE.set(value)
        assert await run(call, value) == (value, f"changed by {value}")
        assert VARIABLE.get() == f"changed by {value}"

    async def main() -> None:
        await asyncio.gather(*map(task, "abc"))
        found: list[str] = []
        assert begin(lambda: found.append(VARIABLE.get())) is None
        assert found == ["none"]

    asyncio.run(main())


def test_idle_greenlet_keeps_nothing_of_its_caller_alive() -> None:
    class Thing:
        def method(self, argument: object) -> object:
            wait(waiting(None))
            VARIABLE.set(argument)  # type: ignore[arg-type]
            return argument

    async def main() -> list[weakref.ref[Any]]:
        things = [Thing() for _ in range(3)]
        await asyncio.create_task(run(things[0].method, things[1]))
        assert begin(lambda: things[2] and None) is None
        return [weakref.ref(each) for each in things]

    # The last task and its context are gone with the loop.
    refs = asyncio.run(main())
    gc.collect()
    assert len(_greenlets._idle_calls._calls) == 1
    assert [ref() for ref in refs] == [None, None, None]


def test_greenlets_of_a_thread_are_its_own() -> None:
    async def main() -> greenlet.greenlet:
        return await run(own_greenlet)

    mine = asyncio.run(main())

    async def with_thread() -> greenlet.greenlet:
        return await asyncio.to_thread(asyncio.run, main())

    assert asyncio.run(with_thread()) is not mine
    assert asyncio.run(main()) is mine
