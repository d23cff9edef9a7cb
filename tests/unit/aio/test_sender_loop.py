"""The callbacks of an event loop that take the place of the producer's network thread."""

from __future__ import annotations

import asyncio
import math
from types import SimpleNamespace

import pytest

from kafkacore.aio import _greenlets
from kafkacore.aio._loop_clock import LoopClock
from kafkacore.aio._sender_loop import SenderLoop
from kafkacore.client._in_flight_requests import InFlightRequests
from kafkacore.errors import KafkaConfigurationError
from kafkacore.network import Selector
from kafkacore.producer._sender_wakeup import SenderWakeup
from kafkacore.testing import VirtualClock

#: Wait for a deadline that no test reaches.
HOUR_MS = 3_600_000.0


class ScriptedRun:
    """A SenderRun whose turns poll the selector for the times in ``polls``, and then for ever."""

    def __init__(self, backend: str | None = None) -> None:
        self.selector = Selector(VirtualClock(), backend=backend)
        self.client = SimpleNamespace(
            selector=self.selector,
            event_wait=None,
            states=SimpleNamespace(resolver=None),
            in_flight=InFlightRequests(5),
        )
        self.sender = SimpleNamespace(direct=None, is_idle=False)
        self.accumulator = SimpleNamespace(
            sender_wakeup=SenderWakeup(lambda: None),
            records=SimpleNamespace(direct=self),
            is_forked=False,
            active={},
        )
        self.name = "scripted"
        self.polls: list[float] = []
        self.pause_ms = 0.0
        self.turns = 0
        self.closing = self.has_ended = False
        self.error: BaseException | None = None
        #: Event for which the next turn waits.
        self.event: asyncio.Event | None = None

    def has_more(self) -> bool:
        return not self.closing

    def turn(self) -> float:
        self.turns += 1
        if self.event is not None:
            event, self.event = self.event, None
            _greenlets.wait(event.wait())
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        pause_ms, self.pause_ms = self.pause_ms, 0.0
        if pause_ms == 0:
            self.accumulator.sender_wakeup.sender_runs()
            self.client.event_wait.poll(self.polls.pop(0) if self.polls else math.inf)
        return pause_ms

    def initiate_close(self) -> None:
        self.closing = True

    def force_close(self) -> None:
        self.closing = True

    def end(self) -> None:
        self.client.event_wait.close()
        self.selector.close_all()
        self.has_ended = True


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class ScriptedDirect:
    """A DirectSender that sends the waiting batch if ``is_able``."""

    def __init__(self) -> None:
        self.is_able = True
        self.calls = 0

    def send_waiting(self, now_ms: float, at_once: bool) -> int:
        self.calls += 1
        return 1 if self.is_able else -1


class WaitingQueue:
    """The queue of a partition with this number of waiting records."""

    def __init__(self, records: int) -> None:
        self.head = SimpleNamespace(record_count=records)


def started(script: ScriptedRun) -> SenderLoop:
    loop = asyncio.get_running_loop()
    sender_loop = SenderLoop(script, loop, LoopClock(loop))
    sender_loop.start()
    return sender_loop


def test_a_turn_runs_again_at_once_until_it_would_wait():
    async def main():
        script = ScriptedRun()
        script.polls = [0.0, 0.0]
        sender_loop = started(script)
        await settle()
        assert script.turns == 3
        sender_loop.initiate_close()
        await settle()
        assert (script.turns, script.has_ended, sender_loop.is_alive()) == (3, True, False)

    asyncio.run(main())


def test_wake_ups_of_one_iteration_cause_one_turn():
    async def main():
        script = ScriptedRun()
        sender_loop = started(script)
        await settle()
        for _ in range(3):
            script.accumulator.sender_wakeup.wake()
            sender_loop.wake()
        await settle()
        assert script.turns == 2
        sender_loop.initiate_close()
        await settle()

    asyncio.run(main())


def test_an_event_of_the_selector_causes_a_turn():
    async def main():
        script = ScriptedRun()
        sender_loop = started(script)
        await settle()
        turns = script.turns
        script.selector.wakeup()
        while script.turns == turns:
            await asyncio.sleep(0)
        sender_loop.initiate_close()
        await settle()

    asyncio.run(main())


