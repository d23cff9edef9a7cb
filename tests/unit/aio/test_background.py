"""The work of a group member between the calls of a consumer."""

from __future__ import annotations

import asyncio
import math

import pytest
import uvloop

from kafkacore.aio import _greenlets
from kafkacore.aio._background import BackgroundWork
from kafkacore.aio._calls import EngineCalls
from kafkacore.testing import VirtualClock


class Client:
    """A client that no call wakes."""

    waits = 0

    def wakeup(self) -> None: ...


class Membership:
    """A membership that notes when its work is done."""

    def __init__(self) -> None:
        self.turns: list[str] = []
        self.is_held = False
        self.next_ms = math.inf
        self.wake_background = None
        self.has_worked = asyncio.Event()

    def background_turn(self, now_ms: float) -> float:
        return self._turn("background")

    def held_turn(self, now_ms: float) -> float:
        return self._turn("held")

    def _turn(self, kind: str) -> float:
        self.turns.append(kind)
        self.has_worked.set()
        next_ms, self.next_ms = self.next_ms, math.inf
        return next_ms

    async def worked(self) -> None:
        await self.has_worked.wait()
        self.has_worked.clear()


class Work:
    def __init__(self) -> None:
        clock = VirtualClock()
        self.membership = Membership()
        self.calls = EngineCalls(Client(), Client(), clock)
        self.background = BackgroundWork(self.membership, self.calls, clock, asyncio.get_running_loop())


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request):
    def run(main):
        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(main)

    return run


async def some_turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_work_is_done_when_the_membership_wakes_it(run):
    async def main():
        work = Work()
        await some_turns()
        assert work.membership.turns == []
        work.membership.wake_background()
        await work.membership.worked()
        work.membership.is_held = True
        work.membership.wake_background()
        await work.membership.worked()
        await some_turns()
        assert work.membership.turns == ["background", "held"]

    run(main())


def test_work_is_repeated_after_the_time_that_it_returns(run):
    async def main():
        work = Work()
        work.membership.next_ms = 1.0
        work.background.wake()
        await work.membership.worked()
        await work.membership.worked()
        assert work.membership.turns == ["background"] * 2

    run(main())


def test_an_earlier_wake_replaces_a_later_one(run):
    async def main():
        work = Work()
        work.background._schedule(3_600_000)
        work.background.wake()
        work.background._schedule(3_600_000)
        await work.membership.worked()

    run(main())


def test_work_waits_for_the_end_of_a_call(run):
    async def main():
        work = Work()
        may_end = asyncio.Event()

        def busy():
            work.background.wake()
            _greenlets.wait(some_turns())
            assert work.membership.turns == []
            _greenlets.wait(may_end.wait())

        task = asyncio.create_task(work.calls.call(busy))
        await some_turns()
        may_end.set()
        await task
        await work.membership.worked()
        assert work.membership.turns == ["background"]

    run(main())


def test_closed_background_does_nothing(run):
    async def main():
        work = Work()
        work.background.wake()
        work.background.close()
        work.background.wake()
        await some_turns()
        assert work.membership.turns == []

    run(main())
