"""The order in which tasks use the engine of a consumer."""

from __future__ import annotations

import asyncio

import pytest

from kafkacore.aio import _greenlets
from kafkacore.aio._calls import EngineCalls
from kafkacore.consumer.timer import Timer
from kafkacore.errors import IllegalStateError, WakeupError
from kafkacore.testing import VirtualClock

FOREVER = float("inf")


class Engine:
    """A client whose polls wait for records, and the calls that use it."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.waits = 0
        self.calls = EngineCalls(self, self, self.clock)
        self.log: list[str] = []
        self.records: list[str] = []
        self._wakeup = False
        self._waiter: asyncio.Future[None] | None = None

    # ---- The client ----------------------------------------------------------------------------------------
    def wakeup(self) -> None:
        self._wakeup = True
        self._end_wait()

    def cancel_wakeup(self) -> None:
        self._wakeup = False

    def begin_close(self) -> None:
        self.wakeup()

    def cancel_close(self) -> None:
        self._wakeup = False

    def add(self, record: str) -> None:
        self.records.append(record)
        self._end_wait()

    def _end_wait(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # ---- The engine ----------------------------------------------------------------------------------------
    def attempt(self, timer: Timer) -> str | None:
        """Wait for a record, as the engine's poll does."""
        while True:
            if self._wakeup:
                self._wakeup = False
                raise WakeupError
            if self.records:
                return self.records.pop(0)
            if timer.expired:
                return None
            assert self._waiter is None, "two calls use the engine at the same time"
            self.waits += 1
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                _greenlets.wait(self._waiter)
            finally:
                self._waiter = None

    async def poll(self, timeout_ms: float = FOREVER, is_restricted: bool = False) -> str | None:
        return await self.calls.poll(Timer(self.clock, timeout_ms), is_restricted, self.attempt)

    async def begin_poll(self) -> asyncio.Task[str | None]:
        task = asyncio.create_task(self.poll())
        while self._waiter is None:
            await asyncio.sleep(0)
        return task

    def work(self, name: str) -> str:
        """Use the engine for some turns of the event loop."""
        self.log.append(f"{name} began")
        for _ in range(3):
            _greenlets.wait(asyncio.sleep(0))
        self.log.append(f"{name} ended")
        return name


def test_calls_run_one_after_another_in_their_order():
    async def main():
        engine = Engine()
        names = [f"call {number}" for number in range(4)]
        assert await asyncio.gather(*(engine.calls.call(engine.work, name) for name in names)) == names
        assert engine.log == [f"{name} {step}" for name in names for step in ("began", "ended")]

    asyncio.run(main())


def test_calls_go_before_a_waiting_poll():
    async def main():
        engine = Engine()
        poll = await engine.begin_poll()
        # The second call begins when the first one ends, and must not wait for a record either.
        assert await engine.calls.call(engine.work, "a") == "a"
        assert await engine.calls.call(engine.work, "b") == "b"
        assert not poll.done()
        engine.add("record")
        assert await poll == "record"

    asyncio.run(main())


def test_polls_get_the_records_in_their_order():
    async def main():
        engine = Engine()
        first = await engine.begin_poll()
        second = asyncio.create_task(engine.poll())
        await asyncio.sleep(0)
        engine.add("a")
        engine.add("b")
        assert (await first, await second) == ("a", "b")

    asyncio.run(main())


def test_poll_without_time_does_not_wait_for_another_poll():
    async def main():
        engine = Engine()
        waiting = await engine.begin_poll()
        assert await engine.poll(0) is None
        assert not waiting.done()
        engine.add("record")
        assert await waiting == "record"

    asyncio.run(main())


