"""Run one asyncio client in a process of its own, for ``asyncio_clients.py``.

    python bench/macro/asyncio_worker.py '{"client": "kafkacore", "work": "gather", …}'

The argument is a JSON object with the fields of :class:`Task`, and the output is one with the figures.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any

#: Records whose sends are awaited together, or that are sent by one call.
GATHERED = 1_000
VALUE = bytes(range(100))
#: Size of a batch in the work ``batch``, in bytes, so that the records of one call are in one batch.
LARGE_BATCH = 1_000_000
#: Records per second of the work ``debug``, and the seconds after which a callback is slow there.
DEBUG_RATE = 100_000
SLOW_S = 0.005
HTTP_LOAD = str(Path(__file__).with_name("http_load.py"))


@dataclass(frozen=True)
class Task:
    """The work of a process.

    Attributes
    ----------
    client:
        ``kafkacore``, ``aiokafka`` or ``confluent``.
    work:
        Name of a function in ``WORKS``.
    records, warm_up:
        Records that are measured, and records before them that are not.
    rate:
        Records per second of the work ``paced``.
    """

    client: str
    work: str
    servers: str
    topic: str
    records: int
    warm_up: int
    rate: int = 1_000


class AiokafkaStyle:
    """A producer and a consumer with aiokafka's API: aiokafka's own, or kafkacore's."""

    def __init__(self, task: Task) -> None:
        self._task = task
        if task.client == "aiokafka":
            import aiokafka as module
        else:
            import kafkacore.aio as module
        self._module: Any = module
        self._client: Any = None

    async def start_producer(self) -> None:
        large = {"max_batch_size": LARGE_BATCH} if self._task.work == "batch" else {}
        self._client = self._module.AIOKafkaProducer(bootstrap_servers=self._task.servers, acks=1, **large)
        await self._client.start()

    async def start_consumer(self) -> None:
        self._client = self._module.AIOKafkaConsumer(
            self._task.topic,
            bootstrap_servers=self._task.servers,
            group_id=None,
            auto_offset_reset="earliest",
        )
        await self._client.start()

    async def stop(self) -> None:
        await self._client.stop()

    def begin_send(self) -> Awaitable[Awaitable[Any]]:
        future: Awaitable[Awaitable[Any]] = self._client.send(self._task.topic, VALUE)
        return future

    def send(self) -> Awaitable[Any]:
        sent: Awaitable[Any] = self._client.send_and_wait(self._task.topic, VALUE)
        return sent

    async def send_batch(self) -> None:
        if self._task.client == "kafkacore":
            await (await self._client.send_rows(self._task.topic, [VALUE] * GATHERED))
            return
        # aiokafka has no call for many records: a batch is built by a call for each of them.
        left = GATHERED
        sent = []
        while left:
            batch = self._client.create_batch()
            while left and batch.append(key=None, value=VALUE, timestamp=None) is not None:
                left -= 1
            sent.append(await self._client.send_batch(batch, self._task.topic, partition=0))
        await asyncio.gather(*sent)

    async def consume(self, records: int) -> None:
        async for _ in self._client:
            records -= 1
            if not records:
                return

    async def consume_lists(self, records: int) -> None:
        while records > 0:
            found = await self._client.getmany(timeout_ms=1_000)
            records -= sum(map(len, found.values()))


class Confluent:
    """The asyncio clients of confluent-kafka, which call librdkafka in a pool of threads."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._client: Any = None
        self._polling: asyncio.Task[None] | None = None

    async def start_producer(self) -> None:
        from confluent_kafka.aio import AIOProducer

        # By default, the client waits for 1,000 records or for a second before it sends.
        is_single = self._task.work in ("each", "paced", "fastapi")
        large = {"batch.size": LARGE_BATCH} if self._task.work == "batch" else {}
        self._client = AIOProducer(
            {"bootstrap.servers": self._task.servers, "acks": 1, "linger.ms": 0, **large},
            batch_size=1 if is_single else GATHERED,
        )
        if is_single:
            self._polling = asyncio.create_task(self._poll())

    async def _poll(self) -> None:
        # The client itself handles acknowledgements only when it sends the next record.
        while True:
            await self._client.poll(0.1)

    async def start_consumer(self) -> None:
        from confluent_kafka.aio import AIOConsumer

        self._client = AIOConsumer(
            {
                "bootstrap.servers": self._task.servers,
                "group.id": f"{self._task.topic}-{time.time_ns()}",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        await self._client.subscribe([self._task.topic])

    async def stop(self) -> None:
        if self._polling is not None:
            self._polling.cancel()
        await self._client.close()

    def begin_send(self) -> Awaitable[Awaitable[Any]]:
        future: Awaitable[Awaitable[Any]] = self._client.produce(self._task.topic, value=VALUE)
        return future

    async def send(self) -> None:
        await (await self.begin_send())

    async def send_batch(self) -> None:
        await asyncio.gather(*[self.send() for _ in range(GATHERED)])

    async def consume(self, records: int) -> None:
        while records > 0:
            message = await self._client.poll(1.0)
            if message is not None and message.error() is None:
                records -= 1


class Figures:
    """The CPU time and the wall time since the creation of this object."""

    def __init__(self, records: int) -> None:
        self._records = records
        self._cpu_s, self._wall_s = time.process_time(), time.perf_counter()

    def read(self) -> dict[str, Any]:
        per_million = 1e6 / self._records
        return {
            "cpu_s_per_million": (time.process_time() - self._cpu_s) * per_million,
            "records_per_s": self._records / (time.perf_counter() - self._wall_s),
        }


async def gather(client: Any, task: Task) -> dict[str, Any]:
    """Send 1,000 records, and gather their futures."""

    async def step() -> None:
        await asyncio.gather(*[await client.begin_send() for _ in range(GATHERED)])

    return await measured_steps(client, task, step, GATHERED)


async def tasks(client: Any, task: Task) -> dict[str, Any]:
    """Send 1,000 records in a task each."""

    async def step() -> None:
        await asyncio.gather(*[client.send() for _ in range(GATHERED)])

    return await measured_steps(client, task, step, GATHERED)


async def batch(client: Any, task: Task) -> dict[str, Any]:
    """Send 1,000 records at once, by the client's cheapest call."""
    return await measured_steps(client, task, client.send_batch, GATHERED)


