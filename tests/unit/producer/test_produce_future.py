"""The outcomes of records as futures of asyncio."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import pickle
import threading

import pytest
from eventually import BUDGET_S

from kafkacore.errors import NotLeaderForPartitionError
from kafkacore.producer._future import FutureRecordMetadata, ProduceResult
from kafkacore.producer._produce_future import LoopFutures, ProduceFuture
from kafkacore.structs import TopicPartition
from kafkacore.testing import VirtualClock

TP = TopicPartition("t", 3)


def new_result() -> ProduceResult:
    return ProduceResult(TP, VirtualClock())


def future_of(result: ProduceResult, index: int = 0) -> ProduceFuture:
    return LoopFutures(asyncio.get_running_loop()).of_record(FutureRecordMetadata(result, index))


def test_an_open_future_knows_nothing():
    async def main():
        future = future_of(new_result())
        assert asyncio.isfuture(future)
        assert (future.done(), future.cancelled()) == (False, False)
        assert future.get_loop() is asyncio.get_running_loop()
        for method in (future.result, future.exception):
            with pytest.raises(asyncio.InvalidStateError):
                method()

    asyncio.run(main())


def test_a_task_awaits_the_outcome():
    async def main():
        result = new_result()
        futures = [future_of(result, index) for index in range(3)]
        tasks = [asyncio.ensure_future(future) for future in futures]
        assert tasks == futures
        asyncio.get_running_loop().call_soon(result.complete, 40)
        assert [each.offset for each in await asyncio.gather(*futures)] == [40, 41, 42]
        assert (await futures[1]).offset == 41
        assert futures[1].exception() is None

    asyncio.run(main())


def test_an_error_is_raised_by_the_await():
    async def main():
        result = new_result()
        future = future_of(result)
        asyncio.get_running_loop().call_soon(lambda: result.complete(error=NotLeaderForPartitionError()))
        for _ in range(2):
            with pytest.raises(NotLeaderForPartitionError):
                await future
        assert isinstance(future.exception(), NotLeaderForPartitionError)
        (raised,) = await asyncio.gather(future, return_exceptions=True)
        assert raised is future.exception()

    asyncio.run(main())


def test_futures_of_a_response_share_one_callback_of_the_loop():
    calls = []

    class CountingLoop(asyncio.SelectorEventLoop):
        def call_soon(self, callback, *args, context=None):
            calls.append(callback)
            return super().call_soon(callback, *args, context=context)

    async def main():
        result, futures = new_result(), LoopFutures(asyncio.get_running_loop())
        found = []
        for index in range(30):
            future = futures.of_record(FutureRecordMetadata(result, index))
            future.add_done_callback(found.append)
        calls.clear()
        result.complete(0)
        assert len(calls) == 1
        assert not found
        await asyncio.sleep(0)
        assert [future.result().offset for future in found] == list(range(30))

    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        runner.run(main())


def test_many_callbacks_let_others_run_in_between():
    async def main():
        result, futures = new_result(), LoopFutures(asyncio.get_running_loop())
        order = []
        for index in range(100):
            future = futures.of_record(FutureRecordMetadata(result, index))
            future.add_done_callback(lambda future: order.append("callback"))
        result.complete(0)
        asyncio.get_running_loop().call_soon(order.append, "other")
        while len(order) < 101:
            await asyncio.sleep(0)
        assert order.index("other") < 50

    asyncio.run(main())


def test_callbacks_run_in_their_context_and_can_be_removed():
    async def main():
        variable = contextvars.ContextVar("variable", default=0)
        result, seen = new_result(), []
        future = future_of(result)

        def first(done):
            seen.append(("first", done is future, variable.get()))

        def second(done):
            seen.append(("second", done is future, variable.get()))

        variable.set(1)
        future.add_done_callback(first)
        context = contextvars.copy_context()
        context.run(variable.set, 2)
        future.add_done_callback(second, context=context)
        future.add_done_callback(first)
        variable.set(3)
        assert future.remove_done_callback(first) == 2
        assert future.remove_done_callback(first) == 0
        future.add_done_callback(first)
        result.complete(0)
        await asyncio.sleep(0)
        assert seen == [("second", True, 2), ("first", True, 3)]
        future.add_done_callback(second)
        assert len(seen) == 2
        await asyncio.sleep(0)
        assert seen[2:] == [("second", True, 3)]

    asyncio.run(main())


def test_an_exception_of_a_callback_is_reported_to_the_loop():
    async def main():
        result, reported = new_result(), []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
        future = future_of(result)
        future.add_done_callback(lambda future: 1 / 0)
        future.add_done_callback(reported.append)
        result.complete(0)
        await asyncio.sleep(0)
        assert isinstance(reported[0]["exception"], ZeroDivisionError)
        assert reported[1] is future

    asyncio.run(main())


def test_a_cancelled_task_cancels_its_future_but_not_the_record():
    async def main():
        result = new_result()
        future = future_of(result)

        async def wait():
            await future

        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel("why")
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (future.cancelled(), future.done(), future.cancel()) == (True, True, False)
        result.complete(0)
        with pytest.raises(asyncio.CancelledError, match="why"):
            future.result()
        with pytest.raises(asyncio.CancelledError):
            await future

    asyncio.run(main())


def test_shield_and_wait_accept_the_future():
    async def main():
        result = new_result()
        future, other = future_of(result), future_of(result, 1)
        shielded = asyncio.shield(future)
        shielded.cancel()
        assert not future.cancelled()
        done, pending = await asyncio.wait([future, other], timeout=0)
        assert (done, pending) == (set(), {future, other})
        result.complete(5)
        done, pending = await asyncio.wait([future, other])
        assert (done, pending) == ({future, other}, set())
        assert (await asyncio.shield(other)).offset == 6
        assert {(await each).offset for each in asyncio.as_completed([future, other])} == {5, 6}
        assert asyncio.wrap_future(future) is future

    asyncio.run(main())


def test_a_future_follows_its_batch_after_a_split():
    async def main():
        result, halves = new_result(), [new_result(), new_result()]
        futures = [future_of(result, index) for index in range(4)]
        waits = asyncio.gather(*futures)
        result.divide([(0, halves[0]), (2, halves[1])])
        halves[1].complete(7)
        assert [future.done() for future in futures] == [False, False, True, True]
        halves[0].complete(3)
        assert [each.offset for each in await waits] == [3, 4, 7, 8]

    asyncio.run(main())


def test_a_synchronous_future_can_be_awaited_from_several_tasks():
    async def main():
        result = new_result()
        record = FutureRecordMetadata(result, 1)

        async def wait():
            return await record

        tasks = [asyncio.create_task(wait()) for _ in range(3)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        await asyncio.gather(tasks[0], return_exceptions=True)
        thread = threading.Thread(target=result.complete, args=(9,))
        thread.start()
        assert [each.offset for each in await asyncio.gather(*tasks[1:], record)] == [10, 10, 10]
        thread.join(BUDGET_S)
        assert (await record).offset == 10

    asyncio.run(main())


def test_an_outcome_after_the_end_of_the_loop_is_dropped():
    result = new_result()

    async def main():
        future = future_of(result)
        future.add_done_callback(lambda future: pytest.fail("called"))
        return future

    future = asyncio.run(main())
    result.complete(1)
    assert future.result().offset == 1


def test_a_future_is_made_by_a_producer_and_not_copied():
    with pytest.raises(TypeError, match="AIOKafkaProducer"):
        ProduceFuture()

    async def main():
        future = future_of(new_result())
        for copied in (copy.copy, pickle.dumps):
            with pytest.raises(TypeError):
                copied(future)
        assert "pending" in repr(future)
        future.cancel()
        assert "cancelled" in repr(future)
        assert str(ProduceFuture[int]).endswith("ProduceFuture[int]")

    asyncio.run(main())