def test_restricted_poll_gets_a_turn_while_another_waits():
    async def main():
        engine = Engine()
        waiting = await engine.begin_poll()
        restricted = asyncio.create_task(engine.poll(is_restricted=True))
        while engine.waits < 2:
            await asyncio.sleep(0)
        assert engine.calls._is_restricted
        # Its turn ends after a while, and the first poll continues.
        engine.clock.advance(1000)
        engine.wakeup()
        engine.cancel_wakeup()
        while engine.calls._is_restricted:
            await asyncio.sleep(0)
        engine.add("a")
        engine.add("b")
        assert {await waiting, await restricted} == {"a", "b"}

    asyncio.run(main())


def test_wakeup_ends_the_poll_or_else_the_next_one():
    async def main():
        engine = Engine()
        waiting = await engine.begin_poll()
        engine.calls.wakeup()
        with pytest.raises(WakeupError):
            await waiting
        engine.calls.wakeup()
        with pytest.raises(WakeupError):
            await engine.poll(0)
        assert await engine.poll(0) is None

    asyncio.run(main())


def test_wakeup_that_comes_with_a_record_is_kept_for_the_next_poll():
    async def main():
        engine = Engine()
        engine.records.append("record")
        assert await engine.calls.call(lambda: engine.calls._client.records) == ["record"]
        engine._wakeup, engine.calls._was_woken = False, True
        assert await engine.poll() == "record"
        engine._wakeup = True
        with pytest.raises(WakeupError):
            await engine.poll(0)

    asyncio.run(main())


def test_polls_that_never_wait_let_other_tasks_run():
    async def main():
        engine = Engine()
        engine.records = ["record"] * 100
        turns = 0

        async def other():
            nonlocal turns
            while engine.records:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        for _ in range(100):
            await engine.poll()
        await task
        assert turns >= 99

    asyncio.run(main())


# ---- Listeners and interceptors ----------------------------------------------------------------------------
def listening(engine: Engine, listener, then=lambda: "done"):
    """Return a function of the engine that calls a listener."""

    def function(timer: Timer | None = None):
        engine.calls.await_listener(listener())
        return then()

    return function


def test_other_calls_run_while_a_listener_runs():
    async def main():
        engine = Engine()

        async def listener():
            assert await engine.calls.call(engine.work, "commit") == "commit"
            assert await asyncio.create_task(engine.calls.call(engine.work, "other task")) == "other task"

        assert await engine.calls.call(listening(engine, listener)) == "done"
        assert engine.log[-1] == "other task ended"

    asyncio.run(main())


def test_engine_continues_after_the_calls_that_began_during_a_listener():
    async def main():
        engine = Engine()
        tasks = []

        async def listener():
            tasks.append(asyncio.create_task(engine.calls.call(engine.work, "other")))
            await asyncio.sleep(0)

        await engine.calls.call(listening(engine, listener, lambda: engine.log.append("done")))
        await tasks[0]
        assert engine.log == ["other began", "other ended", "done"]

    asyncio.run(main())


def test_listener_must_not_poll():
    async def main():
        engine = Engine()

        async def listener():
            with pytest.raises(IllegalStateError, match="listener"):
                await engine.poll()
            with pytest.raises(IllegalStateError, match="listener"):
                await asyncio.create_task(engine.poll())

        assert await engine.calls.call(listening(engine, listener)) == "done"
        assert await engine.poll(0) is None

    asyncio.run(main())


def test_task_of_a_listener_may_poll_after_the_listener():
    async def main():
        engine = Engine()
        may_poll, tasks = asyncio.Event(), []

        async def poll():
            await may_poll.wait()
            return await engine.poll()

        async def listener():
            tasks.append(asyncio.create_task(poll()))

        await engine.calls.call(listening(engine, listener))
        may_poll.set()
        engine.records.append("record")
        assert await tasks[0] == "record"

    asyncio.run(main())


def test_interceptor_must_not_call_the_consumer():
    async def main():
        engine = Engine()

        async def interceptor():
            for call in (engine.poll, lambda: engine.calls.call(engine.work, "commit")):
                with pytest.raises(IllegalStateError, match="interceptor"):
                    await call()
            return "records"

        assert await engine.calls.call(lambda: engine.calls.await_interceptor(interceptor())) == "records"
        assert await engine.calls.call(engine.work, "commit") == "commit"

    asyncio.run(main())