def test_the_next_deadline_causes_a_turn():
    async def main():
        script = ScriptedRun()
        script.polls = [5000.0, 1.0]
        sender_loop = started(script)
        await settle()
        assert sender_loop._timer_at_s < math.inf
        # An earlier deadline replaces the timer; a later one keeps it.
        sender_loop.wake()
        while script.turns < 3:
            await asyncio.sleep(0)
        assert sender_loop._timer is None
        sender_loop.initiate_close()
        await settle()

    asyncio.run(main())


def test_a_failed_turn_is_followed_by_a_pause():
    async def main():
        script = ScriptedRun()
        script.pause_ms = 1.0
        sender_loop = started(script)
        await asyncio.sleep(0)
        assert sender_loop._is_paused
        sender_loop.wake()
        script.selector.wakeup()
        assert sender_loop._next_turn is None
        while script.turns < 2:
            await asyncio.sleep(0)
        assert not sender_loop._is_paused
        sender_loop.initiate_close()
        await settle()

    asyncio.run(main())


def test_an_interrupted_turn_is_repeated():
    class Interrupt(BaseException):
        pass

    async def main():
        script = ScriptedRun()
        sender_loop = started(script)
        await settle()
        script.error = Interrupt()
        with pytest.raises(Interrupt):
            sender_loop._turn()
        await settle()
        assert script.turns == 3
        sender_loop.initiate_close()
        await settle()

    asyncio.run(main())


def test_no_other_turn_runs_while_a_turn_waits():
    async def main():
        script = ScriptedRun()
        event = script.event = asyncio.Event()
        sender_loop = started(script)
        await settle()
        sender_loop.wake()
        script.selector.wakeup()
        await settle()
        assert script.turns == 1
        event.set()
        while script.turns < 2:
            await asyncio.sleep(0)
        sender_loop.initiate_close()
        await settle()
        assert script.has_ended

    asyncio.run(main())


def test_a_forced_close_cancels_a_turn_that_waits():
    async def main():
        script = ScriptedRun()
        script.event = asyncio.Event()
        sender_loop = started(script)
        await settle()
        sender_loop.force_close()
        await settle()
        assert script.has_ended

    asyncio.run(main())


def test_the_turns_end_without_the_loop_if_it_is_closed():
    script = ScriptedRun()

    async def main():
        sender_loop = started(script)
        await settle()
        return sender_loop

    sender_loop = asyncio.run(main())
    assert not script.has_ended
    sender_loop.initiate_close()
    assert script.has_ended


def test_a_forked_child_runs_no_turn():
    async def main():
        script = ScriptedRun()
        sender_loop = started(script)
        await settle()
        script.accumulator.is_forked = True
        sender_loop.wake()
        await settle()
        assert script.turns == 1
        script.accumulator.is_forked = False
        sender_loop.initiate_close()
        await settle()

    asyncio.run(main())


def test_a_selector_that_uses_poll_is_refused():
    async def main():
        loop = asyncio.get_running_loop()
        with pytest.raises(KafkaConfigurationError, match="epoll"):
            SenderLoop(ScriptedRun("poll"), loop, LoopClock(loop))

    asyncio.run(main())


def test_record_is_sent_without_a_turn_if_the_last_one_was_alone():
    async def main():
        script = ScriptedRun()
        script.polls = [HOUR_MS] * 10
        direct = script.sender.direct = ScriptedDirect()
        sender_loop = started(script)
        await settle()
        for records, calls in ((2, 0), (1, 0), (1, 1)):
            turns = script.turns
            script.accumulator.active = {WaitingQueue(records): None}
            sender_loop.wake()
            await settle()
            assert (direct.calls, script.turns - turns) == (calls, 1 - calls)
        direct.is_able = False
        sender_loop.wake()
        await settle()
        assert (direct.calls, script.turns - turns) == (2, 1)
        sender_loop.initiate_close()
        await settle()

    asyncio.run(main())


def test_no_turn_follows_a_response_after_which_nothing_is_to_be_done():
    async def main():
        script = ScriptedRun()
        script.polls = [HOUR_MS] * 10
        sender_loop = started(script)
        await settle()
        selector = sender_loop._selector
        for is_idle, turns in ((True, 1), (False, 2)):
            before = script.turns
            # One poll receives something.
            waits_ms = [-1.0, 5000.0]
            sender_loop._selector = SimpleNamespace(
                has_only_received=lambda: True, poll_events=lambda *_, waits_ms=waits_ms: waits_ms.pop(0)
            )
            script.sender.is_idle = is_idle
            sender_loop._turn()
            await settle()
            assert script.turns - before == turns
        sender_loop._selector = selector
        sender_loop.initiate_close()
        await settle()

    asyncio.run(main())
