"""The asynchronous producer."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Never, Self, Unpack

from kafkacore.aio._batch_builder import BatchBuilder
from kafkacore.aio._greenlets import run, wait
from kafkacore.aio._loop_clock import LoopClock, WouldBlockError
from kafkacore.aio._producer_interceptor import ProducerInterceptorCaller
from kafkacore.aio._producer_settings import AIOKafkaProducerConfig, resolve_aio_producer
from kafkacore.aio._sender_loop import SenderLoop
from kafkacore.aio._token_provider import TokenProviderCaller
from kafkacore.client.config import refuse_positional
from kafkacore.errors import IllegalOperation, IllegalStateError
from kafkacore.producer._batch_future import BatchFuture
from kafkacore.producer._future import FutureRecordMetadata
from kafkacore.producer._produce_future import LoopFutures, ProduceFuture
from kafkacore.producer.interceptors import Headers
from kafkacore.producer.kafka_producer import INTERRUPTED_CLOSE_TIMEOUT_S, KafkaProducer
from kafkacore.producer.record_metadata import RecordMetadata
from kafkacore.record._source import RecordSource
from kafkacore.security.first_fetch import fetching_by
from kafkacore.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from kafkacore.wire.copying import refuse_copy


class AIOKafkaProducer:
    """A producer for asyncio, with the methods of aiokafka's ``AIOKafkaProducer``.

    It consists of the same objects as :class:`~kafkacore.KafkaProducer`. Callbacks of the event loop do the
    work of the network thread, and no thread is started. Use a producer only in the event loop that called
    :meth:`start`.

    Parameters
    ----------
    **configs
        Settings as keyword arguments: those of :class:`~kafkacore.KafkaProducer`, and ``max_batch_size``,
        which is aiokafka's name of ``batch_size``.

    Raises
    ------
    ProducerConfigurationError
        A setting is unknown or has an invalid value. This is also a ``ValueError``.

    Notes
    -----
    The constructor does no I/O and needs no event loop. Await :meth:`stop`, or use ``async with``. A
    cancellation of any call leaves the producer usable: a cancelled :meth:`send` sends nothing, and other
    calls continue in the background.
    """

    def __init__(self, *positional: object, **configs: Unpack[AIOKafkaProducerConfig]) -> None:
        refuse_positional(type(self).__name__, positional)
        self.config = resolve_aio_producer(configs)
        self._producer: KafkaProducer | None = None
        self._has_begun = False
        #: Appends a record that needs no further processing; ``None`` if records need it.
        self._append: Any = None

    # ---- Start and stop ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect to a broker. With a ``transactional_id``, also register it with the broker.

        The call waits for at most ``bootstrap_timeout_ms`` or ``max_block_ms``, whichever is less. If it
        fails or is cancelled, the producer is closed, and ``start()`` can be called again.

        Raises
        ------
        NoBrokersAvailable
            No broker responded in time.
        ProducerFencedError, TransactionalIdAuthorizationFailedError, UnsupportedVersionError
            See :meth:`KafkaProducer.init_transactions`.
        IllegalStateError
            The producer has been started before.
        """
        if self._has_begun:
            raise IllegalStateError("this AIOKafkaProducer has been started before; create a new one")
        self._has_begun = True
        try:
            await run(self._start, asyncio.get_running_loop())
        except BaseException:
            self._has_begun = False
            raise

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        clock = LoopClock(loop)
        config = dict(self.config)
        config["interceptors"] = [ProducerInterceptorCaller(each, loop) for each in config["interceptors"]]
        TokenProviderCaller.wrap(config, loop)
        with fetching_by(lambda fetch: wait(loop.run_in_executor(None, fetch))):
            producer = KafkaProducer._opened(
                config, clock, partial(SenderLoop, loop=loop, clock=clock), type(self).__name__
            )
        if self.config["transactional_id"] is not None:
            try:
                producer.init_transactions()
            except BaseException:
                producer.close(timeout=0)
                raise
        self.config["client_id"] = config["client_id"]
        self._futures = LoopFutures(loop)
        self._random = clock.random
        if producer._preparer.is_plain:
            self._append = producer._accumulator.append
        self._producer = producer

    async def stop(self, timeout: float | None = None) -> None:
        """Send the remaining records, then close the connections. An open transaction is aborted.

        If the call is cancelled, the producer continues to close, and another call waits for the end.

        Parameters
        ----------
        timeout:
            Seconds to wait for the records. After that, the remaining records fail. With ``None``, the call
            waits until each record is acknowledged or has failed, which ``delivery_timeout_ms`` limits.
        """
        if self._producer is not None:
            await run(self._producer.close, timeout)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        interrupted = exc_type is not None and not issubclass(exc_type, Exception)
        await self.stop(INTERRUPTED_CLOSE_TIMEOUT_S if interrupted else None)

    def _started(self) -> KafkaProducer:
        if self._producer is None:
            raise IllegalStateError("this AIOKafkaProducer is not started: await its start() first")
        return self._producer

    # ---- Sending -------------------------------------------------------------------------------------------

    async def send(
        self,
        topic: str,
        value: object = None,
        key: object = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> ProduceFuture[RecordMetadata]:
        """Append a record to a batch, and return a future of its outcome.

        The call waits only if the topic is not known yet, or if no memory is free. If it is cancelled, the
        record is not sent.

        Parameters
        ----------
        topic, value, key, partition, timestamp_ms, headers:
            See :meth:`KafkaProducer.send`.

        Returns
        -------
        ProduceFuture
            Future of asyncio with the :class:`RecordMetadata`, or the error of the record. To cancel it does
            not cancel the record.

        Raises
        ------
        KafkaTimeoutError, MessageSizeTooLargeError, TypeError, ValueError, IllegalStateError
            See :meth:`KafkaProducer.send`.
        """
        future: FutureRecordMetadata | None = None
        if self._append is not None and (value is not None or key is not None):
            try:
                future = self._append(topic, value, key, headers, partition, timestamp_ms)
            except WouldBlockError:
                future = None
        if future is None:
            future = await run(self._started().send, topic, value, key, headers, partition, timestamp_ms)
        return self._futures.of_record(future)

    async def send_and_wait(
        self,
        topic: str,
        value: object = None,
        key: object = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> RecordMetadata:
        """Send a record, and wait until it is acknowledged.

        If the wait is cancelled, the producer continues to send the record. See :meth:`send`.
        """
        return await (await self.send(topic, value, key, partition, timestamp_ms, headers))

    def create_batch(self) -> BatchBuilder:
        """Return an empty batch for :meth:`send_batch`."""
        return BatchBuilder(self.config["batch_size"], *self._started()._preparer.serializers)

    async def send_batch(
        self, batch: BatchBuilder, topic: str, *, partition: int | None
    ) -> ProduceFuture[RecordMetadata]:
        """Send the records of a :class:`BatchBuilder` to a partition, in their order.

        Parameters
        ----------
        batch:
            Batch that :meth:`create_batch` returned. It is closed.
        topic, partition:
            Where to send the records. ``None`` selects a random partition.

        Returns
        -------
        ProduceFuture
            Future that is done when all records are done. Its result is the :class:`RecordMetadata` of the
            first record.

        Raises
        ------
        ValueError
            The batch is empty, or the topic does not have this partition.
        KafkaTimeoutError, MessageSizeTooLargeError, IllegalStateError
            See :meth:`KafkaProducer.send_batch`.
        """
        if not batch.record_count():
            raise ValueError("the batch has no records")
        future = await run(self._send_built, self._started(), batch.source(), topic, partition)
        return self._futures.of_batch(future)

    def _send_built(
        self, producer: KafkaProducer, source: RecordSource, topic: str, partition: int | None
    ) -> BatchFuture:
        if partition is None:
            partition = self._random.choice(sorted(producer.partitions_for(topic)))
        return producer._preparer.send_source(topic, source, partition)

    async def send_rows(
        self,
        topic: str,
        values: Iterable[object],
        keys: Iterable[object] | None = None,
        headers: Iterable[Headers | None] | None = None,
        timestamps: Iterable[int | None] | None = None,
        partition: int | None = None,
    ) -> ProduceFuture[array[int]]:
        """Send many records in one call, as :meth:`KafkaProducer.send_batch` does.

        If the call is cancelled while it waits for memory, it may have sent the first rows.

        Returns
        -------
        ProduceFuture
            Future of the offsets of all rows.

        Raises
        ------
        KafkaTimeoutError, MessageSizeTooLargeError, TypeError, ValueError, IllegalStateError
            See :meth:`KafkaProducer.send_batch`.
        """
        send_batch = self._started().send_batch
        return self._futures.of_rows(
            await run(send_batch, topic, values, keys, headers, timestamps, partition)
        )

    async def send_arrow(
        self,
        topic: str,
        table: object,
        *,
        value: str = "value",
        key: str = "key",
        headers: str = "headers",
        timestamp: str = "timestamp",
        partition: str | int = "partition",
        allow_empty: bool = False,
    ) -> ProduceFuture[array[int]]:
        """Send the rows of a table. See :meth:`KafkaProducer.send_arrow` and :meth:`send_rows`."""
        future = await run(
            self._started().send_arrow,
            topic,
            table,
            value=value,
            key=key,
            headers=headers,
            timestamp=timestamp,
            partition=partition,
            allow_empty=allow_empty,
        )
        return self._futures.of_rows(future)

    async def flush(self, timeout: float | None = None) -> None:
        """Send all records now, and wait until each of them is acknowledged or has failed.

        Parameters
        ----------
        timeout:
            Seconds to wait. ``None`` sets no limit, but ``delivery_timeout_ms`` limits the wait anyway.

        Raises
        ------
        KafkaTimeoutError
            Some records were neither acknowledged nor failed in time. The producer continues to send them.
        """
        await run(self._started().flush, timeout)

    async def partitions_for(self, topic: str) -> set[int]:
        """Return the partition numbers of a topic. See :meth:`KafkaProducer.partitions_for`."""
        return await run(self._started().partitions_for, topic)

    def metrics(self, raw: bool = False) -> Any:
        """Return the current metrics. See :meth:`KafkaProducer.metrics`."""
        return self._started().metrics(raw)

    # ---- Transactions --------------------------------------------------------------------------------------

    def _transactional(self) -> KafkaProducer:
        if self.config["transactional_id"] is None:
            raise IllegalOperation(
                "transactions need a transactional_id: AIOKafkaProducer(transactional_id=...)"
            )
        return self._started()

    async def begin_transaction(self) -> None:
        """Begin a transaction. See :meth:`KafkaProducer.begin_transaction`.

        Raises
        ------
        IllegalOperation
            The producer has no ``transactional_id``.
        """
        self._transactional().begin_transaction()

    async def commit_transaction(self) -> None:
        """Send the remaining records, then commit the transaction.

        If the call is cancelled, the commit continues. Call the method again to wait for it. See
        :meth:`KafkaProducer.commit_transaction` for the errors.
        """
        await run(self._transactional().commit_transaction)

    async def abort_transaction(self) -> None:
        """Abort the transaction. See :meth:`KafkaProducer.abort_transaction`.

        If the call is cancelled, the abort continues. Call the method again to wait for it.
        """
        await run(self._transactional().abort_transaction)

    def transaction(self) -> TransactionContext:
        """Return a context that begins a transaction, and commits it, or aborts it after an exception."""
        return TransactionContext(self)

    async def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | tuple[int, str] | int],
        group_id: str | ConsumerGroupMetadata,
    ) -> None:
        """Commit offsets of a consumer group as part of the transaction.

        Parameters
        ----------
        offsets:
            Partition → offset of the next record to read, with or without a text.
        group_id:
            Name of the group; or its metadata, which lets the broker reject the offsets of a consumer that
            has lost its partitions.

        Raises
        ------
        CommitFailedError, FencedInstanceIdError, GroupAuthorizationFailedError, KafkaTimeoutError
            See :meth:`KafkaProducer.send_offsets_to_transaction`.
        TypeError, ValueError, IllegalStateError, ProducerFencedError
            See :meth:`KafkaProducer.send_offsets_to_transaction`.
        """
        producer = self._transactional()
        positions: Any = offsets
        if isinstance(offsets, Mapping):
            positions = {partition: _offset_of(each) for partition, each in offsets.items()}
        await run(producer.send_offsets_to_transaction, positions, group_id)

    def __reduce__(self) -> Never:
        refuse_copy(self, "its connections belong to this process; create one in each process")

    def __repr__(self) -> str:
        return f"<AIOKafkaProducer client_id={self.config['client_id']}>"


class TransactionContext:
    """The context of :meth:`AIOKafkaProducer.transaction`.

    Parameters
    ----------
    producer:
        A started producer.
    """

    def __init__(self, producer: AIOKafkaProducer) -> None:
        self._producer = producer

    async def __aenter__(self) -> Self:
        await self._producer.begin_transaction()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if exc_type is None:
            await self._producer.commit_transaction()
            return
        manager = self._producer._started()._transactions
        # After a fatal error, such as ProducerFencedError, nothing can be aborted.
        if manager is not None and manager.error is None:
            await self._producer.abort_transaction()


def _offset_of(given: Any) -> Any:
    """Convert an offset, or a tuple of an offset and a text, to an ``OffsetAndMetadata``."""
    if isinstance(given, int) and not isinstance(given, bool):
        return OffsetAndMetadata(given)
    if type(given) is tuple and len(given) == 2:
        return OffsetAndMetadata(*given)
    return given