def test_exception_of_a_listener_is_raised_in_the_engine():
    async def main():
        engine = Engine()

        async def listener():
            raise ValueError("mine")

        with pytest.raises(ValueError, match="mine"):
            await engine.calls.call(listening(engine, listener))
        assert await engine.calls.call(engine.work, "a") == "a"

    asyncio.run(main())


def test_cancelled_call_lets_its_listener_finish():
    async def main():
        engine = Engine()
        may_end, log = asyncio.Event(), []

        async def listener():
            log.append("began")
            await may_end.wait()
            log.append("ended")

        task = asyncio.create_task(
            engine.calls.call(listening(engine, listener, lambda: log.append("after")))
        )
        while not log:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert log == ["began", "ended", "after"]
        assert await engine.calls.call(engine.work, "a") == "a"

    asyncio.run(main())


def test_cancellation_during_a_listener_is_of_its_task_only():
    async def main():
        engine = Engine()
        began, may_end = asyncio.Event(), asyncio.Event()

        async def listener():
            began.set()
            await may_end.wait()
            raise ValueError("mine")

        task = asyncio.create_task(engine.calls.call(listening(engine, listener)))
        await began.wait()
        task.cancel()
        await asyncio.sleep(0)
        assert await engine.calls.call(engine.work, "other") == "other"
        may_end.set()
        with pytest.raises(asyncio.CancelledError) as raised:
            await task
        assert isinstance(raised.value.__context__, ValueError)
        assert engine.calls._deferred == {}

    asyncio.run(main())


def test_cancellation_during_a_listener_undoes_the_poll():
    async def main():
        engine = Engine()
        may_end, log = asyncio.Event(), []

        async def listener():
            log.append("began")
            await may_end.wait()

        def attempt(timer: Timer) -> str:
            engine.calls.await_listener(listener())
            record = engine.records.pop(0)
            engine.calls.raise_deferred(lambda: engine.records.insert(0, record))
            return record

        engine.records.append("record")
        task = asyncio.create_task(engine.calls.poll(Timer(engine.clock, FOREVER), False, attempt))
        while not log:
            await asyncio.sleep(0)
        task.cancel()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await engine.poll() == "record"

    asyncio.run(main())


# ---- Cancellation and closing ------------------------------------------------------------------------------
@pytest.mark.parametrize("turns", range(12))
def test_cancelled_calls_and_polls_leave_the_engine_usable(turns):
    async def main():
        engine = Engine()
        tasks = [
            asyncio.create_task(engine.poll()),
            asyncio.create_task(engine.calls.call(engine.work, "a")),
            asyncio.create_task(engine.poll(is_restricted=True)),
            asyncio.create_task(engine.calls.call(engine.work, "b")),
        ]
        for _ in range(turns):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert await engine.calls.call(engine.work, "c") == "c"
        engine.add("record")
        assert await engine.poll() == "record"
        assert not engine.calls.is_busy
        assert engine.calls._waiting == []
        assert engine.calls._waiting_calls == 0

    asyncio.run(main())


def test_close_ends_the_running_poll():
    async def main():
        engine = Engine()
        poll = await engine.begin_poll()
        await engine.calls.close(Timer(engine.clock, 1000), lambda: engine.log.append("closed"))
        assert engine.log == ["closed"]
        poll.cancel()
        with pytest.raises(asyncio.CancelledError):
            await poll

    asyncio.run(main())


def test_close_raises_if_a_call_does_not_end():
    async def main():
        engine = Engine()
        stuck = asyncio.create_task(engine.calls.call(lambda: _greenlets.wait(asyncio.Event().wait())))
        await asyncio.sleep(0)
        with pytest.raises(IllegalStateError, match="has not ended within 1 ms"):
            await engine.calls.close(Timer(engine.clock, 1), lambda: None)
        stuck.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stuck

    asyncio.run(main())
