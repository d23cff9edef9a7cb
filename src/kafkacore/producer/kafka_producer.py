"""The public producer, which calls the objects that :mod:`kafkacore.producer.components` creates."""

from __future__ import annotations

import itertools
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Never, Self, Unpack

from kafkacore.client.config import refuse_positional
from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.errors import IllegalStateError, NoBrokersAvailable
from kafkacore.producer._batch_future import BatchFuture
from kafkacore.producer._future import FutureRecordMetadata
from kafkacore.producer._record_sender import RecordSender
from kafkacore.producer.components import make_components
from kafkacore.producer.config import producer_defaults, resolve_producer
from kafkacore.producer.interceptors import Headers
from kafkacore.producer.prepared_transaction import PreparedTransaction
from kafkacore.producer.record_accumulator import RecordAccumulator
from kafkacore.producer.sender_run import NetworkThread, NewNetworkThread
from kafkacore.producer.sender_thread import SenderThread
from kafkacore.producer.transaction_arguments import checked_group, checked_offsets
from kafkacore.record._source import RecordSource
from kafkacore.settings import Config
from kafkacore.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition
from kafkacore.wire.copying import refuse_copy

if TYPE_CHECKING:
    from kafkacore.producer.config_types import ProducerConfig
    from kafkacore.producer.transaction_manager import TransactionManager
    from kafkacore.producer.transaction_result import TransactionalRequestResult

#: How long ``close()``, after its timeout, waits for the network thread to fail the remaining records and
#: stop.
FORCED_CLOSE_TIMEOUT_S = 5.0
#: How long a ``with`` block that ends by Ctrl-C or ``sys.exit`` waits for records.
INTERRUPTED_CLOSE_TIMEOUT_S = 5.0

#: Columns of ``poll_arrow()`` that only a broker can set. ``send_arrow()`` ignores these columns.
SET_BY_BROKERS = ("offset", "timestamp_type")

_client_numbers = itertools.count(1)


class _Unclosed:
    """Warn about a producer that is garbage-collected without ``close()``, and close it.

    The producer and its ``send`` method share this object. A program that keeps a reference to the producer
    or to the method keeps the producer open.
    """

    def __init__(self, name: str, thread: NetworkThread, accumulator: RecordAccumulator) -> None:
        self._name = name
        self._thread = thread
        self._accumulator = accumulator

    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        if not self._thread.closing and not self._accumulator.is_forked:
            _warn(f"unclosed {self._name}", ResourceWarning, source=self)
            # Do not wait for the thread, because a finalizer can run in any thread and at any point.
            self._thread.initiate_close()


