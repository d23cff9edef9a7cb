"""The clients start no thread, apart from the native one that writes the heartbeats of a group member."""

import asyncio
import contextlib
import os
import threading

from kafkacore.aio import AIOKafkaAdminClient, AIOKafkaConsumer, AIOKafkaProducer


def task_count():
    """Return the number of threads of this process, including those of native code."""
    return len(os.listdir("/proc/self/task"))


def test_ten_clients_at_work_start_no_thread(run, topic, our_broker):
    servers = our_broker.bootstrap_servers

    async def main():
        before, threads = task_count(), threading.active_count()
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
            assert (task_count(), threading.active_count()) == (before, threads)

    run(main())


def test_member_of_a_group_adds_its_native_heartbeats_only(run, topic, our_broker):
    async def main():
        threads = threading.active_count()
        async with contextlib.AsyncExitStack() as stack:
            before = task_count()
            for number in range(10):
                await stack.enter_async_context(
                    AIOKafkaConsumer(
                        topic, bootstrap_servers=our_broker.bootstrap_servers, group_id=f"{topic}-{number}"
                    )
                )
            assert (task_count() - before, threading.active_count()) == (10, threads)

    run(main())
