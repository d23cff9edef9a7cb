"""The asynchronous clients with the methods of the synchronous ones, so that one test covers both façades.

The event loop of a client runs only while the test calls the client or waits for one of its futures.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable
from functools import partial
from typing import Any, Self

from kafkacore import ConsumerRecord, KafkaProducer
from kafkacore.aio import AIOKafkaConsumer, AIOKafkaProducer
from kafkacore.errors import KafkaTimeoutError


class OwnLoop:
    """The event loop of one client, in the thread of the test."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._pid = os.getpid()
        self._is_closed = False

    def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call a function or a coroutine function in the event loop, and return its result."""
        if asyncio._get_running_loop() is not None:
            # The client has called a deserializer or a partitioner, which calls the client.
            return function(*args, **kwargs)
        if self._is_closed or os.getpid() != self._pid:
            # The client rejects the call, in whichever loop it is made.
            return asyncio.run(_result(function, *args, **kwargs))
        return self._runner.run(_result(function, *args, **kwargs))

    def call_from_any_thread(self, function: Callable[[], object]) -> None:
        """Let the event loop call a function when it runs."""
        self._runner.get_loop().call_soon_threadsafe(function)

    def close(self) -> None:
        # A forked child must not change the epoll that its parent's loop uses.
        if os.getpid() == self._pid:
            self._is_closed = True
            self._runner.close()


async def _result(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    result = function(*args, **kwargs)
    return await result if inspect.iscoroutine(result) else result


class LoopConsumer:
    """``AIOKafkaConsumer`` with the methods of ``KafkaConsumer``. The constructor starts it.

    Arguments are those of ``AIOKafkaConsumer``. Methods that are not listed here are the consumer's own.
    """

    def __init__(self, *topics: str, **configs: Any) -> None:
        self._consumer = AIOKafkaConsumer(*topics, **configs)
        self._loop = OwnLoop()
        try:
            self._loop.call(self._consumer.start)
        except BaseException:
            self.close()
            raise

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(self._loop.call, getattr(self._consumer, name))

    def poll(self, timeout_ms: float = 0, max_records: int | None = None) -> Any:
        return self._loop.call(self._consumer.getmany, timeout_ms=timeout_ms, max_records=max_records)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ConsumerRecord:
        try:
            record: ConsumerRecord = self._loop.call(self._consumer.__anext__)
        except StopAsyncIteration:
            raise StopIteration from None
        return record

    def wakeup(self) -> None:
        self._loop.call_from_any_thread(self._consumer.wakeup)

    def close(self) -> None:
        try:
            self._loop.call(self._consumer.stop)
        finally:
            self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            self._loop.call(self._consumer.__aexit__, *error)
        finally:
            self._loop.close()


class LoopFuture:
    """A future of ``AIOKafkaProducer`` with the methods of ``FutureRecordMetadata``."""

    def __init__(self, loop: OwnLoop, future: Any) -> None:
        self._loop = loop
        self._future = future

    @property
    def is_done(self) -> bool:
        done: bool = self._future.done()
        return done

    @property
    def exception(self) -> BaseException | None:
        error: BaseException | None = self._future.exception() if self.is_done else None
        return error

    def succeeded(self) -> bool:
        return self.is_done and self.exception is None

    def failed(self) -> bool:
        return self.is_done and self.exception is not None

    def get(self, timeout: float | None = None) -> Any:
        """Run the event loop until the outcome is known."""
        if not self.is_done:
            self._loop.call(asyncio.wait, [self._future], timeout=timeout)
        if not self.is_done:
            raise KafkaTimeoutError(f"the outcome is not known after {timeout} s")
        return self._future.result()


class LoopProducer:
    """``AIOKafkaProducer`` with the methods of ``KafkaProducer``. The constructor starts it.

    Arguments are those of ``AIOKafkaProducer``. Methods that are not listed here are the producer's own.
    """

    def __init__(self, **configs: Any) -> None:
        self._producer = AIOKafkaProducer(**configs)
        self._loop = OwnLoop()
        try:
            self._loop.call(self._producer.start)
        except BaseException:
            self._loop.close()
            raise

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(self._loop.call, getattr(self._producer, name))

    @property
    def config(self) -> dict[str, Any]:
        return self._producer.config

    def send(
        self,
        topic: str,
        value: object = None,
        key: object = None,
        headers: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> LoopFuture:
        future = self._loop.call(
            self._producer.send,
            topic,
            value,
            key,
            headers=headers,
            partition=partition,
            timestamp_ms=timestamp_ms,
        )
        return LoopFuture(self._loop, future)

    def send_batch(self, *args: Any, **kwargs: Any) -> LoopFuture:
        return LoopFuture(self._loop, self._loop.call(self._producer.send_rows, *args, **kwargs))

    def send_arrow(self, *args: Any, **kwargs: Any) -> LoopFuture:
        return LoopFuture(self._loop, self._loop.call(self._producer.send_arrow, *args, **kwargs))

    def close(self, timeout: float | None = None) -> None:
        try:
            self._loop.call(self._producer.stop, timeout)
        finally:
            self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            self._loop.call(self._producer.__aexit__, *error)
        finally:
            self._loop.close()


def engine_of(producer: KafkaProducer | LoopProducer) -> KafkaProducer:
    """Return the object that has the parts of a producer of either façade."""
    if isinstance(producer, KafkaProducer):
        return producer
    engine = producer._producer._producer
    assert engine is not None
    return engine
