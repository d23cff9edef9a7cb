"""The asynchronous producer on our broker, on the event loops of asyncio and uvloop."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import random
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
import uvloop
from eventually import BUDGET_S, eventually
from model.paused_process import paused
from model.topic_reader import await_markers, records_of, values_of

from kafkacore import KafkaProducer, TopicPartition
from kafkacore.aio import AIOKafkaProducer
from kafkacore.errors import (
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    ProducerFencedError,
)
from kafkacore.producer import ProducerInterceptor, ProducerRecord
from kafkacore.protocol import ApiKey
from kafkacore.testing import EmbeddedBroker, FaultProxy

Main = Coroutine[Any, Any, Any]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Main], Any]:
    """Return a function that runs a coroutine in a new event loop, with a generous limit."""

    def run(main: Main) -> Any:
        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(asyncio.wait_for(main, BUDGET_S))

    return run


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    """Start a broker that tests can pause."""
    with EmbeddedBroker() as made:
        yield made


def topic_of(request: pytest.FixtureRequest) -> str:
    """Return a topic name of this test."""
    return "aio-" + "".join(letter if letter.isalnum() else "-" for letter in request.node.name)


# ---- Sending -----------------------------------------------------------------------------------------------


def test_send_and_wait_returns_the_position_of_the_record(
    our_broker: EmbeddedBroker, run: Callable[[Main], Any], request: pytest.FixtureRequest
) -> None:
    topic = topic_of(request)

    async def main() -> None:
        async with AIOKafkaProducer(bootstrap_servers=our_broker.bootstrap_servers) as producer:
            first = await producer.send_and_wait(topic, b"first", timestamp_ms=7)
            future = await producer.send(topic, b"second", b"key", 0, headers=[("name", b"data")])
            assert not future.done()
            second = await future
            assert (first.topic, first.partition, first.offset, first.timestamp) == (topic, 0, 0, 7)
            assert second.offset == 1
            assert (future.done(), future.result(), future.exception()) == (True, second, None)
            assert await future is second
            assert await producer.partitions_for(topic) == {0}
            assert producer.metrics()["producer-metrics"]["record-send-total"] == 2

    run(main())
    (first, second) = records_of(our_broker.bootstrap_servers, [topic], 1)
    assert (first.value, second.value, second.key, second.headers) == (
        b"first", b"second", b"key", [("name", b"data")],
    )  # fmt: skip


def test_tasks_that_await_their_sends_share_requests(
    our_broker: EmbeddedBroker, run: Callable[[Main], Any], request: pytest.FixtureRequest
) -> None:
    topic = topic_of(request)

    async def main() -> None:
        async with AIOKafkaProducer(bootstrap_servers=our_broker.bootstrap_servers) as producer:
            await producer.send_and_wait(topic, b"known")
            requests = producer.metrics()["producer-metrics"]["request-total"]

            async def some(task: int) -> None:
                for number in range(20):
                    await producer.send_and_wait(topic, b"%d %d" % (task, number))

            await asyncio.gather(*[some(task) for task in range(50)])
            # Records collect while a request is in flight: in 40 to 60 requests here, and otherwise in up to
            # 1,000.
            assert producer.metrics()["producer-metrics"]["request-total"] - requests <= 200

    run(main())
    assert len(values_of(our_broker.bootstrap_servers, topic)) == 1001


def test_gathered_sends_share_requests_and_keep_their_order(
    our_broker: EmbeddedBroker, run: Callable[[Main], Any], request: pytest.FixtureRequest
) -> None:
    topic = topic_of(request)

    async def main() -> None:
        async with AIOKafkaProducer(bootstrap_servers=our_broker.bootstrap_servers) as producer:
            await producer.send_and_wait(topic, b"known")
            requests = producer.metrics()["producer-metrics"]["request-total"]
            futures = await asyncio.gather(*[producer.send(topic, b"%d" % i) for i in range(1000)])
            results = await asyncio.gather(*futures)
            assert [each.offset for each in results] == list(range(1, 1001))
            assert producer.metrics()["producer-metrics"]["request-total"] - requests <= 4
            done, pending = await asyncio.wait([await producer.send(topic, b"w") for _ in range(10)])
            assert (len(done), pending) == (10, set())
            assert (await asyncio.shield(await producer.send(topic, b"s"))).offset == 1011

    run(main())
    assert values_of(our_broker.bootstrap_servers, topic)[1:1001] == [b"%d" % i for i in range(1000)]


@pytest.mark.parametrize(
    "settings",
    [
        {"acks": 0},
        {"acks": 1},
        {"linger_ms": 20, "compression_type": "gzip"},
        {"max_in_flight_requests_per_connection": 1, "max_request_size": 3000, "max_batch_size": 1000},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_settings_of_the_synchronous_producer_work(
    our_broker: EmbeddedBroker,
    run: Callable[[Main], Any],
    request: pytest.FixtureRequest,
    settings: dict[str, Any],
) -> None:
    topic = topic_of(request)

    async def main() -> None:
        async with AIOKafkaProducer(bootstrap_servers=our_broker.bootstrap_servers, **settings) as producer:
            first = await producer.send_and_wait(topic, b"first")
            assert first.offset == (0 if settings.get("acks") != 0 else -1)
            await asyncio.gather(*[producer.send_and_wait(topic, b"%d" % i) for i in range(300)])

    run(main())
    expected = [b"first", *(b"%d" % i for i in range(300))]
    eventually(lambda: values_of(our_broker.bootstrap_servers, topic) == expected)


def test_producers_start_no_thread(our_broker: EmbeddedBroker, run: Callable[[Main], Any]) -> None:
    async def main() -> None:
        threads = set(threading.enumerate())
        producers = [AIOKafkaProducer(bootstrap_servers=our_broker.bootstrap_servers) for _ in range(10)]
        await asyncio.gather(*[each.start() for each in producers])
        await asyncio.gather(*[each.send_and_wait("aio-threads", b"v") for each in producers])
        assert set(threading.enumerate()) <= threads
        await asyncio.gather(*[each.stop() for each in producers])

    run(main())


def test_tasks_keep_their_order_while_memory_is_scarce(
    our_broker: EmbeddedBroker, run: Callable[[Main], Any], request: pytest.FixtureRequest
) -> None:
    topic = topic_of(request)

    async def main() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=our_broker.bootstrap_servers, buffer_memory=40_000, max_batch_size=4000
        ) as producer:
            await producer.send_and_wait(topic, b"known")

            async def send(task: int) -> None:
                futures = [await producer.send(topic, b"%d:%d" % (task, i) + b"." * 900) for i in range(60)]
                await asyncio.gather(*futures)

            await asyncio.gather(*[send(task) for task in range(8)])
            assert producer.metrics()["producer-metrics"]["buffer-available-bytes"] == 40_000

    run(main())
    values = [value.rstrip(b".").split(b":") for value in values_of(our_broker.bootstrap_servers, topic)[1:]]
    for task in range(8):
        assert [int(i) for number, i in values if int(number) == task] == list(range(60))


def test_back_pressure_does_not_block_the_loop(broker: EmbeddedBroker, run: Callable[[Main], Any]) -> None:
    async def main() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, buffer_memory=40_000, max_block_ms=BUDGET_S * 1000
        ) as producer:
            await producer.send_and_wait("aio-pressure", b"known")
            with paused(broker.pid):
                sends = [asyncio.create_task(producer.send("aio-pressure", b"v" * 9000)) for _ in range(20)]
                for _ in range(50):
                    await asyncio.sleep(0)
                assert {True, False} == {task.done() for task in sends}
            await asyncio.gather(*await asyncio.gather(*sends))

    run(main())


def test_send_times_out_if_no_memory_becomes_free(broker: EmbeddedBroker, run: Callable[[Main], Any]) -> None:
    async def main() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap_servers,
            buffer_memory=40_000,
            max_block_ms=1000,
            bootstrap_timeout_ms=0,
        ) as producer:
            # On a busy machine, the first metadata may take longer than max_block_ms.
            first = None
            while first is None:
                with contextlib.suppress(KafkaTimeoutError):
                    first = await producer.send_and_wait("aio-pressure", b"known")
            with paused(broker.pid):
                sends = [producer.send("aio-pressure", b"v" * 9000) for _ in range(10)]
                with pytest.raises(KafkaTimeoutError, match="buffer_memory"):
                    await asyncio.gather(*sends)

    run(main())


def test_serializers_and_interceptors_process_records(
    our_broker: EmbeddedBroker, run: Callable[[Main], Any], request: pytest.FixtureRequest
) -> None:
    topic, outcomes = topic_of(request), []

    class Interceptor(ProducerInterceptor):
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            return record._replace(value=record.value + "!")

        def on_acknowledgement(self, metadata: Any, error: Exception | None) -> None:
            outcomes.append((metadata.offset, error))

    async def main() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=our_broker.bootstrap_servers,
            value_serializer=str.encode,
            interceptors=[Interceptor()],
            partitioner=lambda key, partitions, available: partitions[-1],
        ) as producer:
            assert (await producer.send_and_wait(topic, "new")).offset == 0
            assert (await producer.send_and_wait(topic, "known")).offset == 1

    run(main())
    assert values_of(our_broker.bootstrap_servers, topic) == [b"new!", b"known!"]
    assert outcomes == [(0, None), (1, None)]


def test_interceptors_may_be_coroutines(
    our_broker: EmbeddedBroker, run: Callable[[Main], Any], request: pytest.FixtureRequest
) -> None:
    topic, calls = topic_of(request), []

    class Interceptor:
        async def on_send(self, record: ProducerRecord) -> ProducerRecord:
            await asyncio.sleep(0)
            return record._replace(value=record.value + b"!")

        async def on_acknowledgement(
            self, metadata: Any, error: Exception | None, headers: Any = None
        ) -> None:
            await asyncio.sleep(0)
            calls.append((metadata.offset, error, headers))

        async def close(self) -> None:
            await asyncio.sleep(0)
            calls.append("closed")

    async def main() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=our_broker.bootstrap_servers, interceptors=[Interceptor()]
        ) as producer:
            await producer.send(topic, b"v", headers=[("name", b"data")])

    run(main())
    assert values_of(our_broker.bootstrap_servers, topic) == [b"v!"]
    assert calls == [(0, None, [("name", b"data")]), "closed"]


def test_a_built_batch_is_sent_to_its_partition(
    our_broker: EmbeddedBroker, run: Callable[[Main], Any], request: pytest.FixtureRequest
) -> None:
    topic = topic_of(request)

    async def main() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=our_broker.bootstrap_servers, key_serializer=str.encode
        ) as producer:
            batch = producer.create_batch()
            added = 0
            while batch.append(key="k", value=b"%d" % added, timestamp=added) is not None:
                added += 1
            assert (batch.record_count(), batch.closed()) == (added, True)
            future = await producer.send_batch(batch, topic, partition=0)
            metadata = await future
            assert (metadata.offset, metadata.timestamp) == (0, 0)
            with pytest.raises(ValueError, match="no records"):
                await producer.send_batch(producer.create_batch(), topic, partition=0)
            anywhere = producer.create_batch()
            anywhere.append(key="k", value=b"%d" % added, timestamp=None)
            assert (await (await producer.send_batch(anywhere, topic, partition=None))).offset == added
            other = producer.create_batch()
            other.append(key="k", value=b"v", timestamp=None)
            with pytest.raises(ValueError, match="no partition 7"):
                await producer.send_batch(other, topic, partition=7)
            assert added > 100

    run(main())
    records = list(records_of(our_broker.bootstrap_servers, [topic], 1))
    assert [record.value for record in records] == [b"%d" % i for i in range(len(records))]
    assert {record.key for record in records} == {b"k"}


def test_rows_and_tables_are_sent_in_one_call(
    our_broker: EmbeddedBroker, run: Callable[[Main], Any], request: pytest.FixtureRequest
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    topic = topic_of(request)

    async def main() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=our_broker.bootstrap_servers, buffer_memory=100_000
        ) as producer:
            rows = await producer.send_rows(topic, [b"%05d" % i for i in range(30_000)])
            assert list(await rows) == list(range(30_000))
            table = pyarrow.table({"value": [b"a", b"b"], "key": [b"k", None]})
            futures = [await producer.send_arrow(topic, table) for _ in range(3)]
            offsets = [list(each) for each in await asyncio.gather(*futures)]
            assert offsets == [[30_000 + 2 * i, 30_001 + 2 * i] for i in range(3)]

    run(main())


def test_errors_of_records_are_raised_by_their_futures(
    our_broker: EmbeddedBroker, run: Callable[[Main], Any], request: pytest.FixtureRequest
) -> None:
    async def main() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=our_broker.bootstrap_servers, max_block_ms=BUDGET_S * 1000
        ) as producer:
            with pytest.raises(ValueError, match="key or a value"):
                await producer.send("aio-errors")
            with pytest.raises(TypeError):
                await producer.send("aio-errors", "text")
            with pytest.raises(ValueError, match="no partition 9"):
                await producer.send("aio-errors", b"v", partition=9)
            with pytest.raises(ValueError, match="not a valid name"):
                await producer.send("not valid", b"v")

    run(main())


# ---- Transactions ------------------------------------------------------------------------------------------


async def send_in_transaction(producer: AIOKafkaProducer, topic: str, value: bytes, partition: int) -> None:
    """Send a record to partition 0 and then one to ``partition``."""
    async with producer.transaction():
        await producer.send_and_wait(topic, value, partition=0)
        await producer.send_and_wait(topic, value, partition=partition)


def test_transactions_commit_abort_and_fence(
    our_broker: EmbeddedBroker, run: Callable[[Main], Any], request: pytest.FixtureRequest
) -> None:
    topic = topic_of(request)
    servers = our_broker.bootstrap_servers

    async def main() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=servers, transactional_id=topic)
        async with producer:
            with pytest.raises(IllegalStateError):
                await producer.send(topic, b"outside")
            async with producer.transaction():
                await producer.send(topic, b"committed")
                offsets = {TopicPartition(topic, 0): 5}
                await producer.send_offsets_to_transaction(offsets, f"{topic}-group")
            with pytest.raises(ValueError, match="no partition 9"):
                await send_in_transaction(producer, topic, b"aborted", 9)
            await producer.begin_transaction()
            await producer.send(topic, b"committed too")
            await producer.commit_transaction()
            async with AIOKafkaProducer(bootstrap_servers=servers, transactional_id=topic) as second:
                with pytest.raises(ProducerFencedError):
                    await send_in_transaction(producer, topic, b"fenced", 0)
                async with second.transaction():
                    await second.send(topic, b"of the second")

    run(main())
    await_markers(servers, topic, 1)
    read = records_of(servers, [topic], 1, "read_committed")
    assert [record.value for record in read] == [b"committed", b"committed too", b"of the second"]


# ---- Start, stop and unreachable brokers -------------------------------------------------------------------


def test_start_raises_if_no_broker_answers(run: Callable[[Main], Any]) -> None:
    async def main() -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            producer = AIOKafkaProducer(
                bootstrap_servers=f"127.0.0.1:{unused.getsockname()[1]}", bootstrap_timeout_ms=300
            )
            with pytest.raises(NoBrokersAvailable):
                await producer.start()
            await producer.stop()

    run(main())


def test_a_cancelled_start_can_be_repeated(broker: EmbeddedBroker, run: Callable[[Main], Any]) -> None:
    async def main() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        with paused(broker.pid):
            start = asyncio.create_task(producer.start())
            for _ in range(20):
                await asyncio.sleep(0)
            assert not start.done()
            start.cancel()
            with pytest.raises(asyncio.CancelledError):
                await start
            with pytest.raises(IllegalStateError, match="not started"):
                await producer.send("aio-start", b"v")
        await producer.start()
        with pytest.raises(IllegalStateError, match="started before"):
            await producer.start()
        await producer.send_and_wait("aio-start", b"v")
        await producer.stop()
        await producer.stop()
        with pytest.raises(IllegalStateError, match="closed"):
            await producer.send("aio-start", b"v")

    run(main())


def test_a_broker_that_is_away_blocks_no_task(
    broker: EmbeddedBroker, run: Callable[[Main], Any], request: pytest.FixtureRequest
) -> None:
    topic = topic_of(request)

    async def main() -> None:
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            await producer.send_and_wait(topic, b"known")
            with paused(broker.pid):
                waits = [
                    asyncio.create_task(each)
                    for each in (
                        producer.send_and_wait(topic, b"v"),
                        producer.send(f"{topic}-new", b"v"),
                        producer.flush(),
                        producer.partitions_for(f"{topic}-other"),
                    )
                ]
                for _ in range(50):
                    await asyncio.sleep(0)
                assert not any(task.done() for task in waits)
                with pytest.raises(KafkaTimeoutError, match="flush"):
                    await producer.flush(0.01)
            await asyncio.gather(*waits)

    run(main())


def test_a_cancelled_stop_continues_in_the_background(
    broker: EmbeddedBroker, run: Callable[[Main], Any], request: pytest.FixtureRequest
) -> None:
    topic = topic_of(request)

    async def main() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        await producer.start()
        await producer.send_and_wait(topic, b"known")
        with paused(broker.pid):
            future = await producer.send(topic, b"v")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await producer.stop()
        await producer.stop()
        assert future.result().offset == 1

    run(main())


def test_stop_fails_the_remaining_records_after_its_timeout(
    broker: EmbeddedBroker, run: Callable[[Main], Any]
) -> None:
    async def main() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        await producer.start()
        await producer.send_and_wait("aio-stop", b"known")
        with paused(broker.pid):
            future = await producer.send("aio-stop", b"v")
            await producer.stop(0.01)
            with pytest.raises(KafkaError, match="closed before"):
                await future

    run(main())


# ---- Cancellation ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_cancellations_lose_and_double_no_record(
    our_broker: EmbeddedBroker, run: Callable[[Main], Any], request: pytest.FixtureRequest, seed: int
) -> None:
    """A record whose ``send()`` returned is written once. A record whose ``send()`` was cancelled is not."""
    topic, chance = topic_of(request), random.Random(seed)
    sent: list[bytes] = []

    async def main() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=our_broker.bootstrap_servers, buffer_memory=40_000, max_batch_size=2000
        ) as producer:

            async def send(number: int) -> None:
                value = b"%d" % number
                future = await producer.send(topic, value.ljust(700))
                sent.append(value)
                if chance.random() < 0.5:
                    await future
                elif chance.random() < 0.5:
                    await producer.flush()

            for round_ in range(20):
                tasks = [asyncio.create_task(send(50 * round_ + i)) for i in range(50)]
                for _ in range(chance.randrange(12)):
                    await asyncio.sleep(0)
                for task in chance.sample(tasks, 25):
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            assert len(sent) < 1000

    run(main())
    read = [value.rstrip() for value in values_of(our_broker.bootstrap_servers, topic)]
    assert sorted(read) == sorted(sent)


def test_cancelled_commit_continues_and_can_be_awaited_again(
    broker: EmbeddedBroker, run: Callable[[Main], Any], request: pytest.FixtureRequest
) -> None:
    topic = topic_of(request)

    async def main() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, transactional_id=topic
        ) as producer:
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"v")
            with paused(broker.pid), pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await producer.commit_transaction()
            await producer.commit_transaction()
            async with producer.transaction():
                await producer.send(topic, b"w")

    run(main())
    await_markers(broker.bootstrap_servers, topic, 1)
    read = records_of(broker.bootstrap_servers, [topic], 1, "read_committed")
    assert [record.value for record in read] == [b"v", b"w"]


@pytest.fixture(scope="module")
def unreliable_broker() -> Iterator[tuple[FaultProxy, EmbeddedBroker]]:
    """Start a broker behind a proxy that cuts connections."""
    with FaultProxy() as proxy, EmbeddedBroker(advertised_port=proxy.port) as made:
        proxy.target = made.bootstrap_servers
        yield proxy, made


@pytest.mark.parametrize("seed", range(2))
def test_lost_connections_lose_and_double_no_record(
    unreliable_broker: tuple[FaultProxy, EmbeddedBroker],
    run: Callable[[Main], Any],
    request: pytest.FixtureRequest,
    seed: int,
) -> None:
    topic, chance = topic_of(request), random.Random(seed)
    proxy, _ = unreliable_broker

    async def main() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=proxy.bootstrap_servers,
            max_batch_size=2000,
            retry_backoff_ms=10,
            reconnect_backoff_ms=10,
        ) as producer:
            await producer.send_and_wait(topic, b"known")

            async def send(task: int) -> None:
                for number in range(50):
                    await producer.send_and_wait(topic, b"%d:%d" % (task, number))
                    if chance.random() < 0.02:
                        cut = chance.choice([proxy.cut_response, proxy.cut_request])
                        cut(ApiKey.PRODUCE, chance.randrange(40))

            await asyncio.gather(*[send(task) for task in range(20)])

    run(main())
    assert proxy.counters.cut_frames > 0
    proxy.lift()
    values = [value.split(b":") for value in values_of(proxy.bootstrap_servers, topic)[1:]]
    for task in range(20):
        assert [int(number) for of, number in values if int(of) == task] == list(range(50))


def test_a_killed_broker_loses_and_doubles_no_record(
    run: Callable[[Main], Any], request: pytest.FixtureRequest
) -> None:
    topic = topic_of(request)

    async def main(killed: EmbeddedBroker) -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=killed.bootstrap_servers, retry_backoff_ms=20, reconnect_backoff_ms=20
        ) as producer:
            await producer.send_and_wait(topic, b"known")
            acknowledged, progress = 0, asyncio.Event()

            async def send(task: int) -> None:
                nonlocal acknowledged
                for number in range(100):
                    await producer.send_and_wait(topic, b"%d:%d" % (task, number))
                    acknowledged += 1
                    progress.set()

            tasks = [asyncio.create_task(send(task)) for task in range(10)]
            for kill in (1, 2):
                while acknowledged < 300 * kill:
                    progress.clear()
                    await progress.wait()
                # The loop must run on while the broker is away, so that requests fail and are retried.
                await asyncio.to_thread(killed.kill)
                await asyncio.to_thread(killed.start)
            await asyncio.gather(*tasks)

    with EmbeddedBroker() as killed:
        run(main(killed))
        values = [value.split(b":") for value in values_of(killed.bootstrap_servers, topic)[1:]]
    for task in range(10):
        assert [int(number) for of, number in values if int(of) == task] == list(range(100))


def test_stopped_producers_leave_nothing_behind(
    our_broker: EmbeddedBroker, run: Callable[[Main], Any]
) -> None:
    async def main() -> None:
        await asyncio.sleep(0)
        descriptors, tasks = set(os.listdir("/proc/self/fd")), asyncio.all_tasks()
        nowhere = AIOKafkaProducer(bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=100)
        with pytest.raises(NoBrokersAvailable):
            await nowhere.start()
        producer = AIOKafkaProducer(bootstrap_servers=our_broker.bootstrap_servers)
        await producer.start()
        await producer.send_and_wait("aio-stopped", b"v")
        await producer.stop()
        # Leftovers of an earlier test may be closed at any time.
        assert set(os.listdir("/proc/self/fd")) <= descriptors
        assert asyncio.all_tasks() == tasks

    run(main())


# ---- Unplanned ends ----------------------------------------------------------------------------------------


def test_collected_producer_warns_once_and_closes(
    our_broker: EmbeddedBroker, run: Callable[[Main], Any]
) -> None:
    async def main() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=our_broker.bootstrap_servers)
        kept = [producer]
        await producer.start()
        future = await producer.send("aio-collected", b"v")
        del producer
        with pytest.warns(ResourceWarning, match="unclosed <AIOKafkaProducer") as warned:
            kept.clear()
        assert len(warned) == 1
        await future

    run(main())


def test_producer_that_outlives_its_loop_warns_once(
    our_broker: EmbeddedBroker, run: Callable[[Main], Any]
) -> None:
    kept: list[Any] = []

    async def main() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=our_broker.bootstrap_servers, linger_ms=60_000)
        await producer.start()
        kept.extend([producer, await producer.send("aio-outlives", b"v")])

    run(main())
    with pytest.warns(ResourceWarning, match="unclosed <AIOKafkaProducer") as warned:
        del kept[0]
    assert len(warned) == 1
    with pytest.raises(KafkaError, match="closed before"):
        kept[0].result()


ENDS = """
    import asyncio, sys
    from kafkacore.aio import AIOKafkaProducer
    {keep}
    async def main():
        global producer
        producer = AIOKafkaProducer(bootstrap_servers=sys.argv[1], linger_ms=60_000)
        await producer.start()
        await producer.send("aio-ends", b"v")
    asyncio.run(main(), debug=True)
    print("ended")
