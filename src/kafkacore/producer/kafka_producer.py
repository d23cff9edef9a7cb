"""The producer that the user has: records by ``send()`` in, futures out.

Puts the parts together and holds what a call needs that is not per record: settings, waiting for a topic,
the end. Does not know: batches, requests, when anything is sent.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, ClassVar, Self

from kafkacore.client import Cluster
from kafkacore.client.config import refuse_positional
from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.errors import (
    BrokerResponseError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    NoBrokersAvailable,
)
from kafkacore.producer._batch_future import BatchFuture
from kafkacore.producer._column_appender import partition_range
from kafkacore.producer._future import FutureRecordMetadata, ProduceResult
from kafkacore.producer._record_sender import RecordSender
from kafkacore.producer.components import make_components
from kafkacore.producer.config import producer_defaults, resolve_producer
from kafkacore.producer.interceptors import ProducerInterceptors, ProducerRecord
from kafkacore.producer.partitioner import ClusterForPartitioner, DefaultPartitioner, StickyPartitioner
from kafkacore.producer.prepared_transaction import PreparedTransaction
from kafkacore.producer.produce_outcome import produce_error
from kafkacore.producer.sender_thread import SenderThread
from kafkacore.producer.transaction_arguments import checked_group, checked_offsets
from kafkacore.producer.transaction_manager import TransactionManager
from kafkacore.producer.transaction_result import TransactionalRequestResult
from kafkacore.record._source import RecordSource
from kafkacore.structs import (
    MAX_TOPIC_NAME_LENGTH,
    ConsumerGroupMetadata,
    OffsetAndMetadata,
    TopicPartition,
    is_topic_name,
    printable,
)

#: How long a close waits for a thread that has been told to drop everything.
FORCED_CLOSE_TIMEOUT_S = 5.0
#: How long leaving a ``with`` block by Ctrl-C or ``sys.exit`` waits for records.
INTERRUPTED_CLOSE_TIMEOUT_S = 5.0

#: Of one record.
Headers = list[tuple[str, bytes | None]]
#: Columns that ``poll_arrow()`` gives and that are no producer's to say.
SET_BY_BROKERS = ("offset", "timestamp_type")

_client_numbers = itertools.count(1)


class KafkaProducer(RecordSender):
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

    def __init__(self, *positional: object, **configs: Any) -> None:
        self._thread: SenderThread | None = None
        refuse_positional(type(self).__name__, positional)
        self.config = config = resolve_producer(configs)
        if config["client_id"] is None:
            config["client_id"] = f"kafkacore-producer-{next(_client_numbers)}"
        self._clock: Clock = SYSTEM_CLOCK
        self._max_block_ms: float = config["max_block_ms"]
        self._key_serializer = _serialize_function(config["key_serializer"])
        self._value_serializer = _serialize_function(config["value_serializer"])
        self._serializes = self._key_serializer is not None or self._value_serializer is not None
        partitioner = config["partitioner"]
        # The built-in ones choose in compiled code.
        is_built_in = type(partitioner) in (type(None), DefaultPartitioner, StickyPartitioner)
        self._partitioner = None if is_built_in else partitioner
        interceptors = config["interceptors"]
        self._interceptors = ProducerInterceptors(interceptors) if interceptors else None
        parts = make_components(config, self._clock)
        self._client, self._metadata, self._accumulator, self._thread, self._metrics = parts[:5]
        self._transactions = parts.transactions
        self._append = self._accumulator.append
        is_seen = self._serializes or self._partitioner is not None or self._interceptors is not None
        self._bind(self._accumulator.records, not is_seen)
        self._thread.start()
        # With api_version given, the constructor does not wait for a broker, as in kafka-python.
        if config["api_version"] is None and self._max_block_ms > 0:
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
                    f"{limit}={timeout_ms}: is the broker running, and reachable from here?{self._troubles()}"
                )
        except BaseException:
            self.close(timeout=0)
            raise

    # ---- Sending -----------------------------------------------------------------------------------------

    def _send_slowly(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: Headers | None,
        partition: int | None,
        timestamp_ms: int | None,
    ) -> FutureRecordMetadata:
        """The way of a record that an interceptor, a serializer or a partitioner of the user's has to see."""
        interceptors = self._interceptors
        if interceptors is None:
            return self._send_serialized(topic, value, key, headers, partition, timestamp_ms)
        record = interceptors.on_send(ProducerRecord(topic, value, key, headers, partition, timestamp_ms))
        try:
            future = self._send_serialized(*record)
        except Exception as error:
            interceptors.refused(record, error)
            raise
        interceptors.follow(future)
        return future

    def _send_serialized(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: Headers | None,
        partition: int | None,
        timestamp_ms: int | None,
    ) -> FutureRecordMetadata:
        if self._serializes:
            headers = [] if headers is None else headers
            serialized_key, serialized_value = self._serialize(topic, headers, key, value)
        else:
            serialized_key, serialized_value = key, value
        if self._partitioner is not None and partition is None:
            try:
                partition = self._choose_partition(topic, key, serialized_key, value, serialized_value)
            except BrokerResponseError as error:
                return self._failed(topic, partition, error)
        future = self._append(topic, serialized_value, serialized_key, headers, partition, timestamp_ms)
        if future is None:
            return self._send_to_unknown(
                topic, serialized_value, serialized_key, headers, partition, timestamp_ms
            )
        return future

    def _send_to_unknown(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: Headers | None,
        partition: int | None,
        timestamp_ms: int | None,
    ) -> FutureRecordMetadata:
        """The way of the first record to a topic, and of one to a partition that is not known."""
        deadline_ms = self._clock.monotonic_ms() + self._max_block_ms
        try:
            cluster = self._await_topic(topic, partition, deadline_ms)
        except BrokerResponseError as error:
            return self._failed(topic, partition, error)
        left_ms = max(deadline_ms - self._clock.monotonic_ms(), 0.0)
        future = self._append(topic, value, key, headers, partition, timestamp_ms, left_ms)
        if future is None:
            raise ValueError(
                f"topic {printable(topic)} has no partition {partition}, "
                f"but {len(cluster.partitions_for_topic(topic) or ())}, counted from 0"
            )
        return future

    def _failed(self, topic: str, partition: int | None, error: KafkaError) -> FutureRecordMetadata:
        self._fail_transaction(error)
        result = ProduceResult(TopicPartition(topic, -1 if partition is None else partition), self._clock)
        result.complete(error=produce_error(error, possibly_persisted=False))
        return FutureRecordMetadata(result)

    def _await_topic(self, topic: str, partition: int | None, deadline_ms: float) -> Cluster:
        """Return metadata with the topic and, if it exists, the partition. Request metadata once more if
        either is missing.
        """
        if not isinstance(topic, str):
            raise TypeError(f"topic must be a str, not {type(topic).__name__}")
        if not is_topic_name(topic):
            raise ValueError(
                f"topic {topic!r} is not a name: 1 to {MAX_TOPIC_NAME_LENGTH} of the characters "
                "a-z, A-Z, 0-9, '.', '_', '-'"
            )
        self._check_usable()
        # Of a new topic alone is asked at once; what else there is to ask waits for the back-off.
        version = self._metadata.update_version if topic not in self._metadata.topics else None
        self._metadata.add_topic(topic)
        refreshed = False
        while True:
            cluster = self._metadata.fetch()
            is_known = self._accumulator.update_topic(topic, cluster)
            if self._metadata.fetch() is not cluster:
                # The network thread may have put something newer there, just before: not to be undone.
                continue
            known = cluster.partitions_for_topic(topic) or ()
            if is_known:
                if refreshed or partition is None or partition in known:
                    return cluster
            elif refreshed and (error := cluster.topic_error(topic)) is not None and not error.retriable:
                raise error
            if version is None:
                version = self._metadata.request_update(reset_equivalent_backoff=not refreshed)
            name = f"topic {printable(topic)}"
            what = f"a list without gaps of the partitions of {name}" if known else name
            self._await_metadata(version, what, deadline_ms)
            version = None
            refreshed = True

    def _await_metadata(self, version: int, what: str, deadline_ms: float) -> None:
        assert self._thread is not None
        if self._thread.is_this_thread:
            raise KafkaTimeoutError(
                f"{what} is not known yet, and a callback cannot wait for it: it would wait for itself"
            )
        left_ms = deadline_ms - self._clock.monotonic_ms()
        self._client.wakeup()
        if left_ms <= 0 or not self._metadata.wait_for_update(version, left_ms):
            raise KafkaTimeoutError(
                f"{what} is not in the cluster's metadata after max_block_ms={self._max_block_ms:g}"
                f"{self._troubles()}"
            )
        self._check_usable()

    def _serialize(self, topic: str, headers: Headers, key: Any, value: Any) -> tuple[Any, Any]:
        if self._key_serializer is not None:
            key = self._key_serializer(topic, headers, key)
        if self._value_serializer is not None:
            value = self._value_serializer(topic, headers, value)
        return key, value

    def _choose_partition(
        self, topic: str, key: Any, serialized_key: Any, value: Any, serialized_value: Any
    ) -> int:
        deadline_ms = self._clock.monotonic_ms() + self._max_block_ms
        if self._accumulator.topic_state(topic) is None:
            self._await_topic(topic, None, deadline_ms)
        cluster = ClusterForPartitioner(self._metadata.fetch())
        assert self._partitioner is not None
        chosen = self._partitioner.partition(topic, key, serialized_key, value, serialized_value, cluster)
        if not isinstance(chosen, int):
            raise ValueError(
                f"the partitioner chose {chosen!r} for topic {printable(topic)}, which is no partition"
            )
        return chosen

    # ---- Many records by one call -------------------------------------------------------------------------

    def send_batch(
        self,
        topic: str,
        values: Iterable[Any],
        keys: Iterable[Any] | None = None,
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
        if self._interceptors is not None:
            return self._send_intercepted(topic, values, keys, headers, timestamps, partition)
        partitions: list[int | None] | None = None
        if not self._is_plain:
            _refuse_arrow(values, keys)
            values = list(values)
            if self._partitioner is not None and partition is None:
                partitions = [None] * len(values)
            values, keys, headers, partitions = self._prepare_rows(topic, values, keys, headers, partitions)
        source = RecordSource(values, keys, headers, timestamps, partitions)
        return self._send_source(topic, source, partition)

    def send_arrow(
        self,
        topic: str,
        table: Any,
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
        if self._serializes or self._interceptors is not None:
            raise TypeError(
                "send_arrow() sends columns as they are, and this producer has a key_serializer, a "
                "value_serializer or interceptors: use a producer without, or send_batch()"
            )
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
            self._check_partitioner_is_not_needed(source)
        return self._send_source(
            topic, source, None if isinstance(partition, str) else partition, allow_empty
        )

    def _check_partitioner_is_not_needed(self, source: RecordSource) -> None:
        if self._partitioner is not None and partition_range(source)[0] < 0:
            raise TypeError(
                "this producer's partitioner has to see each row, which send_arrow() does not show it: give "
                "the rows a column of partitions, or use send_batch()"
            )

    def _send_intercepted(
        self,
        topic: str,
        values: Iterable[Any],
        keys: Iterable[Any] | None,
        headers: Iterable[Headers | None] | None,
        timestamps: Iterable[int | None] | None,
        partition: int | None,
    ) -> BatchFuture:
        """Rows of which each is shown to the interceptors, before and after."""
        interceptors = self._interceptors
        assert interceptors is not None
        _refuse_arrow(values, keys, headers, timestamps)
        values = list(values)
        nothing = [None] * len(values)
        columns = zip(
            values,
            nothing if keys is None else keys,
            nothing if headers is None else headers,
            nothing if timestamps is None else timestamps,
            strict=True,
        )
        records = [
            interceptors.on_send(
                ProducerRecord(topic, value, key, list(of_row or ()), partition, timestamp_ms),
                keeps_topic=True,
            )
            for value, key, of_row, timestamp_ms in columns
        ]
        future: BatchFuture | None = None
        try:
            rows = self._prepare_rows(
                topic,
                [record.value for record in records],
                [record.key for record in records],
                [record.headers for record in records],
                [record.partition for record in records],
            )
            source = RecordSource(*rows[:3], [record.timestamp_ms for record in records], rows[3])
            future = self._send_source(topic, source, None)
        except Exception as error:
            future = getattr(error, "future", None)
            if future is None:
                for record in records:
                    interceptors.refused(record, error)
            raise
        finally:
            if future is not None:
                for row in range(len(future)):
                    interceptors.follow(future[row])
        return future

    def _prepare_rows(
        self,
        topic: str,
        values: Iterable[Any],
        keys: Iterable[Any] | None,
        headers: Iterable[Headers | None] | None,
        partitions: Iterable[int | None] | None,
    ) -> tuple[list[Any], list[Any], list[Headers], list[int | None] | None]:
        """Columns as the user's serializers and partitioner make them, who are asked row by row."""
        values = list(values)
        count = len(values)
        keys = [None] * count if keys is None else list(keys)
        all_headers = [[] for _ in values] if headers is None else [list(each or ()) for each in headers]
        chosen = None if partitions is None else list(partitions)
        made = []
        for row, (value, key, of_row) in enumerate(zip(values, keys, all_headers, strict=True)):
            serialized = self._serialize(topic, of_row, key, value)
            made.append(serialized)
            if self._partitioner is not None and chosen is not None and chosen[row] is None:
                chosen[row] = self._choose_partition(topic, key, serialized[0], value, serialized[1])
        return [value for _, value in made], [key for key, _ in made], all_headers, chosen

    def _send_source(
        self, topic: str, source: RecordSource, partition: int | None, allow_empty: bool = False
    ) -> BatchFuture:
        future = self._accumulator.append_source(topic, source, partition, None, allow_empty)
        if future is not None:
            return future
        deadline_ms = self._clock.monotonic_ms() + self._max_block_ms
        highest = partition_range(source)[1] if partition is None else partition
        try:
            cluster = self._await_topic(topic, None if highest < 0 else highest, deadline_ms)
        except BrokerResponseError as error:
            self._fail_transaction(error)
            return self._accumulator.failed_source(topic, source, produce_error(error, False))
        left_ms = max(deadline_ms - self._clock.monotonic_ms(), 0.0)
        future = self._accumulator.append_source(topic, source, partition, left_ms, allow_empty)
        if future is None:
            raise ValueError(
                f"topic {printable(topic)} has no partition {highest}, "
                f"but {len(cluster.partitions_for_topic(topic) or ())}, counted from 0; no row was sent"
            )
        return future

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
        self._check_usable()
        if waits and self._thread is not None and self._thread.is_this_thread:
            raise IllegalStateError(
                f"{operation} in a callback would wait for itself; call it from another thread"
            )
        return manager

    def _fail_transaction(self, error: KafkaError) -> None:
        """A record has failed of which only its future tells: the transaction is not whole any more."""
        if self._transactions is not None:
            self._transactions.fail_transaction(error)

    def _await(self, result: TransactionalRequestResult) -> None:
        self._client.wakeup()
        result.wait(self._max_block_ms)

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
            if self._interceptors is not None:
                self._interceptors.close()
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
        cluster = self._await_topic(topic, None, self._clock.monotonic_ms() + self._max_block_ms)
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

    def _troubles(self) -> str:
        summary = self._client.connection_errors.summary()
        return f" ({summary})" if summary else ""

    def _check_usable(self) -> None:
        self._accumulator.check_usable()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        interrupted = exc_type is not None and not issubclass(exc_type, Exception)
        self.close(timeout=INTERRUPTED_CLOSE_TIMEOUT_S if interrupted else None)

    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        thread = getattr(self, "_thread", None)
        if thread is not None and not thread.closing and not self._accumulator.is_forked:
            _warn(f"unclosed {self!r}", ResourceWarning, source=self)
            # Not waited for: this may be any thread, and any place in it.
            thread.initiate_close()

    def __repr__(self) -> str:
        return f"<KafkaProducer client_id={self.config['client_id']}>"


def _serialize_function(serializer: Any) -> Callable[[str, Headers, Any], Any] | None:
    """``(topic, headers, data) → bytes`` of an object with a ``serialize`` method, or of a function of the
    data.
    """
    if serializer is None:
        return None
    method: Callable[[str, Headers, Any], Any] | None = getattr(serializer, "serialize", None)
    if method is not None:
        return method
    return lambda topic, headers, data: serializer(data)


def _refuse_arrow(*columns: Any) -> None:
    if any(
        hasattr(column, "__arrow_c_array__") or hasattr(column, "__arrow_c_stream__") for column in columns
    ):
        raise TypeError(
            "Arrow data are sent as they are, and this producer has an interceptor, a serializer or a "
            "partitioner that has to see each row: pass lists, or use a producer without"
        )
