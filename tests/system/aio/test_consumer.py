"""AIOKafkaConsumer with our broker, on asyncio and uvloop."""

import asyncio
import contextlib
import gc
import itertools
import random
import threading
import time

import pytest
from eventually import BUDGET_MS, BUDGET_S, LONG_SESSION_MS, eventually

from kafkacore import KafkaProducer, TopicPartition
from kafkacore.admin import KafkaAdminClient, NewTopic
from kafkacore.aio import AIOKafkaConsumer
from kafkacore.errors import (
    ConsumerStoppedError,
    IllegalOperation,
    IllegalStateError,
    NoBrokersAvailable,
    NoOffsetForPartitionError,
    WakeupError,
)
from kafkacore.protocol import ApiKey
from kafkacore.testing import EmbeddedBroker, FaultProxy


async def started(consumer):
    await consumer.start()
    return consumer


def drop(held):
    """Drop the last references to the objects in a list."""
    held.clear()
    gc.collect()


async def until(condition, shown=lambda: ""):
    try:
        async with asyncio.timeout(BUDGET_S):
            while not condition():
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(shown()) from None


@pytest.fixture
def create(our_broker):
    """Return a function that creates a topic with several partitions."""

    def create(topic, partitions):
        with KafkaAdminClient(bootstrap_servers=our_broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(topic, partitions, 1)])

    return create


# ---- Reading -----------------------------------------------------------------------------------------------
def test_iteration_returns_all_records_in_order(run, topic, produce, new_consumer):
    produce(topic, range(1200))

    async def main():
        values = []
        async with new_consumer(topic) as consumer:
            async for record in consumer:
                values.append(int(record.value))
                assert await consumer.position(TopicPartition(topic, 0)) == len(values)
                if len(values) == 1200:
                    break
        assert values == list(range(1200))

    run(main())


def test_iteration_deserializes_a_few_large_records_at_once(run, topic, our_broker, new_consumer):
    with KafkaProducer(bootstrap_servers=our_broker.bootstrap_servers) as producer:
        producer.send_batch(topic, [b"%d" % number * 20_000 for number in range(10)] * 5).get(BUDGET_S)
    deserialized = []

    def deserialize(data):
        deserialized.append(data)
        return data.decode()

    async def main():
        ahead = []
        async with new_consumer(topic, value_deserializer=deserialize) as consumer:
            async for record in consumer:
                assert record.value == str(len(ahead) % 10) * 20_000
                ahead.append(len(deserialized) - len(ahead) - 1)
                if len(ahead) == 50:
                    break
        assert max(ahead[:10]) < 10
        # 64 KiB are three records.
        assert max(ahead[10:]) == 2

    run(main())


def test_getmany_returns_records_by_partition(run, topic, create, produce, new_consumer):
    create(topic, 2)
    produce(topic, range(10), partition=0)
    produce(topic, range(10, 15), partition=1)

    async def main():
        async with new_consumer(topic) as consumer:
            found = {0: [], 1: []}
            while sum(map(len, found.values())) < 15:
                for tp, records in (await consumer.getmany(timeout_ms=100, max_records=4)).items():
                    found[tp.partition] += [int(record.value) for record in records]
            assert found == {0: list(range(10)), 1: list(range(10, 15))}
            assert await consumer.getmany() == {}

    run(main())


def test_getone_and_getmany_read_only_the_given_partitions(run, topic, create, produce, new_consumer):
    create(topic, 2)
    produce(topic, range(5), partition=0)
    produce(topic, range(10, 15), partition=1)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)

    async def main():
        async with new_consumer(topic) as consumer:
            assert (await consumer.getone(second)).value == b"10"
            assert (await consumer.getone(first)).value == b"0"
            assert consumer.paused() == set()
            found = []
            while len(found) < 4:
                records = await consumer.getmany(second, timeout_ms=1000)
                assert records.keys() <= {second}
                found += records.get(second, ())
            assert (await consumer.getone()).partition == 0
            # Two tasks wait for different partitions at the same time.
            for _ in range(3):
                await consumer.getone(first)
            waiting = (
                asyncio.create_task(consumer.getone(second)),
                asyncio.create_task(consumer.getone(first)),
            )
            await asyncio.sleep(0.2)
            await asyncio.to_thread(produce, topic, [5], 0)
            assert (await waiting[1]).value == b"5"
            await asyncio.to_thread(produce, topic, [15], 1)
            assert (await waiting[0]).value == b"15"

    run(main())