async def each(client: Any, task: Task) -> dict[str, Any]:
    """Await every send before the next one."""
    return await measured_steps(client, task, client.send, 1)


async def measured_steps(
    client: Any, task: Task, step: Callable[[], Awaitable[Any]], records: int
) -> dict[str, Any]:
    """Repeat ``step``, which sends ``records`` records, until all records are sent."""
    await client.start_producer()
    for _ in range(0, task.warm_up, records):
        await step()
    figures = Figures(task.records)
    for _ in range(0, task.records, records):
        await step()
    read = figures.read()
    await client.stop()
    return read


async def paced(client: Any, task: Task) -> dict[str, Any]:
    """Send a record whenever one is due, and measure the time from then until it is acknowledged."""
    await client.start_producer()
    for _ in range(task.warm_up):
        await client.send()
    latencies_ms: list[float] = []

    async def one(due_s: float) -> None:
        await client.send()
        latencies_ms.append((time.perf_counter() - due_s) * 1_000)

    figures = Figures(task.records)
    began_s = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for number in range(task.records):
            due_s = began_s + number / task.rate
            await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
            tasks.create_task(one(due_s))
    read = figures.read()
    await client.stop()
    cuts = quantiles(latencies_ms, n=100)
    return read | {"p50_ms": cuts[49], "p99_ms": cuts[98]}


class SlowCallbacks(logging.Handler):
    """Counts the callbacks that asyncio's debug mode reports as slow."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += record.msg.startswith("Executing")


def set_real_time_priority() -> bool:
    """Let no ordinary process interrupt this one, and return whether the system allows that.

    The broker runs on the same processors. When the kernel interrupts a callback, its duration includes the
    time of the other process.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        return False
    return True


async def debug(client: Any, task: Task) -> dict[str, Any]:
    """Send and read 100,000 records per second in asyncio's debug mode, and count callbacks over 5 ms."""
    reader = type(client)(task)
    await client.start_producer()
    await reader.start_consumer()
    for _ in range(0, task.warm_up, GATHERED):
        await client.send_batch()
    await reader.consume_lists(task.warm_up)
    has_priority = set_real_time_priority()
    slow = SlowCallbacks()
    logging.getLogger("asyncio").addHandler(slow)
    loop = asyncio.get_running_loop()
    loop.set_debug(True)
    loop.slow_callback_duration = SLOW_S
    figures = Figures(task.records)
    began_s = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        group.create_task(reader.consume_lists(task.records))
        for number in range(0, task.records, GATHERED):
            await asyncio.sleep(max(0.0, began_s + number / DEBUG_RATE - time.perf_counter()))
            group.create_task(client.send_batch())
    read = figures.read() | {"slow_callbacks": slow.count, "has_priority": has_priority}
    loop.set_debug(False)
    await reader.stop()
    await client.stop()
    return read


async def fastapi(client: Any, task: Task) -> dict[str, Any]:
    """Send a record for each request to a FastAPI application, which answers after the acknowledgement."""
    import uvicorn
    from fastapi import FastAPI

    app = FastAPI()

    @app.post("/orders")
    async def order(body: dict[str, str]) -> dict[str, str]:
        await client.send()
        return body

    async def load(requests: int) -> dict[str, Any]:
        arguments = (sys.executable, HTTP_LOAD, str(port), "/orders", str(requests))
        loading = await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.PIPE)
        out, _ = await loading.communicate()
        found: dict[str, Any] = json.loads(out)
        return found

    await client.start_producer()
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    # Only if the protocol is named, asyncio sets TCP_NODELAY for the connections. Without it, the second
    # write of each response waits 40 ms for an acknowledgement. uvicorn's command names it.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    # The load may begin before uvicorn listens.
    listener.listen()
    port = listener.getsockname()[1]
    serving = asyncio.create_task(server.serve([listener]))
    await load(task.warm_up)
    figures = Figures(task.records)
    found = await load(task.records)
    read = figures.read() | found
    server.should_exit = True
    await serving
    await client.stop()
    return read


async def iterate(client: Any, task: Task) -> dict[str, Any]:
    """Consume records one by one."""
    await client.start_consumer()
    await client.consume(task.warm_up)
    figures = Figures(task.records)
    await client.consume(task.records)
    read = figures.read()
    await client.stop()
    return read


WORKS = {
    "gather": gather,
    "tasks": tasks,
    "batch": batch,
    "each": each,
    "paced": paced,
    "debug": debug,
    "fastapi": fastapi,
    "iterate": iterate,
}


def main() -> None:
    task = Task(**json.loads(sys.argv[1]))
    client = Confluent(task) if task.client == "confluent" else AiokafkaStyle(task)
    print(json.dumps(asyncio.run(WORKS[task.work](client, task))))


if __name__ == "__main__":
    main()
