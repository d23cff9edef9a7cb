"""The function that runs synchronous code in a task without blocking the event loop."""

import asyncio
from contextvars import ContextVar

import pytest

from kafkacore.aio import _greenlets

NAME: ContextVar[str] = ContextVar("NAME")


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