def test_records_read_for_getone_are_returned_by_getmany(run, topic, produce, new_consumer):
    produce(topic, range(5))

    async def main():
        async with new_consumer(topic) as consumer:
            assert (await consumer.getone()).value == b"0"
            found = await consumer.getmany(timeout_ms=1000)
            assert [record.value for record in found[TopicPartition(topic, 0)]] == [b"1", b"2", b"3", b"4"]

    run(main())


def test_poll_arrow_returns_columns(run, topic, produce, new_consumer):
    produce(topic, range(5))

    async def main():
        async with new_consumer(topic) as consumer:
            found = await consumer.poll_arrow(timeout_ms=10_000, columns=["value"])
            assert len(found[TopicPartition(topic, 0)]) == 5

    run(main())


def test_tasks_share_the_records(run, topic, produce, new_consumer):
    produce(topic, range(100))

    async def main():
        async with new_consumer(topic) as consumer:

            async def read():
                return [int((await consumer.getone()).value) for _ in range(20)]

            found = await asyncio.gather(*(read() for _ in range(5)))
            assert sorted(itertools.chain(*found)) == list(range(100))

    run(main())


# ---- Several operations at a time --------------------------------------------------------------------------
def test_commit_while_another_task_waits_in_getone(run, topic, produce, new_consumer):
    produce(topic, range(3))
    tp = TopicPartition(topic, 0)

    async def main():
        async with new_consumer(topic, group_id=topic, enable_auto_commit=False) as consumer:
            for _ in range(3):
                await consumer.getone()
            waiting = asyncio.create_task(consumer.getone())
            for offset in range(3):
                await asyncio.sleep(0.01)
                await consumer.commit({tp: offset})
                assert await consumer.committed(tp) == offset
            await consumer.commit({tp: (1, "here")})
            await consumer.commit()
            assert await consumer.committed(tp) == 3
            assert not waiting.done()
            await asyncio.to_thread(produce, topic, [3])
            assert (await waiting).value == b"3"

    run(main())


def test_seek_while_another_task_waits_in_getone(run, topic, produce, new_consumer):
    produce(topic, range(3))
    tp = TopicPartition(topic, 0)

    async def main():
        async with new_consumer(topic) as consumer:
            await consumer.seek_to_end()
            waiting = asyncio.create_task(consumer.getone())
            await asyncio.sleep(0.05)
            consumer.seek(tp, 1)
            assert (await waiting).value == b"1"
            consumer.pause(tp)
            assert await consumer.getmany(timeout_ms=50) == {}
            consumer.resume(tp)
            assert (await consumer.getone()).value == b"2"

    run(main())


def test_wakeup_ends_one_call(run, topic, produce, new_consumer):
    produce(topic, range(1))

    async def main():
        async with new_consumer(topic) as consumer:
            await consumer.getone()
            waiting = asyncio.create_task(consumer.getone())
            await asyncio.sleep(0.05)
            consumer.wakeup()
            with pytest.raises(WakeupError):
                await waiting
            assert await consumer.getmany() == {}

    run(main())


def test_stop_ends_waiting_calls(run, topic, produce, new_consumer):
    produce(topic, range(1))

    async def main():
        consumer = await started(new_consumer(topic))

        values = []

        async def iterate():
            async for record in consumer:
                values.append(record.value)

        iterating = asyncio.create_task(iterate())
        waiting = asyncio.create_task(consumer.getone())
        # One of them has the record, and the other one waits.
        await until(lambda: values or waiting.done())
        await consumer.stop()
        await consumer.stop()
        await iterating
        with contextlib.suppress(ConsumerStoppedError):
            values.append((await waiting).value)
        assert values == [b"0"]
        for call in (consumer.getone, consumer.getmany):
            with pytest.raises(ConsumerStoppedError):
                await call()

    run(main())