"""


@pytest.mark.parametrize("keep", ["", "import builtins, sys"])
def test_a_program_that_leaves_a_producer_open_ends(our_broker: EmbeddedBroker, keep: str) -> None:
    script = textwrap.dedent(ENDS).format(keep=keep)
    command = [sys.executable, "-W", "default", "-c", script, our_broker.bootstrap_servers]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BUDGET_S, check=False)
    assert (done.returncode, done.stdout) == (0, "ended\n")
    assert done.stderr.count("ResourceWarning: unclosed") == 1
    assert "destroyed" not in done.stderr
    assert "Traceback" not in done.stderr


def use_in_child(producer: AIOKafkaProducer, said: Any) -> None:
    async def use() -> None:
        for call in (
            producer.send("aio-fork", b"child"),
            producer.send("aio-fork-new", b"child"),
            producer.flush(),
            producer.partitions_for("aio-fork-other"),
        ):
            try:
                await call
                said.put("nothing")
            except IllegalStateError as error:
                said.put(str(error))
        await producer.stop()
        said.put("stopped")

    asyncio.run(use())


def test_use_in_a_forked_process_is_refused(our_broker: EmbeddedBroker, run: Callable[[Main], Any]) -> None:
    async def main() -> list[str]:
        context = multiprocessing.get_context("fork")
        said = context.SimpleQueue()
        async with AIOKafkaProducer(bootstrap_servers=our_broker.bootstrap_servers) as producer:
            await producer.send_and_wait("aio-fork", b"parent")
            child = context.Process(target=use_in_child, args=(producer, said))
            child.start()
            child.join(BUDGET_S)
            assert child.exitcode == 0
            await producer.send_and_wait("aio-fork", b"parent")
            return [said.get() for _ in range(5)]

    *sentences, last = run(main())
    assert last == "stopped"
    assert all("before fork()" in sentence for sentence in sentences)


# ---- The synchronous producer ------------------------------------------------------------------------------


def test_futures_of_the_synchronous_producer_can_be_awaited(
    our_broker: EmbeddedBroker, run: Callable[[Main], Any], request: pytest.FixtureRequest
) -> None:
    topic = topic_of(request)

    async def main() -> None:
        with KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers) as producer:
            assert (await producer.send(topic, b"v")).offset == 0
            metadata = await asyncio.gather(*[producer.send(topic, b"v") for _ in range(1000)])
            assert [each.offset for each in metadata] == list(range(1, 1001))
            assert list(await producer.send_batch(topic, [b"v"] * 3)) == [1001, 1002, 1003]
            done = producer.send(topic, b"v")
            producer.flush()
            assert (await done).offset == 1004

    run(main())


def test_cancelling_one_wait_for_a_synchronous_future_leaves_the_others(
    broker: EmbeddedBroker, run: Callable[[Main], Any]
) -> None:
    async def main() -> None:
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            await producer.send("aio-sync", b"known")
            with paused(broker.pid):
                future = producer.send("aio-sync", b"v")
                first, second = asyncio.ensure_future(future), asyncio.ensure_future(future)
                await asyncio.sleep(0)
                first.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await first
            assert (await second).offset == future.get(BUDGET_S).offset

    run(main())
