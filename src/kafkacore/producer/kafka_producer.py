"""The producer that the user has: a façade over the parts that :mod:`kafkacore.producer.components` makes."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, ClassVar, Never, Self, Unpack

from kafkacore.client.config import refuse_positional
from kafkacore.clock import SYSTEM_CLOCK
from kafkacore.errors import IllegalStateError, NoBrokersAvailable
from kafkacore.producer._batch_future import BatchFuture
from kafkacore.producer._future import FutureRecordMetadata
from kafkacore.producer._record_sender import RecordSender
from kafkacore.producer.components import make_components
from kafkacore.producer.config import producer_defaults, resolve_producer
from kafkacore.producer.config_types import ProducerConfig
from kafkacore.producer.prepared_transaction import PreparedTransaction
from kafkacore.producer.record_accumulator import RecordAccumulator
from kafkacore.producer.record_preparer import Headers
from kafkacore.producer.sender_thread import SenderThread
from kafkacore.producer.transaction_arguments import checked_group, checked_offsets
from kafkacore.producer.transaction_manager import TransactionManager
from kafkacore.producer.transaction_result import TransactionalRequestResult
from kafkacore.record._source import RecordSource
from kafkacore.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from kafkacore.wire.copying import refuse_copy

#: How long a close waits for a thread that has been told to drop everything.
FORCED_CLOSE_TIMEOUT_S = 5.0
#: How long leaving a ``with`` block by Ctrl-C or ``sys.exit`` waits for records.
INTERRUPTED_CLOSE_TIMEOUT_S = 5.0

#: Columns that ``poll_arrow()`` gives and that are no producer's to say.
SET_BY_BROKERS = ("offset", "timestamp_type")

_client_numbers = itertools.count(1)


class _Unclosed:
    """Warns of a producer that is dropped without ``close()``, and closes it.

    The producer shares it with its ``send``, so that a program that keeps either one keeps the producer open.
    """

    def __init__(self, client_id: str, thread: SenderThread, accumulator: RecordAccumulator) -> None:
        self._client_id = client_id
        self._thread = thread
        self._accumulator = accumulator

    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        if not self._thread.closing and not self._accumulator.is_forked:
            _warn(f"unclosed <KafkaProducer client_id={self._client_id}>", ResourceWarning, source=self)
            # Not waited for: this may be any thread, and any place in it.
            self._thread.initiate_close()


class KafkaProducer:
    """Publishes records to a Kafka cluster. Thread safe; one per process is usually right.

    ``send()`` appends a record to a batch and returns; a thread of the producer's own sends batches,
    repeats them where that may help, and states the outcome to the futures. Method and argument names are
    kafka-python's.

    Parameters
    ----------
    **configs
        kafka-python's settings, also those that it had before 3.0, and ``compression_level``,
        ``retry_backoff_max_ms``, ``interceptors``. Times are milliseconds, sizes bytes. The most used, with
        their defaults:

        ``bootstrap_servers`` ("localhost:9092"); ``acks`` ("all"; 1, 0); ``compression_type`` (None;
        "gzip", "snappy", "lz4", "zstd"); ``linger_ms`` (0), how long a batch waits for more; ``batch_size``
        (16384); ``buffer_memory`` (32 MiB), what all batches may hold before ``send()`` waits, for
        ``max_block_ms`` (60000) at most; ``delivery_timeout_ms`` (120000), by when each record has an
        outcome; ``retries`` (no limit); ``max_request_size`` (1 MiB);
        ``max_in_flight_requests_per_connection`` (5; without idempotence the order of a partition's records
        is kept with 1 only); ``key_serializer``, ``value_serializer`` (None: bytes are sent as they
        are), functions or :class:`kafkacore.serializer.Serializer`; ``partitioner``;
        ``partitioner_adaptive_partitioning_enable`` (True), whether records without a key go less often to
        partitions with a longer queue; ``partitioner_availability_timeout_ms`` (0: never), after which they
        avoid a broker that takes nothing; ``partitioner_ignore_keys`` (False).

        ``enable_idempotence`` (True): each record is in the log once, and in order, whatever has to be sent
        again. It needs ``acks="all"``, ``retries`` and at most 5
        ``max_in_flight_requests_per_connection``; where another of these is given it is off, with a warning,
        and an error if it was asked for. Then a record may be written twice if the answer to the first
        attempt was lost.

        ``transactional_id`` (None): a name that this producer keeps over restarts, and that no other one
        uses; with it records are sent in transactions. ``transaction_timeout_ms`` (60000): after which the
        broker aborts one by itself.

        ``interceptors``: objects like :class:`ProducerInterceptor`, which see each record before it is
        serialized and when it has its outcome. ``metric_reporters``: classes like
        :class:`kafkacore.metrics.MetricsReporter`; ``metrics_enabled`` (True).

        ``bootstrap_timeout_ms`` (30000): how long the constructor waits for a broker, but never longer than
        ``max_block_ms``. It does not wait at all with ``api_version``, or with ``max_block_ms=0``.

    Raises
    ------
    ProducerConfigurationError
        A setting is unknown or cannot be (a ``KafkaConfigurationError`` and a ``ValueError``).
    NoBrokersAvailable
        None of ``bootstrap_servers`` answers within ``bootstrap_timeout_ms`` or ``max_block_ms``, whichever
        is less.
    TypeError
        Settings were given as a dict. They are keyword arguments.

    Notes
    -----
    Not to be used after ``fork()`` in the child, which is refused; make a new one there. Close it, or use
    ``with``: at interpreter exit records still on their way get five seconds.
    """

    #: Every setting with its default.
    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = producer_defaults()

    def __init__(self, *positional: object, **configs: Unpack[ProducerConfig]) -> None:
        self._thread: SenderThread | None = None
        refuse_positional(type(self).__name__, positional)
        self.config = config = resolve_producer(configs)
        if config["client_id"] is None:
            config["client_id"] = f"kafkacore-producer-{next(_client_numbers)}"
        parts = make_components(config, SYSTEM_CLOCK)
        self._client, self._metadata, self._accumulator, self._thread, self._metrics = parts[:5]
        self._transactions = parts.transactions
        self._topics, self._preparer = parts.topics, parts.preparer
        unclosed = _Unclosed(config["client_id"], parts.thread, parts.accumulator)
        self._record_sender = RecordSender(
            parts.accumulator.records, parts.preparer, parts.preparer.is_plain, unclosed
        )
        if type(self).send is _SEND:
            # The compiled method itself: the interpreter calls it without a step in Python.
            self.send = self._record_sender.send  # type: ignore[method-assign]
        self._thread.start()
        # With api_version given, the constructor does not wait for a broker, as in kafka-python.
        if config["api_version"] is None and self._topics.max_block_ms > 0:
            self._await_bootstrap()

    def _await_bootstrap(self) -> None:
        limit = min("bootstrap_timeout_ms", "max_block_ms", key=lambda name: float(self.config[name]))
        timeout_ms = self.config[limit]
        try:
            version = self._metadata.request_update()
            self._client.wakeup()
            if not self._metadata.wait_for_update(version, timeout_ms):
                raise NoBrokersAvailable(
                    f"none of bootstrap_servers={self.config['bootstrap_servers']!r} answered within "
                    f"{limit}={timeout_ms}: is the broker running, and reachable from here?"
                    f"{self._topics.connection_errors()}"
                )
        except BaseException:
            self.close(timeout=0)
            raise

    # ---- Sending -----------------------------------------------------------------------------------------

    def send(
        self,
        topic: str,
        value: object = None,
        key: object = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> FutureRecordMetadata:
        """Publish a record; returns as soon as it has its place in a batch.

        Parameters
        ----------
        topic, partition:
            Where to. ``None`` for the partition lets the partitioner choose: by the key, or without one a
            partition for a batch's worth of records.
        value, key:
            Bytes-like, or what the serializers take. A record needs one of them; a ``None`` value deletes
            its key from a compacted topic.
        headers:
            Pairs of a name and bytes.
        timestamp_ms:
            Milliseconds since the epoch; ``None`` is now.

        Returns
        -------
        FutureRecordMetadata
            ``get(timeout=seconds)``, ``add_callback``, ``add_errback``. What the cluster says against the
            topic (:class:`InvalidTopicError`, :class:`TopicAuthorizationFailedError`) comes by it too.

        Raises
        ------
        KafkaTimeoutError
            Within ``max_block_ms`` the topic did not become known, or no memory became free.
        MessageSizeTooLargeError
            The record is larger than ``max_request_size``.
        TypeError, ValueError
            An argument that cannot be; a partition that the topic does not have.
        IllegalStateError
            The producer is closed, or belongs to the parent of this forked process; or it has a
            ``transactional_id`` and no transaction is open. One that has failed raises its own error.
        """
        # An instance has the compiled method in place of this one, unless its class overrides it.
        if getattr(self, "_record_sender", None) is None:
            raise IllegalStateError("KafkaProducer was not initialised")
        return self._record_sender.send(topic, value, key, headers, partition, timestamp_ms)

    # ---- Many records by one call -------------------------------------------------------------------------

    def send_batch(
        self,
        topic: str,
        values: Iterable[object],
        keys: Iterable[object] | None = None,
        headers: Iterable[Headers | None] | None = None,
        timestamps: Iterable[int | None] | None = None,
        partition: int | None = None,
    ) -> BatchFuture:
        """Publish many records in one call, encoded without the GIL. Rows of a partition keep their order.

        Parameters
        ----------
        topic, partition:
            Where to. ``None`` for the partition chooses for each row as :meth:`send` does.
        values, keys:
            Of each row bytes-like, ``None``, or what the serializers take; or Arrow binary or string data
            (whatever has ``__arrow_c_array__`` or ``__arrow_c_stream__``), as it is. A row needs one of them.
            Interceptors see each row; they cannot send it to another topic.
        headers:
            Of each row pairs of a ``str`` and bytes, or ``None``.
        timestamps:
            Of each row milliseconds since the epoch, or ``None``, which is the time of this call.

        Returns
        -------
        BatchFuture
            ``get(timeout=seconds)`` waits for all and gives their offsets; ``[row]`` is a row's own future.
            It holds what was passed until it is dropped; until ``send_batch`` returns that must not change.

        Raises
        ------
        MessageSizeTooLargeError, TypeError, ValueError
            A row is too large, or an argument cannot be; columns differ in length. No row has been sent.
        KafkaTimeoutError
            As of :meth:`send`. Where rows had their place before memory ran out, ``error.future`` is the
            BatchFuture of all, in which the others have failed.
        IllegalStateError
            The producer is closed, or belongs to the parent of this forked process; or it has a
            ``transactional_id`` and no transaction is open. One that has failed raises its own error.
        """
        return self._preparer.send_rows(topic, values, keys, headers, timestamps, partition)

    def send_arrow(
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
    ) -> BatchFuture:
        """Publish the rows of a table, encoded from its columns without the GIL.

        Parameters
        ----------
        table:
            A table, record batch or data frame with ``__arrow_c_array__`` or ``__arrow_c_stream__`` (pyarrow,
            polars, duckdb, pandas, and what :meth:`KafkaConsumer.poll_arrow` gives).
        value, key:
            Names of the columns, binary or string.
        headers:
            ``list<struct<key: string, value: binary>>`` or ``map<string, binary>``.
        timestamp:
            ``int64`` milliseconds or ``timestamp``; null is the time of this call.
        partition:
            ``int32`` or ``int64``; null chooses as :meth:`send` does. A number here is the partition of
            all rows.
        allow_empty:
            Send rows that have neither key nor value, too, as Java's producer does.

        Returns
        -------
        BatchFuture
            As of :meth:`send_batch`.

        Raises
        ------
        ValueError
            There is no column of values, or a column of another name: rename it, or leave it out. Columns
            ``offset`` and ``timestamp_type``, which a broker sets, are passed over. And as
            :meth:`send_batch`, whose errors all apply.
        TypeError
            No Arrow data, or a column of another type; or this producer has serializers or interceptors,
            which see each record.
        """
        self._preparer.check_takes_columns()
        is_name = isinstance(partition, str)
        source = RecordSource.from_arrow(
            table,
            value=value,
            key=key,
            headers=headers,
            timestamp=timestamp,
            partition=str(partition) if is_name else "partition",
            ignored=SET_BY_BROKERS,
        )
        if is_name:
            self._preparer.check_partitions(source)
        return self._preparer.send_source(
            topic, source, None if isinstance(partition, str) else partition, allow_empty
        )

    # ---- Transactions (KIP-98, 447, 939) -------------------------------------------------------------------
    # Each call that waits does so for ``max_block_ms`` at most. One that timed out, or was interrupted, goes
    # on: the same call again takes it up, any other is refused until then.

    def init_transactions(self) -> None:
        """Make this the one producer of its ``transactional_id``. Once, before the first transaction.

        What an earlier producer of the id has left open is ended, and that producer, if it still runs, is
        fenced: all that it tries from now on fails.

        Raises
        ------
        KafkaTimeoutError
            No answer within ``max_block_ms``; call it again.
        TransactionalIdAuthorizationFailedError
            The user may not use the id; to be called again once he may.
        UnsupportedVersionError
            The broker has no transactions.
        IllegalStateError
            It has been called already, or there is no ``transactional_id``.
        """
        self._await(self._manager("init_transactions()").init_transactions())

    def begin_transaction(self) -> None:
        """All records sent from now on, until the commit, are one whole.

        Raises
        ------
        IllegalStateError
            A transaction is open, or :meth:`init_transactions` has not returned.
        ProducerFencedError
            Another producer with the same ``transactional_id`` has been started; close this one.
        KafkaError
            The transaction before has failed; abort it.
        """
        self._manager("begin_transaction()", waits=False).begin_transaction()

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group_metadata: ConsumerGroupMetadata | str
    ) -> None:
        """Commit a consumer group's offsets with the transaction, and only with it.

        Parameters
        ----------
        offsets:
            Of each partition the *next* offset to read.
        group_metadata:
            The group. With generation and member of a consumer that was assigned the partitions, a consumer
            that has lost them meanwhile is fenced (KIP-447); a group's name alone fences nobody.

        Raises
        ------
        CommitFailedError, FencedInstanceIdError, GroupAuthorizationFailedError
            The group refuses the offsets: abort the transaction.
        KafkaTimeoutError
            No answer within ``max_block_ms``: abort, or call it again.
        IllegalStateError
            No transaction is open.
        ProducerFencedError
            As of :meth:`commit_transaction`.
        TypeError, ValueError
            An argument that cannot be.
        """
        manager = self._manager("send_offsets_to_transaction()")
        group = checked_group(group_metadata)
        checked = checked_offsets(offsets)
        if checked:
            self._await(manager.send_offsets(checked, group))

    def commit_transaction(self) -> None:
        """Send what has not been sent, and make all of the transaction visible at once.

        Raises
        ------
        KafkaTimeoutError
            It has not ended within ``max_block_ms``; call it again.
        ProducerFencedError, InvalidProducerEpochError, InvalidTxnStateError
            Another producer with the same ``transactional_id`` has been started, or the transaction took
            longer than ``transaction_timeout_ms``: close this one.
        KafkaError
            A record of the transaction has failed, with the first failure: call :meth:`abort_transaction`.
        IllegalStateError
            No transaction is open.
        """
        self._await(self._manager("commit_transaction()").begin_commit())

    def abort_transaction(self) -> None:
        """Have nothing of the transaction happen. Records that have not been sent fail with
        :class:`TransactionAbortedError`.

        Raises
        ------
        KafkaTimeoutError
            It has not ended within ``max_block_ms``; call it again.
        ProducerFencedError
            As of :meth:`commit_transaction`.
        IllegalStateError
            No transaction is open.
        """
        self._await(self._manager("abort_transaction()").begin_abort())

    def change_transactional_id(self, transactional_id: str) -> None:
        """Go on under another name, as a new producer would; :meth:`init_transactions` comes next.

        Raises
        ------
        IllegalStateError
            A transaction is open, or records are on their way.
        """
        self._manager("change_transactional_id()", waits=False).change_transactional_id(transactional_id)

    def prepare_transaction(self) -> PreparedTransaction:
        """Leave the transaction open for another producer, of any process, to end; call :meth:`flush` first.

        Until then the broker aborts it after ``transaction_timeout_ms``, or when a producer of the same name
        is initialized. After it, :meth:`init_transactions` comes next.

        Raises
        ------
        KafkaError
            A record of the transaction has failed, with the first failure: call :meth:`abort_transaction`.
        IllegalStateError
            No transaction is open, or records of it are on their way.
        """
        return self._manager("prepare_transaction()", waits=False).prepare()

    def take_over_transaction(self, prepared: PreparedTransaction) -> None:
        """Be inside a transaction that another producer has prepared: offsets, commit or abort are next.

        Nothing is asked of the broker: that the transaction is still open is learnt from what comes next.

        Raises
        ------
        IllegalStateError
            This producer has a transaction of its own.
        """
        self._manager("take_over_transaction()", waits=False).resume(prepared)

    def _manager(self, operation: str, *, waits: bool = True) -> TransactionManager:
        manager = self._transactions
        if manager is None:
            raise IllegalStateError(
                f"{operation} needs a transactional producer: make it by KafkaProducer(transactional_id=...)"
            )
        self._accumulator.check_usable()
        if waits and self._thread is not None and self._thread.is_this_thread:
            raise IllegalStateError(
                f"{operation} in a callback would wait for itself; call it from another thread"
            )
        return manager

    def _await(self, result: TransactionalRequestResult) -> None:
        self._client.wakeup()
        result.wait(self._topics.max_block_ms)

    # ---- The rest ----------------------------------------------------------------------------------------

    def flush(self, timeout: float | None = None) -> None:
        """Send all records at once and wait until each has its outcome.

        Parameters
        ----------
        timeout:
            Seconds at most; ``None`` waits as long as it takes (``delivery_timeout_ms`` ends it).

        Raises
        ------
        KafkaTimeoutError
            Some have none in time. They stay on their way.
        IllegalStateError
            Called from a callback, which would wait for itself.
        """
        assert self._thread is not None
        if self._accumulator.is_forked:
            self._accumulator.check_usable()
        if self._thread.is_this_thread:
            raise IllegalStateError(
                "flush() in a callback would wait for itself; call it from another thread"
            )
        self._accumulator.begin_flush()
        self._accumulator.await_flush_completion(None if timeout is None else timeout * 1000)

    def close(self, timeout: float | None = None, null_logger: bool = False) -> None:
        """Take no more records, send those that there are, and end the thread and the connections.

        Parameters
        ----------
        timeout:
            Seconds to wait for the records; those left then fail. 0 waits for none, ``None`` for all. In a
            callback it is taken for 0.
        null_logger:
            kafka-python's; without effect.
        """
        if timeout is not None and timeout < 0:
            raise ValueError(f"timeout must be 0 or more seconds, not {timeout}")
        thread = self._thread
        if thread is None or self._accumulator.is_forked:
            return
        was_closing = thread.closing
        if thread.is_this_thread:
            thread.force_close()
        else:
            if timeout == 0:
                thread.force_close()
            else:
                thread.initiate_close()
                thread.join(timeout)
            if thread.is_alive():
                thread.force_close()
                thread.join(FORCED_CLOSE_TIMEOUT_S)
        if not was_closing:
            if self._metrics is not None:
                self._metrics.close()
            self._preparer.close()
            for serializer in (self.config["key_serializer"], self.config["value_serializer"]):
                close_serializer = getattr(serializer, "close", None)
                if callable(close_serializer):
                    close_serializer()

    def partitions_for(self, topic: str) -> set[int]:
        """The partitions of a topic, asked for if it is not known yet.

        Raises
        ------
        KafkaTimeoutError
            It did not become known within ``max_block_ms``.
        """
        cluster = self._topics.await_topic(topic, None, self._topics.deadline_ms())
        return set(cluster.partitions_for_topic(topic) or ())

    def bootstrap_connected(self) -> bool:
        """Whether a broker has answered."""
        cluster = self._metadata.fetch()
        return bool(cluster.nodes) and not cluster.is_bootstrap

    @classmethod
    def max_usable_produce_magic(cls, api_version: tuple[int, ...]) -> int:
        """The newest format of records that a broker of ``api_version`` takes; this producer writes 2."""
        return 2 if api_version >= (0, 11) else 1 if api_version >= (0, 10, 0) else 0

    def metrics(self, raw: bool = False) -> Any:
        """What the producer has done in the last while, and how it stands.

        Names and meanings are kafka-python's and Apache Kafka's: ``metrics()["producer-metrics"]
        ["record-send-rate"]``; by topic in ``"producer-topic-metrics.<topic>"``, by broker in
        ``"producer-node-metrics.node-<id>"``.

        Parameters
        ----------
        raw:
            Give the metrics themselves, which can be asked again.

        Returns
        -------
        dict of dict of float
            Group → name → figure; empty once the producer is closed.
        dict of MetricName to KafkaMetric
            If ``raw``.
        None
            With ``metrics_enabled=False``.
        """
        if self._metrics is None:
            return None
        return self._metrics.metrics if raw else self._metrics.snapshot()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        interrupted = exc_type is not None and not issubclass(exc_type, Exception)
        self.close(timeout=INTERRUPTED_CLOSE_TIMEOUT_S if interrupted else None)

    def __reduce__(self) -> Never:
        refuse_copy(self, "its connections and threads belong to this process; make one in each process")

    def __repr__(self) -> str:
        return f"<KafkaProducer client_id={self.config['client_id']}>"


#: As it is defined here; a subclass or a test may replace it.
_SEND = KafkaProducer.send