# ---- Positions ---------------------------------------------------------------------------------------------
def test_positions_and_offsets(run, topic, produce, new_consumer):
    produce(topic, range(10))
    tp = TopicPartition(topic, 0)

    async def main():
        async with new_consumer(group_id=topic) as consumer:
            consumer.assign([tp])
            assert consumer.assignment() == {tp}
            assert consumer.highwater(tp) is consumer.last_poll_timestamp(tp) is None
            assert await consumer.seek_to_end(tp)
            assert await consumer.position(tp) == 10
            assert await consumer.seek_to_beginning()
            assert await consumer.position(tp) == 0
            assert await consumer.seek_to_committed() == {tp: None}
            await consumer.commit({tp: 4})
            assert await consumer.seek_to_committed(tp) == {tp: 4}
            assert (await consumer.getone()).offset == 4
            assert consumer.highwater(tp) == consumer.last_stable_offset(tp) == 10
            assert abs(consumer.last_poll_timestamp(tp) - time.time() * 1000) < 60_000
            assert await consumer.beginning_offsets([tp]) == {tp: 0}
            assert await consumer.end_offsets([tp]) == {tp: 10}
            assert (await consumer.offsets_for_times({tp: 0}))[tp].offset == 0
            assert topic in await consumer.topics()
            assert consumer.partitions_for_topic(topic) == {0}
            assert consumer.partitions_for_topic("missing") is None

    run(main())


def test_errors_are_those_of_aiokafka(run, topic, produce, new_consumer):
    produce(topic, range(1))
    tp = TopicPartition(topic, 0)

    async def main():
        consumer = new_consumer(auto_offset_reset="none")
        with pytest.raises(IllegalStateError, match="start"):
            await consumer.getone()
        async with consumer:
            for call in (consumer.commit(), consumer.committed(tp), consumer.seek_to_committed()):
                with pytest.raises(IllegalOperation):
                    await call
            for call in (consumer.position, consumer.seek_to_end, consumer.seek_to_beginning):
                with pytest.raises(IllegalStateError):
                    await call(tp)
            with pytest.raises(IllegalStateError):
                consumer.seek(tp, 0)
            for arguments in ({}, {"topics": ["a"], "pattern": "b"}, {"topics": "a"}):
                with pytest.raises(TypeError):
                    consumer.subscribe(**arguments)
            with pytest.raises(ValueError, match="valid pattern"):
                consumer.subscribe(pattern="(")
            consumer.assign([tp])
            with pytest.raises(NoOffsetForPartitionError):
                await consumer.getone()
            with pytest.raises(IllegalStateError, match="twice"):
                await consumer.start()

    run(main())


def test_position_at_the_end_is_that_of_the_start(run, topic, produce, new_consumer):
    """A record that is produced after start() or assign() is read, as with aiokafka."""
    produce(topic, range(3))
    tp = TopicPartition(topic, 0)

    async def main():
        async with new_consumer(topic, auto_offset_reset="latest") as consumer:
            await asyncio.to_thread(produce, topic, [3])
            assert (await consumer.getone()).value == b"3"
        async with new_consumer(auto_offset_reset="latest") as consumer:
            consumer.assign([tp])
            await until(lambda: consumer._engine.subscriptions.has_all_fetch_positions())
            await asyncio.to_thread(produce, topic, [4])
            assert (await consumer.getone()).value == b"4"

    run(main())


# ---- Groups ------------------------------------------------------------------------------------------------
class Listener:
    """A listener whose methods are coroutines and use the consumer."""

    def __init__(self, consumer):
        self.consumer = consumer
        self.events = []

    async def on_partitions_revoked(self, revoked):
        if revoked:
            await self.consumer.commit()
            await asyncio.sleep(0.01)
        self.events.append(("revoked", len(revoked)))

    async def on_partitions_assigned(self, assigned):
        for tp in assigned:
            assert await self.consumer.position(tp) >= 0
        with pytest.raises(IllegalStateError, match=r"listener|stopped"):
            await self.consumer.getone()
        self.events.append(("assigned", len(assigned)))


