"""The client aiokafka, with uvloop if it is installed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

from kafkacore.bench.pacing import Pacer
from kafkacore.bench.peers import CHUNK_RECORDS, POLL_MS, Take, stream
from kafkacore.bench.task import ClientSettings


def _new_loop() -> asyncio.AbstractEventLoop:
    if find_spec("uvloop") is None:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = import_module("uvloop").new_event_loop()
    return loop


class Producer:
    """Loop that awaits ``AIOKafkaProducer.send``, which returns when the record is in a batch."""

    def __init__(self, settings: ClientSettings) -> None:
        self._loop = _new_loop()
        self._settings = settings
        self._loop.run_until_complete(self._start())

    async def _start(self) -> None:
        self._client = import_module("aiokafka").AIOKafkaProducer(**self._settings)
        await self._client.start()

    def send_all(self, topic: str, values: Sequence[bytes], count: int) -> None:
        self._loop.run_until_complete(self._send_all(topic, values, count))

    async def _send_all(self, topic: str, values: Sequence[bytes], count: int) -> None:
        send = self._client.send
        for value in stream(values, count):
            await send(topic, value)
        await self._client.flush()

    def send_paced(self, topic: str, values: Sequence[bytes], pacer: Pacer) -> None:
        self._loop.run_until_complete(self._send_paced(topic, values, pacer))

    async def _send_paced(self, topic: str, values: Sequence[bytes], pacer: Pacer) -> None:
        send = self._client.send
        pacer.begin()
        for index in range(pacer.count):
            while (left_ms := pacer.wait_ms(index)) > 0:
                await asyncio.sleep(left_ms / 1000)
            future = await send(topic, values[index % len(values)])
            future.add_done_callback(
                lambda done, index=index: pacer.fail() if done.exception() else pacer.done(index)
            )
        await self._client.flush()

    def close(self) -> None:
        self._loop.run_until_complete(self._client.stop())
        self._loop.close()


class Consumer:
    """Loop over ``AIOKafkaConsumer.getmany``."""

    def __init__(self, settings: ClientSettings, poll_records: int) -> None:
        self._loop = _new_loop()
        self._settings = settings
        self._loop.run_until_complete(self._start())

    async def _start(self) -> None:
        self._module = import_module("aiokafka")
        self._client = self._module.AIOKafkaConsumer(**self._settings)
        await self._client.start()

    def assign(self, topic: str, partitions: int) -> None:
        self._loop.run_until_complete(self._assign(topic, partitions))

    async def _assign(self, topic: str, partitions: int) -> None:
        self._client.assign([self._module.TopicPartition(topic, number) for number in range(partitions)])

    def subscribe(self, topic: str) -> None:
        self._client.subscribe([topic])

    def read(self, count: int, take: Take) -> None:
        self._loop.run_until_complete(self._read(count, take))

    async def _read(self, count: int, take: Take) -> None:
        getmany, got = self._client.getmany, 0
        while got < count:
            found = await getmany(timeout_ms=POLL_MS)
            for records in found.values():
                got += len(records)
                for at in range(0, len(records), CHUNK_RECORDS):
                    take([record.value for record in records[at : at + CHUNK_RECORDS]])
            if not found:
                take([])

    def rewind(self) -> None:
        self._loop.run_until_complete(self._rewind())

    async def _rewind(self) -> None:
        for partition in self._client.assignment():
            self._client.seek(partition, 0)

    def close(self) -> None:
        self._loop.run_until_complete(self._client.stop())
        self._loop.close()