class KafkaProducer:
    """A client that sends records to a Kafka cluster.

    ``send()`` appends a record to a batch and returns a future. A background thread sends the batches,
    retries them if necessary, and completes the futures. A producer is thread-safe, and one per process is
    usually enough. Method and argument names are those of kafka-python.

    Parameters
    ----------
    **configs
        Settings as keyword arguments. The producer has the settings of kafka-python, including settings that
        kafka-python 3.0 removed, and ``compression_level``, ``retry_backoff_max_ms`` and ``interceptors``.
        Times are in milliseconds and sizes in bytes. The most important settings and their defaults are:

        - ``bootstrap_servers`` ("localhost:9092"): addresses of brokers to connect to first.
        - ``acks`` ("all"): how many replicas must write a record before it is acknowledged: "all", 1 or 0.
        - ``compression_type`` (None): "gzip", "snappy", "lz4" or "zstd".
        - ``linger_ms`` (0): how long a batch waits for more records.
        - ``batch_size`` (16384): largest size of a batch.
        - ``buffer_memory`` (32 MiB): memory for all batches. When this memory is used up, ``send()`` waits.
        - ``max_block_ms`` (60000): how long ``send()`` waits for memory or metadata.
        - ``delivery_timeout_ms`` (120000): time within which each record is acknowledged or fails.
        - ``retries`` (no limit): how often a batch is retried within ``delivery_timeout_ms``.
        - ``max_request_size`` (1 MiB): largest size of a request and of a record.
        - ``max_in_flight_requests_per_connection`` (5): without idempotence, a retry can reorder the records
          of a partition unless this is 1.
        - ``key_serializer``, ``value_serializer`` (None): functions or
          :class:`kafkacore.serializer.Serializer` objects. Otherwise, keys and values must be bytes.
        - ``partitioner`` (None): chooses the partition if the caller of ``send()`` passes no partition.
        - ``partitioner_adaptive_partitioning_enable`` (True): whether records without a key are sent less
          often to partitions with a longer queue.
        - ``partitioner_availability_timeout_ms`` (0): time after which records without a key avoid a broker
          that accepts no batches. 0 switches this off.
        - ``partitioner_ignore_keys`` (False): whether to choose the partition of a record with a key as if
          the record had no key.
        - ``enable_idempotence`` (True): whether each record is written exactly once and in order, despite
          retries. Idempotence needs ``acks="all"``, ``retries`` above 0 and at most 5
          ``max_in_flight_requests_per_connection``. If another value is given for one of these, idempotence
          is switched off with a warning; if ``enable_idempotence=True`` is given too, an error is raised.
          Without idempotence, a record can be written twice if the first response is lost.
        - ``transactional_id`` (None): name that identifies this producer across restarts and enables
          transactions. No other running producer may use this name.
        - ``transaction_timeout_ms`` (60000): time after which the broker aborts an open transaction.
        - ``interceptors`` (none): objects like :class:`ProducerInterceptor`. They are called before a record
          is serialized and when its outcome is known.
        - ``metric_reporters`` (none): classes like :class:`kafkacore.metrics.MetricsReporter`.
        - ``metrics_enabled`` (True): whether the producer keeps metrics.
        - ``bootstrap_timeout_ms`` (30000): how long the constructor waits for a broker, at most
          ``max_block_ms``. With ``api_version``, or if one of the two limits is 0, the constructor does not
          wait.

    Raises
    ------
    ProducerConfigurationError
        A setting is unknown or has an invalid value. This is a ``KafkaConfigurationError`` and a
        ``ValueError``.
    NoBrokersAvailable
        None of ``bootstrap_servers`` responded within ``bootstrap_timeout_ms`` or ``max_block_ms``, whichever
        is less.
    TypeError
        Settings were passed as a dict instead of keyword arguments.

    Notes
    -----
    Call ``close()`` or use ``with``. At interpreter exit, an open producer has five seconds to send its
    records. A producer cannot be used in a child process after ``fork()``: create a new producer in the
    child.
    """

    #: Default of every setting.
    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = producer_defaults()

    def __init__(self, *positional: object, **configs: Unpack[ProducerConfig]) -> None:
        self._thread: NetworkThread | None = None
        refuse_positional(type(self).__name__, positional)
        self._open(resolve_producer(configs), SYSTEM_CLOCK, SenderThread, "KafkaProducer")

    @classmethod
    def _opened(cls, config: Config, clock: Clock, new_thread: NewNetworkThread, name: str) -> Self:
        """Return a producer whose clock and network thread belong to an event loop, for ``kafkacore.aio``."""
        producer = cls.__new__(cls)
        producer._open(config, clock, new_thread, name)
        return producer

    def _open(self, config: Config, clock: Clock, new_thread: NewNetworkThread, name: str) -> None:
        """Create the objects of the producer, start the network thread, and wait for a broker."""
        self.config = config
        if config["client_id"] is None:
            config["client_id"] = f"kafkacore-producer-{next(_client_numbers)}"
        parts = make_components(config, clock, new_thread)
        self._client, self._metadata, self._accumulator, self._thread, self._metrics = parts[:5]
        #: The :meth:`close` that acquires this lock closes interceptors, serializers and metrics. The lock is
        #: never released.
        self._first_to_close = threading.Lock()
        self._transactions = parts.transactions
        self._topics, self._preparer = parts.topics, parts.preparer
        unclosed = _Unclosed(f"<{name} client_id={config['client_id']}>", parts.thread, parts.accumulator)
        self._record_sender = RecordSender(
            parts.accumulator.records, parts.preparer, parts.preparer.is_plain, unclosed
        )
        if type(self).send is _SEND:
            # A call of ``send`` runs the compiled method directly, without a Python frame in between.
            self.send = self._record_sender.send  # type: ignore[method-assign]
        # With api_version given, the constructor does not wait for a broker, as in kafka-python. The network
        # thread sets api_version as soon as the thread is connected to a broker.
        limit_ms = min(config["bootstrap_timeout_ms"], self._topics.max_block_ms)
        waits = config["api_version"] is None and limit_ms > 0
        self._thread.start()
        if waits:
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
        """Send a record to a topic.

        The call appends the record to a batch and returns. It does not wait for the broker.

        Parameters
        ----------
        topic:
            Name of the topic.
        value, key:
            Bytes-like objects, or objects that the serializers accept. A record needs a key or a value. In a
            compacted topic, a ``None`` value deletes the key.
        headers:
            List of tuples of a name and bytes.
        partition:
            Number of the partition. With ``None``, the partitioner chooses the partition by the key. Records
            without a key get the same partition until a batch is full.
        timestamp_ms:
            Milliseconds since the epoch. ``None`` stands for the current time.

        Returns
        -------
        FutureRecordMetadata
            Future with ``get(timeout=seconds)``, ``add_callback()`` and ``add_errback()``. Errors of the
            topic, such as :class:`InvalidTopicError` and :class:`TopicAuthorizationFailedError`, are also
            errors of the future, and are not raised.

        Raises
        ------
        KafkaTimeoutError
            The metadata of the topic did not arrive within ``max_block_ms``, or no memory became free.
        MessageSizeTooLargeError
            The record is larger than ``max_request_size``.
        TypeError, ValueError
            An argument is not valid, or the topic does not have this partition.
        IllegalStateError
            The producer is closed, or was created before ``fork()``. Or the producer has a
            ``transactional_id``, and no transaction is open. If the transaction has failed, its error is
            raised instead.
        """
        # Most instances have an attribute ``send`` with the compiled method, which hides this method. An
        # instance of a subclass that overrides ``send`` has no such attribute, and the subclass may call this
        # method.
        if getattr(self, "_record_sender", None) is None:
            raise IllegalStateError("KafkaProducer.__init__() has not been called")
        return self._record_sender.send(topic, value, key, headers, partition, timestamp_ms)

    # ---- Many records in one call --------------------------------------------------------------------------

    def send_batch(
        self,
        topic: str,
        values: Iterable[object],
        keys: Iterable[object] | None = None,
        headers: Iterable[Headers | None] | None = None,
        timestamps: Iterable[int | None] | None = None,
        partition: int | None = None,
    ) -> BatchFuture:
        """Send many records to a topic in one call.

        The rows are encoded without the GIL. Rows of the same partition keep their order.

        Parameters
        ----------
        topic:
            Name of the topic.
        values, keys:
            One item per row: a bytes-like object, ``None``, or an object that the serializers accept. Arrow
            binary or string data (an object with ``__arrow_c_array__`` or ``__arrow_c_stream__``) is sent as
            it is. A row needs a key or a value. Interceptors are called for each row, but cannot change the
            topic.
        headers:
            One item per row: a list of tuples of a ``str`` and bytes, or ``None``.
        timestamps:
            One item per row: milliseconds since the epoch, or ``None`` for the time of this call.
        partition:
            Number of the partition for all rows. With ``None``, a partition is chosen for each row as in
            :meth:`send`.

        Returns
        -------
        BatchFuture
            Future of all rows: ``get(timeout=seconds)`` waits for all rows and returns their offsets, and
            ``[row]`` is the future of one row. The future keeps a reference to the arguments, which must not
            change until ``send_batch()`` returns.

        Raises
        ------
        MessageSizeTooLargeError, TypeError, ValueError
            A row is too large, an argument is not valid, or the columns differ in length. No row is sent.
        KafkaTimeoutError
            See :meth:`send`. If some rows were appended before the timeout, ``error.future`` is the
            BatchFuture of all rows. In this future, the other rows have failed.
        IllegalStateError
            See :meth:`send`.
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
        """Send the rows of a table, encoded from its columns without the GIL.

        Parameters
        ----------
        topic:
            Name of the topic.
        table:
            Table, record batch or data frame with ``__arrow_c_array__`` or ``__arrow_c_stream__``, such as
            those of pyarrow, polars, duckdb and pandas, and the result of :meth:`KafkaConsumer.poll_arrow`.
        value, key:
            Names of the columns with values and keys, of type binary or string.
        headers:
            Name of the column with headers, of type ``list<struct<key: string, value: binary>>`` or
            ``map<string, binary>``.
        timestamp:
            Name of the column with timestamps, of type ``int64`` (milliseconds) or ``timestamp``. Null stands
            for the time of this call.
        partition:
            Name of the column with partitions, of type ``int32`` or ``int64``. If a row has null there, its
            partition is chosen as in :meth:`send`. A number instead of a name is the partition of all rows.
        allow_empty:
            Whether to send rows that have neither a key nor a value, as Java's producer does.

        Returns
        -------
        BatchFuture
            See :meth:`send_batch`.

        Raises
        ------
        ValueError
            The column of values is missing, or the table has a column that no argument names. Rename or drop
            that column. The columns ``offset`` and ``timestamp_type``, which a broker sets, are ignored.
        TypeError
            ``table`` is not Arrow data, a column has the wrong type, or this producer has serializers or
            interceptors, which process single records.
        MessageSizeTooLargeError, KafkaTimeoutError, IllegalStateError
            See :meth:`send_batch`.
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
    # A call waits for at most ``max_block_ms``. After a time-out or an interrupt, the operation continues.
    # Another call of the same method waits for the operation; calls of other methods are rejected until it
    # has finished.

    def init_transactions(self) -> None:
        """Register the ``transactional_id`` with the broker. Call this once, before the first transaction.

        The broker aborts an open transaction of an earlier producer with the same id, and fences that
        producer, so that all its later requests fail.

        Raises
        ------
        KafkaTimeoutError
            The broker did not respond within ``max_block_ms``. Call the method again.
        TransactionalIdAuthorizationFailedError
            The user is not authorized to use the id. Call the method again after the permission has been
            granted.
        UnsupportedVersionError
            The broker does not support transactions.
        IllegalStateError
            The method has been called before, or the producer has no ``transactional_id``.
        """
        self._await(self._manager("init_transactions()").init_transactions())

    def begin_transaction(self) -> None:
        """Begin a transaction. All records belong to the transaction until it is committed or aborted.

        Raises
        ------
        IllegalStateError
            A transaction is already open, or :meth:`init_transactions` has not completed.
        ProducerFencedError
            Another producer with the same ``transactional_id`` has started. Close this producer.
        KafkaError
            The previous transaction has failed. Abort that transaction.
        """
        self._manager("begin_transaction()", waits=False).begin_transaction()

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group_metadata: ConsumerGroupMetadata | str
    ) -> None:
        """Commit offsets of a consumer group as part of the transaction.

        Parameters
        ----------
        offsets:
            Partition → offset of the next record to read.
        group_metadata:
            Metadata of the consumer that was assigned the partitions, or the name of the group. With
            metadata, the broker rejects the offsets if the consumer has lost its partitions in the meantime
            (KIP-447). With only a name, the broker does not check this.

        Raises
        ------
        CommitFailedError, FencedInstanceIdError, GroupAuthorizationFailedError
            The group coordinator rejected the offsets. Abort the transaction.
        KafkaTimeoutError
            The broker did not respond within ``max_block_ms``. Call the method again or abort the
            transaction.
        IllegalStateError
            No transaction is open.
        ProducerFencedError
            See :meth:`commit_transaction`.
        TypeError, ValueError
            An argument is not valid.
        """
        manager = self._manager("send_offsets_to_transaction()")
        group = checked_group(group_metadata)
        checked = checked_offsets(offsets)
        if checked:
            self._await(manager.send_offsets(checked, group))

    def commit_transaction(self) -> None:
        """Send the remaining records, then commit the transaction.

        Raises
        ------
        KafkaTimeoutError
            The commit did not complete within ``max_block_ms``. Call the method again.
        ProducerFencedError, InvalidProducerEpochError, InvalidTxnStateError
            Another producer with the same ``transactional_id`` has started, or the transaction took longer
            than ``transaction_timeout_ms``. Close this producer.
        KafkaError
            A record of the transaction has failed. The raised error is the error of the first such record.
            Call :meth:`abort_transaction`.
        IllegalStateError
            No transaction is open.
        """
        self._await(self._manager("commit_transaction()").begin_commit())

    def abort_transaction(self) -> None:
        """Abort the transaction, so that none of its records and offsets becomes visible.

        Records that have not been sent fail with :class:`TransactionAbortedError`.

        Raises
        ------
        KafkaTimeoutError
            The abort did not complete within ``max_block_ms``. Call the method again.
        ProducerFencedError
            See :meth:`commit_transaction`.
        IllegalStateError
            No transaction is open.
        """
        self._await(self._manager("abort_transaction()").begin_abort())

    def change_transactional_id(self, transactional_id: str) -> None:
        """Switch to another transactional id, as if this were a new producer.

        Call :meth:`init_transactions` next.

        Raises
        ------
        IllegalStateError
            A transaction is open, or records are in flight.
        """
        self._manager("change_transactional_id()", waits=False).change_transactional_id(transactional_id)

    def prepare_transaction(self) -> PreparedTransaction:
        """Detach the open transaction, so that another producer, in any process, can commit or abort it.

        Call :meth:`flush` before this method, and :meth:`init_transactions` before the next transaction. The
        transaction stays open: the broker aborts it after ``transaction_timeout_ms``, or when a producer with
        the same ``transactional_id`` calls :meth:`init_transactions`.

        Raises
        ------
        KafkaError
            A record of the transaction has failed. The raised error is the error of the first such record.
            Call :meth:`abort_transaction`.
        IllegalStateError
            No transaction is open, or records of the transaction are in flight.
        """
        return self._manager("prepare_transaction()", waits=False).prepare()

    def take_over_transaction(self, prepared: PreparedTransaction) -> None:
        """Continue a transaction that another producer has prepared: send offsets, commit or abort it.

        This method sends no request. If the transaction has already been committed or aborted, the next
        request fails.

        Raises
        ------
        IllegalStateError
            This producer already has an open transaction.
        """
        self._manager("take_over_transaction()", waits=False).resume(prepared)

    def _manager(self, operation: str, *, waits: bool = True) -> TransactionManager:
        manager = self._transactions
        if manager is None:
            raise IllegalStateError(
                f"{operation} needs a transactional producer: create it with "
                "KafkaProducer(transactional_id=...)"
            )
        self._accumulator.check_usable()
        if waits and self._thread is not None and self._thread.is_this_thread:
            raise IllegalStateError(
                f"{operation} in a callback would block the thread that it waits for; call it from another "
                "thread"
            )
        return manager

    def _await(self, result: TransactionalRequestResult) -> None:
        self._client.wakeup()
        result.wait(self._topics.max_block_ms)

    # ---- Flush, close and metadata -----------------------------------------------------------------------

    def flush(self, timeout: float | None = None) -> None:
        """Send all records now, and wait until each of them is acknowledged or has failed.

        Parameters
        ----------
        timeout:
            Seconds to wait. ``None`` sets no limit, but ``delivery_timeout_ms`` limits the wait anyway.

        Raises
        ------
        KafkaTimeoutError
            Some records were neither acknowledged nor failed in time. The producer continues to send them.
        IllegalStateError
            The method was called from a callback, where the call would block the thread for which it waits.
        """
        assert self._thread is not None
        if self._accumulator.is_forked:
            self._accumulator.check_usable()
        if self._thread.is_this_thread:
            raise IllegalStateError(
                "flush() in a callback would block the thread that it waits for; call it from another thread"
            )
        self._accumulator.begin_flush()
        self._accumulator.await_flush_completion(None if timeout is None else timeout * 1000)

    def close(self, timeout: float | None = None, null_logger: bool = False) -> None:
        """Send the remaining records, then close the connections and stop the network thread.

        Parameters
        ----------
        timeout:
            Seconds to wait for the records. After that, the remaining records fail. With 0, the call does not
            wait. With ``None``, the call waits for all records. A call in a callback never waits.
        null_logger:
            Has no effect. It exists for compatibility with kafka-python.

        Raises
        ------
        ValueError
            The timeout is negative.
        """
        if timeout is not None and timeout < 0:
            raise ValueError(f"timeout must be 0 or more seconds, not {timeout}")
        thread = self._thread
        if thread is None or self._accumulator.is_forked:
            return
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
        if not self._first_to_close.acquire(blocking=False):
            return
        if self._metrics is not None:
            self._metrics.close()
        self._preparer.close()
        for serializer in (self.config["key_serializer"], self.config["value_serializer"]):
            close_serializer = getattr(serializer, "close", None)
            if callable(close_serializer):
                close_serializer()

    def partitions_for(self, topic: str) -> set[int]:
        """Return the partition numbers of a topic. If the topic is unknown, request its metadata first.

        Raises
        ------
        KafkaTimeoutError
            The metadata of the topic did not arrive within ``max_block_ms``.
        """
        cluster = self._topics.await_topic(topic, None, self._topics.deadline_ms())
        return set(cluster.partitions_for_topic(topic) or ())

    def bootstrap_connected(self) -> bool:
        """Return whether a broker has responded."""
        cluster = self._metadata.fetch()
        return bool(cluster.nodes) and not cluster.is_bootstrap

    @classmethod
    def max_usable_produce_magic(cls, api_version: tuple[int, ...]) -> int:
        """Return the newest record format that a broker of version ``api_version`` accepts.

        This producer always writes format 2.
        """
        return 2 if api_version >= (0, 11) else 1 if api_version >= (0, 10, 0) else 0

    def metrics(self, raw: bool = False) -> Any:
        """Return the current metrics.

        Names and meanings are those of kafka-python and Apache Kafka, for example
        ``metrics()["producer-metrics"]["record-send-rate"]``. Metrics of a topic are in the group
        ``"producer-topic-metrics.<topic>"``, and those of a broker in ``"producer-node-metrics.node-<id>"``.

        Parameters
        ----------
        raw:
            Whether to return the metric objects, which can be read repeatedly, instead of their values.

        Returns
        -------
        dict of dict of float
            Group → name → value. The dictionary is empty after the producer has been closed.
        dict of MetricName to KafkaMetric
            The metric objects, if ``raw`` is true.
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
        refuse_copy(self, "its connections and threads belong to this process; create one in each process")

    def __repr__(self) -> str:
        return f"<KafkaProducer client_id={self.config['client_id']}>"


#: The original method. The constructor compares ``send`` with this method to find out whether a subclass or a
#: test has replaced ``send``.
_SEND = KafkaProducer.send