def count(listener, event):
    return sum(number for name, number in listener.events if name == event)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_group_of_two_rebalances(run, topic, create, produce, new_consumer, protocol):
    create(topic, 4)
    for partition in range(4):
        produce(topic, range(100 * partition, 100 * partition + 100), partition)

    async def main():
        settings = {"group_id": topic, "enable_auto_commit": False, "group_protocol": protocol}
        if protocol == "classic":
            settings["heartbeat_interval_ms"] = 50
        seen = []

        async def read(consumer):
            async for record in consumer:
                seen.append(int(record.value))
                await asyncio.sleep(0)

        first, second = new_consumer(**settings), new_consumer(**settings)
        listeners = Listener(first), Listener(second)
        first.subscribe([topic], listener=listeners[0])
        second.subscribe([topic], listener=listeners[1])
        await first.start()
        await until(lambda: len(first.assignment()) == 4)
        readers = [asyncio.create_task(read(first))]
        await until(lambda: len(seen) > 150)
        await second.start()
        readers.append(asyncio.create_task(read(second)))

        def state():
            events = [listener.events for listener in listeners]
            return first.assignment(), second.assignment(), readers, len(seen), events

        await until(lambda: len(first.assignment()) == len(second.assignment()) == 2, state)
        await until(lambda: len(set(seen)) == 400, state)
        assert listeners[0].events[0] == ("assigned", 4)
        assert count(listeners[0], "revoked") >= (4 if protocol == "classic" else 2)
        await until(lambda: count(listeners[1], "assigned") >= 2, state)
        await first.stop()
        await until(lambda: len(second.assignment()) == 4)
        await second.stop()
        await asyncio.gather(*readers)
        # Each revocation committed the positions, so no record was read twice.
        assert sorted(seen) == list(range(400))

    run(main())


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_of_a_program_start_before_any_of_them_reads(run, topic, create, new_consumer, protocol):
    """FastStream's workers do: their starts must not wait for each other's first reads."""
    create(topic, 3)
    settings = {"group_id": topic, "group_protocol": protocol, "request_timeout_ms": 2000 * BUDGET_S}
    if protocol == "classic":
        settings["heartbeat_interval_ms"] = 50

    async def main():
        members = [new_consumer(topic, **settings) for _ in range(3)]
        async with asyncio.timeout(BUDGET_S):
            for member in members:
                await member.start()
        await until(lambda: all(len(member.assignment()) == 1 for member in members))
        assert len(set().union(*(member.assignment() for member in members))) == 3
        for member in members:
            await member.stop()

    run(main())


def test_exception_of_a_listener_before_the_first_read_is_raised_by_it(run, topic, create, new_consumer):
    create(topic, 2)

    class Failing(Listener):
        def on_partitions_revoked(self, revoked):
            raise ValueError("listener")

    async def main():
        first = new_consumer(group_id=topic, heartbeat_interval_ms=50)
        first.subscribe([topic], listener=Failing(first))
        await first.start()
        async with new_consumer(topic, group_id=topic) as second:
            await until(lambda: len(first.assignment()) == len(second.assignment()) == 1)
            with pytest.raises(ValueError, match="listener"):
                await first.getmany(timeout_ms=1000 * BUDGET_S)
        first.unsubscribe()
        await first.stop()

    run(main())


def test_member_stays_in_its_group_between_calls(run, topic):
    """Heartbeats are sent while no call runs, and while the loop is blocked."""

    async def main(proxy):
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=proxy.bootstrap_servers,
            group_id=topic,
            session_timeout_ms=LONG_SESSION_MS,
            heartbeat_interval_ms=100,
        )

        def heartbeats():
            return sum(request.api_key == ApiKey.HEARTBEAT for request in proxy.requests)

        async with consumer:
            before = consumer.group_metadata()
            assert before.generation_id > 0
            sent = heartbeats()
            await until(lambda: heartbeats() >= sent + 5)
            sent = heartbeats()
            # This wait blocks the loop.
            eventually(lambda: heartbeats() >= sent + 5)
            await consumer.getmany(timeout_ms=100)
            await consumer.commit({TopicPartition(topic, 0): 0})
            assert consumer.group_metadata() == before

    with (
        FaultProxy() as proxy,
        EmbeddedBroker(advertised_port=proxy.port, group_initial_rebalance_delay_ms=0) as broker,
    ):
        proxy.target = broker.bootstrap_servers
        run(main(proxy))


