"""Many records by one call: lists or Arrow data in, one future of all rows out.

What the user's interceptors, serializers and partitioner have to see is shown to them row by row first. Does
not know: batches, requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafkacore.client import Cluster
from kafkacore.clock import Clock
from kafkacore.errors import BrokerResponseError
from kafkacore.producer._batch_future import BatchFuture
from kafkacore.producer._column_appender import partition_range
from kafkacore.producer.interceptors import ProducerInterceptors, ProducerRecord
from kafkacore.producer.produce_outcome import produce_error
from kafkacore.producer.record_accumulator import RecordAccumulator
from kafkacore.producer.transactional import TransactionalProducer
from kafkacore.record._source import RecordSource
from kafkacore.structs import printable

#: Of one record.
Headers = list[tuple[str, bytes | None]]
#: Columns that ``poll_arrow()`` gives and that are no producer's to say.
SET_BY_BROKERS = ("offset", "timestamp_type")


class BatchProducer(TransactionalProducer):
    """What :class:`~kafkacore.KafkaProducer` does with columns of records."""

    _accumulator: RecordAccumulator
    _clock: Clock
    _interceptors: ProducerInterceptors | None
    _partitioner: Any
    _serializes: bool

    def _await_topic(self, topic: str, partition: int | None, deadline_ms: float) -> Cluster:
        raise NotImplementedError

    def _serialize(self, topic: str, headers: Headers, key: Any, value: Any) -> tuple[Any, Any]:
        raise NotImplementedError

    def _choose_partition(
        self, topic: str, key: Any, serialized_key: Any, value: Any, serialized_value: Any
    ) -> int:
        raise NotImplementedError

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


def _refuse_arrow(*columns: Any) -> None:
    if any(
        hasattr(column, "__arrow_c_array__") or hasattr(column, "__arrow_c_stream__") for column in columns
    ):
        raise TypeError(
            "Arrow data are sent as they are, and this producer has an interceptor, a serializer or a "
            "partitioner that has to see each row: pass lists, or use a producer without"
        )
