"""The clock whose waits let the other tasks of an event loop run."""

from __future__ import annotations

import asyncio
from threading import Condition

import pytest

from kafkacore.aio import _greenlets
from kafkacore.aio._loop_clock import LoopClock, WouldBlockError


def test_a_wait_ends_when_a_check_finds_the_predicate_true():
    async def main():
        clock, condition, facts = LoopClock(asyncio.get_running_loop()), Condition(), set()

        def code():
            with condition:
                return clock.wait_for(condition, lambda: "known" in facts, None)

        task = asyncio.create_task(_greenlets.run(code))
        await asyncio.sleep(0)
        clock.check()
        for _ in range(3):
            await asyncio.sleep(0)
        assert not task.done()
        # The waiting code has released the condition.
        with condition:
            condition.notify_all()
        facts.add("known")
        clock.check()
        assert await task is True
        assert not condition._is_owned()

    asyncio.run(main())


def test_a_wait_without_time_returns_at_once():
    async def main():
        clock, condition = LoopClock(asyncio.get_running_loop()), Condition()
        with condition:
            assert clock.wait_for(condition, lambda: True, None)
            assert not clock.wait_for(condition, lambda: False, 0.0)
        clock.sleep_ms(0.0)

    asyncio.run(main())


def test_a_wait_ends_after_its_timeout():
    async def main():
        clock, condition = LoopClock(asyncio.get_running_loop()), Condition()

        def code():
            with condition:
                return clock.wait_for(condition, lambda: False, 1.0)

        assert await _greenlets.run(code) is False
        assert not clock._waits
        await _greenlets.run(clock.sleep_ms, 1.0)

    asyncio.run(main())


def test_code_that_cannot_be_suspended_is_refused():
    async def main():
        clock, condition = LoopClock(asyncio.get_running_loop()), Condition()
        with condition, pytest.raises(WouldBlockError, match="await"):
            clock.wait_for(condition, lambda: False, None)
        with pytest.raises(WouldBlockError):
            clock.sleep_ms(1.0)

    asyncio.run(main())


def test_a_cancelled_wait_lets_the_others_look_again():
    """The code may give up something in its ``finally`` for which another wait waits."""

    async def main():
        clock, condition, free = LoopClock(asyncio.get_running_loop()), Condition(), []

        def first():
            with condition:
                try:
                    clock.wait_for(condition, lambda: False, None)
                finally:
                    assert condition._is_owned()
                    free.append("given up")

        def second():
            with condition:
                return clock.wait_for(condition, lambda: bool(free), None)

        tasks = [asyncio.create_task(_greenlets.run(code)) for code in (first, second)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        assert await tasks[1] is True
        assert tasks[0].cancelled()
        assert not condition._is_owned()

    asyncio.run(main())