def test_background_leaves_the_group_after_max_poll_interval(run, topic, produce, new_consumer):
    produce(topic, range(2))

    async def main():
        settings = {"group_id": topic, "max_poll_interval_ms": 300, "heartbeat_interval_ms": 50}
        async with new_consumer(topic, **settings) as consumer:
            await consumer.getone()
            await until(lambda: consumer.group_metadata().generation_id < 0)
            assert (await consumer.getone()).value == b"1"

    run(main())


def test_hold_keeps_the_member_in_a_rebalancing_group(run, topic, create, produce, new_consumer):
    create(topic, 2)
    produce(topic, range(2))

    async def main():
        settings = {"group_id": topic, "max_poll_interval_ms": BUDGET_MS, "heartbeat_interval_ms": 50}
        async with new_consumer(topic, **settings) as first:
            await first.getone()
            with first.hold() as held:
                async with new_consumer(topic, **settings) as second:
                    await until(lambda: len(first.assignment()) == len(second.assignment()) == 1)
                assert len(held.revoked) <= 1

    run(main())


def test_hold_that_began_before_the_start_goes_on_after_a_read(run, topic, create, new_consumer):
    create(topic, 2)

    async def main():
        settings = {"group_id": topic, "heartbeat_interval_ms": 50}
        first = new_consumer(topic, **settings)
        with first.hold():
            await first.start()
            assert await first.getmany() == {}
            async with new_consumer(topic, **settings) as second:
                await until(lambda: len(first.assignment()) == len(second.assignment()) == 1)
        await first.stop()

    run(main())


# ---- Resources ---------------------------------------------------------------------------------------------
def test_ten_consumers_start_no_thread(run, topic, produce, new_consumer):
    produce(topic, range(1))

    async def main():
        before = set(threading.enumerate())
        consumers = [new_consumer(topic, group_id=f"{topic}-{number}") for number in range(10)]
        await asyncio.gather(*(consumer.start() for consumer in consumers))
        for record in await asyncio.gather(*(consumer.getone() for consumer in consumers)):
            assert record.value == b"0"
        # Threads of an earlier test may end at any time.
        assert set(threading.enumerate()) <= before
        await asyncio.gather(*(consumer.stop() for consumer in consumers))

    run(main())


def test_unclosed_consumer_warns_once(run, topic, produce, new_consumer):
    produce(topic, range(1))

    async def main():
        consumer = await started(new_consumer(topic, group_id=topic))
        await consumer.getone()
        held = [consumer]
        del consumer
        with pytest.warns(ResourceWarning, match="unclosed <AIOKafkaConsumer") as caught:
            drop(held)
        assert len(caught) == 1

    run(main())


def test_loop_ends_with_an_open_consumer(run, topic, produce, new_consumer):
    produce(topic, range(1))

    async def main():
        consumer = await started(new_consumer(topic, group_id=topic))
        task = asyncio.create_task(consumer.getone())
        await task
        task = asyncio.create_task(consumer.getone())
        await asyncio.sleep(0.05)
        return consumer, task

    held = list(run(main()))
    assert held[1].cancelled()
    with pytest.warns(ResourceWarning, match="unclosed <AIOKafkaConsumer") as caught:
        drop(held)
    assert len(caught) == 1


def test_start_that_failed_can_be_repeated_in_another_loop(run, topic, produce, our_broker):
    produce(topic, range(1))

    async def cancelled_start(consumer, proxy):
        proxy.set_stalled()
        starting = asyncio.create_task(consumer.start())
        await until(lambda: proxy.counters.connections)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting

    async def main(consumer):
        await consumer.start()
        assert (await consumer.getone()).value == b"0"
        await consumer.stop()

    with FaultProxy(our_broker.bootstrap_servers) as proxy:
        settings = {"bootstrap_servers": proxy.bootstrap_servers, "auto_offset_reset": "earliest"}
        consumer = AIOKafkaConsumer(topic, group_id=topic, **settings)
        run(cancelled_start(consumer, proxy))
        proxy.lift()
        run(main(consumer))


def test_member_whose_start_was_cancelled_leaves_the_group(run, topic, produce, new_consumer):
    """The other member would otherwise wait until the session of the first has expired."""
    produce(topic, range(1))

    async def main():
        settings = {"group_id": topic, "session_timeout_ms": 60_000, "max_poll_interval_ms": 60_000}
        first = new_consumer(topic, **settings)
        starting = asyncio.create_task(first.start())
        await until(lambda: first.group_metadata().member_id)
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await starting
        await first.stop()
        async with asyncio.timeout(BUDGET_S / 2), new_consumer(topic, **settings) as second:
            assert (await second.getone()).value == b"0"

    run(main())


