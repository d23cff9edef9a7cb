"""The clients start no thread, apart from the native one that writes the heartbeats of a group member."""

import asyncio
import contextlib
import os
import threading

from kafkacore.aio import AIOKafkaAdminClient, AIOKafkaConsumer, AIOKafkaProducer


def tasks():
    """Return the threads of this process, including those of native code.

    The tests compare sets, because threads of an earlier test may end at any time.
    """
    return set(os.listdir("/proc/self/task"))


def test_ten_clients_at_work_start_no_thread(run, topic, our_broker):
    servers = our_broker.bootstrap_servers

    async def main():
        before, threads = tasks(), set(threading.enumerate())
        async with contextlib.AsyncExitStack() as stack:
            producers = [
                await stack.enter_async_context(AIOKafkaProducer(bootstrap_servers=servers)) for _ in range(4)
            ]
            await asyncio.gather(*[each.send_and_wait(topic, b"v") for each in producers])
            consumers = [
                await stack.enter_async_context(
                    AIOKafkaConsumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest")
                )
                for _ in range(4)
            ]
            for each in consumers:
                assert (await each.getone()).value == b"v"
            for _ in range(2):
                admin = await stack.enter_async_context(AIOKafkaAdminClient(bootstrap_servers=servers))
                assert topic in await admin.list_topics()
            assert (tasks() - before, set(threading.enumerate()) - threads) == (set(), set())

    run(main())


def test_member_of_a_group_adds_its_native_heartbeats_only(run, topic, our_broker):
    async def main():
        threads = set(threading.enumerate())
        async with contextlib.AsyncExitStack() as stack:
            before = tasks()
            for number in range(10):
                await stack.enter_async_context(
                    AIOKafkaConsumer(
                        topic, bootstrap_servers=our_broker.bootstrap_servers, group_id=f"{topic}-{number}"
                    )
                )
            assert len(tasks() - before) == 10
            assert set(threading.enumerate()) <= threads

    run(main())