def test_start_can_be_cancelled_and_repeated(run, topic, produce, new_consumer):
    produce(topic, range(1))

    async def main():
        consumer = new_consumer(topic, group_id=topic)
        for steps in range(40):
            starting = asyncio.create_task(consumer.start())
            for _ in range(steps):
                await asyncio.sleep(0)
            if starting.done():
                break
            starting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await starting
        else:
            await consumer.start()
        assert (await consumer.getone()).value == b"0"
        await consumer.stop()

    run(main())


# ---- Code of the application -------------------------------------------------------------------------------
class Interceptor:
    """An interceptor whose methods are coroutines."""

    def __init__(self):
        self.consumer = None
        self.events = []

    async def on_consume(self, records):
        await asyncio.sleep(0)
        with pytest.raises(IllegalStateError, match="interceptor"):
            await self.consumer.commit()
        return {tp: [record for record in of if record.value != b"1"] for tp, of in records.items()}

    async def on_commit(self, offsets):
        self.events.append({tp.partition: offset.offset for tp, offset in offsets.items()})

    async def close(self):
        await asyncio.sleep(0)
        self.events.append("closed")


def test_interceptors_may_be_coroutines(run, topic, produce, new_consumer):
    produce(topic, range(3))

    async def main():
        interceptor = Interceptor()
        consumer = interceptor.consumer = new_consumer(
            topic, group_id=topic, enable_auto_commit=False, interceptors=[interceptor]
        )
        async with consumer:
            assert [(await consumer.getone()).value for _ in range(2)] == [b"0", b"2"]
            await consumer.commit()
        assert interceptor.events == [{0: 3}, "closed"]

    run(main())


class PlainListener:
    """A listener whose methods are functions, without ``on_partitions_lost``."""

    def __init__(self, consumer):
        self.consumer = consumer
        self.events = []

    def on_partitions_revoked(self, revoked):
        self.events.append(("revoked", len(revoked)))

    def on_partitions_assigned(self, assigned):
        self.events.append(("assigned", len(assigned)))
        for tp in assigned:
            self.consumer.seek(tp, 2)


@pytest.mark.parametrize("group", [False, True])
def test_plain_listener_may_seek(run, topic, produce, new_consumer, group):
    produce(topic, range(3))

    async def main():
        consumer = new_consumer(group_id=topic if group else None)
        listener = PlainListener(consumer)
        consumer.subscribe([topic], listener=listener)
        async with consumer:
            assert (await consumer.getone()).value == b"2"
        assert listener.events == [("assigned", 1)] + ([("revoked", 1)] if group else [])

    run(main())


def test_exception_of_a_listener_is_raised_by_the_call(run, topic, produce, new_consumer):
    produce(topic, range(1))

    async def main():
        consumer = new_consumer(group_id=topic)

        class Failing(PlainListener):
            async def on_partitions_assigned(self, assigned):
                raise ValueError("mine")

        consumer.subscribe([topic], listener=Failing(consumer))
        with pytest.raises(ValueError, match="mine"):
            await consumer.start()
        await consumer.start()
        assert (await consumer.getone()).value == b"0"
        await consumer.stop()

    run(main())


def test_listener_may_stop_the_consumer(run, topic, produce, new_consumer):
    produce(topic, range(1))

    async def main():
        consumer = new_consumer(group_id=topic)

        class Stopping(PlainListener):
            async def on_partitions_assigned(self, assigned):
                await self.consumer.stop()

        await consumer.start()
        consumer.subscribe([topic], listener=Stopping(consumer))
        with pytest.raises(ConsumerStoppedError):
            await consumer.getone()

    run(main())


def test_cancelled_getone_lets_the_listener_finish(run, topic, produce, new_consumer):
    produce(topic, range(1))

    async def main():
        consumer = new_consumer(group_id=topic)
        began, events = asyncio.Event(), []

        class Slow(PlainListener):
            async def on_partitions_assigned(self, assigned):
                began.set()
                await asyncio.sleep(0.1)
                events.append(len(assigned))

        await consumer.start()
        consumer.subscribe([topic], listener=Slow(consumer))
        task = asyncio.create_task(consumer.getone())
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert events == [1]
        assert (await consumer.getone()).value == b"0"
        assert events == [1]
        await consumer.stop()

    run(main())


# ---- Brokers that are away ---------------------------------------------------------------------------------
def test_start_without_a_broker_is_bounded(run):
    async def main():
        consumer = AIOKafkaConsumer("t", bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=500)
        with pytest.raises(NoBrokersAvailable):
            await consumer.start()
        with pytest.raises(NoBrokersAvailable):
            async with consumer:
                pass

    run(main())


def test_start_without_a_broker_does_not_block_the_loop(run):
    async def main():
        consumer = AIOKafkaConsumer("t", bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=BUDGET_MS)
        starting = asyncio.create_task(consumer.start())
        for _ in range(10):
            await asyncio.sleep(0.01)
        assert not starting.done()
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        await consumer.stop()

    run(main())


@pytest.mark.parametrize("seed", range(2))
def test_records_are_read_once_through_a_faulty_network(run, topic, seed):
    """Connections are reset at random points while records are read and committed."""
    count = 2000
    tp = TopicPartition(topic, 0)

    async def main(proxy):
        rng = random.Random(seed)
        consumer = AIOKafkaConsumer(
            bootstrap_servers=proxy.bootstrap_servers,
            group_id=topic,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=2000,
            reconnect_backoff_ms=5,
            retry_backoff_ms=10,
        )
        consumer.assign([tp])
        values = []
        async with consumer:
            while len(values) < count:
                for records in (await consumer.getmany(timeout_ms=1000, max_records=50)).values():
                    values += [int(record.value) for record in records]
                if rng.random() < 0.2:
                    proxy.reset_connections()
                if rng.random() < 0.2:
                    await consumer.commit()
                    assert await consumer.committed(tp) == len(values)
        assert values == list(range(count))
        assert proxy.counters.cuts > 0

    with FaultProxy() as proxy, EmbeddedBroker(advertised_port=proxy.port) as broker:
        proxy.target = broker.bootstrap_servers
        with KafkaProducer(bootstrap_servers=proxy.bootstrap_servers) as producer:
            for value in range(count):
                producer.send(topic, b"%d" % value)
        run(main(proxy))


@pytest.mark.parametrize("listener", [("SSL",), ("SASL_SSL", "SCRAM-SHA-256")], ids=["tls", "scram"])
def test_large_records_are_read_over_tls(run, secure_broker, topic, listener):
    """TLS may have decrypted data that the descriptor of epoll does not report."""
    settings = secure_broker.settings(*listener)
    values = [bytes([number]) * 300_000 for number in range(20)]
    with KafkaProducer(**settings) as producer:
        for value in values:
            producer.send(topic, value)

    async def main():
        consumer = AIOKafkaConsumer(topic, group_id=topic, auto_offset_reset="earliest", **settings)
        async with consumer:
            assert [(await consumer.getone()).value for _ in values] == values
            await consumer.commit()

    run(main())


def test_iteration_lets_other_tasks_run(run, topic, produce, new_consumer):
    produce(topic, range(1000))

    async def main():
        turns = 0

        async def count():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with new_consumer(topic, max_poll_records=1000) as consumer:
            await consumer.getone()
            counting = asyncio.create_task(count())
            before = turns
            for _ in range(999):
                await consumer.getone()
            assert turns - before >= 9
            counting.cancel()

    run(main())


def test_records_read_during_processing_are_not_lost_by_an_error(run, topic, produce, new_consumer):
    """A block that ends with an exception does not commit, so that its last record is read again."""
    produce(topic, range(3))

    async def main():
        async def fail():
            async with new_consumer(topic, group_id=topic) as consumer:
                await consumer.getone()
                raise ValueError("failed")

        with pytest.raises(ValueError, match="failed"):
            await fail()
        async with new_consumer(topic, group_id=topic) as consumer:
            assert (await consumer.getone()).value == b"0"
        async with new_consumer(topic, group_id=topic) as consumer:
            assert (await consumer.getone()).value == b"1"

    run(main())
