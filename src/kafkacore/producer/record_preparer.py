"""Prepare records that the compiled ``send()`` cannot append without Python code.

Interceptors, serializers and a custom partitioner are applied to each record, in this order. If a topic is
unknown, the call waits for the topic's metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from kafkacore.client import Metadata
from kafkacore.client.cluster_metadata import ClusterMetadata
from kafkacore.clock import Clock
from kafkacore.errors import BrokerResponseError, KafkaError
from kafkacore.producer._batch_future import BatchFuture
from kafkacore.producer._column_appender import partition_range
from kafkacore.producer._future import FutureRecordMetadata, ProduceResult
from kafkacore.producer.interceptors import Headers, ProducerInterceptors, ProducerRecord
from kafkacore.producer.metadata_wait import MetadataWait
from kafkacore.producer.partitioner import DefaultPartitioner, StickyPartitioner
from kafkacore.producer.produce_outcome import produce_error
from kafkacore.producer.record_accumulator import RecordAccumulator
from kafkacore.record._source import RecordSource
from kafkacore.settings import Config
from kafkacore.structs import TopicPartition, printable

if TYPE_CHECKING:
    from kafkacore.producer.transaction_manager import TransactionManager

#: Function of the topic, the headers and the data of a record.
_SerializeFunction = Callable[[str, Headers, Any], Any]


class RecordPreparer:
    """Prepares records, and appends them to batches.

    Parameters
    ----------
    config:
        The producer's settings.
    accumulator:
        Appends the prepared records to batches.
    topics:
        Waits for the metadata of unknown topics.
    metadata:
        Metadata to pass to a custom partitioner.
    transactions:
        Fails the transaction when a record fails; ``None`` without a ``transactional_id``.
    clock:
        Clock for the futures of records that fail before they are appended to a batch.
    """

    def __init__(
        self,
        config: Config,
        accumulator: RecordAccumulator,
        topics: MetadataWait,
        metadata: Metadata,
        transactions: TransactionManager | None,
        clock: Clock,
    ) -> None:
        self._key_serializer = _serialize_function(config["key_serializer"])
        self._value_serializer = _serialize_function(config["value_serializer"])
        self._serializes = self._key_serializer is not None or self._value_serializer is not None
        partitioner = config["partitioner"]
        # The built-in partitioners need no Python code, because they are implemented in compiled code.
        is_built_in = type(partitioner) in (type(None), DefaultPartitioner, StickyPartitioner)
        self._partitioner = None if is_built_in else partitioner
        interceptors = config["interceptors"]
        self._interceptors = ProducerInterceptors(interceptors) if interceptors else None
        self._accumulator = accumulator
        self._append = accumulator.append
        self._topics = topics
        self._metadata = metadata
        self._transactions = transactions
        self._clock = clock

    @property
    def is_plain(self) -> bool:
        """Whether the producer has no interceptors, no serializers and no custom partitioner."""
        return not self._serializes and self._partitioner is None and self._interceptors is None

    @property
    def serializers(self) -> tuple[_SerializeFunction | None, _SerializeFunction | None]:
        """The functions that serialize keys and values."""
        return self._key_serializer, self._value_serializer

    def close(self) -> None:
        """Close the interceptors."""
        if self._interceptors is not None:
            self._interceptors.close()

    # ---- One record --------------------------------------------------------------------------------------

    def send(
        self,
        topic: str,
        value: object,
        key: object,
        headers: Headers | None,
        partition: int | None,
        timestamp_ms: int | None,
    ) -> FutureRecordMetadata:
        """Send a record that an interceptor, a serializer or a custom partitioner has to process."""
        interceptors = self._interceptors
        if interceptors is None:
            return self._send_serialized(topic, value, key, headers, partition, timestamp_ms)
        record = interceptors.on_send(ProducerRecord(topic, value, key, headers, partition, timestamp_ms))
        try:
            future = self._send_serialized(*record)
        except Exception as error:
            interceptors.notify_failed(record, error)
            raise
        interceptors.notify_when_done(future, record.headers)
        return future

    def _send_serialized(
        self,
        topic: str,
        value: object,
        key: object,
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
            return self.send_to_unknown(
                topic, serialized_value, serialized_key, headers, partition, timestamp_ms
            )
        return future

    def send_to_unknown(
        self,
        topic: str,
        value: Any,
        key: Any,
        headers: Headers | None,
        partition: int | None,
        timestamp_ms: int | None,
    ) -> FutureRecordMetadata:
        """Send a record whose topic or partition is not known yet."""
        deadline_ms = self._topics.deadline_ms()
        try:
            cluster = self._topics.await_topic(topic, partition, deadline_ms)
        except BrokerResponseError as error:
            return self._failed(topic, partition, error)
        left_ms = self._topics.left_ms(deadline_ms)
        future = self._append(topic, value, key, headers, partition, timestamp_ms, left_ms)
        if future is None:
            raise ValueError(
                f"topic {printable(topic)} has no partition {partition}: it has "
                f"{len(cluster.partitions_for_topic(topic) or ())} partition(s), numbered from 0"
            )
        return future

    def _failed(self, topic: str, partition: int | None, error: KafkaError) -> FutureRecordMetadata:
        self._fail_transaction(error)
        result = ProduceResult(TopicPartition(topic, -1 if partition is None else partition), self._clock)
        result.complete(error=produce_error(error, possibly_persisted=False))
        return FutureRecordMetadata(result)

    def _serialize(self, topic: str, headers: Headers, key: object, value: object) -> tuple[Any, Any]:
        if self._key_serializer is not None:
            key = self._key_serializer(topic, headers, key)
        if self._value_serializer is not None:
            value = self._value_serializer(topic, headers, value)
        return key, value

    def _choose_partition(
        self, topic: str, key: object, serialized_key: object, value: object, serialized_value: object
    ) -> int:
        deadline_ms = self._topics.deadline_ms()
        if self._accumulator.topic_state(topic) is None:
            self._topics.await_topic(topic, None, deadline_ms)
        cluster = ClusterMetadata(self._metadata.fetch())
        assert self._partitioner is not None
        chosen = self._partitioner.partition(topic, key, serialized_key, value, serialized_value, cluster)
        if not isinstance(chosen, int):
            raise ValueError(
                f"the partitioner must return an int, but returned {chosen!r} for topic {printable(topic)}"
            )
        return chosen

    # ---- Many records ------------------------------------------------------------------------------------

    def send_rows(
        self,
        topic: str,
        values: Iterable[object],
        keys: Iterable[object] | None,
        headers: Iterable[Headers | None] | None,
        timestamps: Iterable[int | None] | None,
        partition: int | None,
    ) -> BatchFuture:
        """Send the records of :meth:`KafkaProducer.send_batch`."""
        if self._interceptors is not None:
            return self._send_intercepted(topic, values, keys, headers, timestamps, partition)
        partitions: list[int | None] | None = None
        if not self.is_plain:
            _refuse_arrow(values, keys)
            values = list(values)
            if self._partitioner is not None and partition is None:
                partitions = [None] * len(values)
            values, keys, headers, partitions = self._prepare_rows(topic, values, keys, headers, partitions)
        source = RecordSource(values, keys, headers, timestamps, partitions)
        return self.send_source(topic, source, partition)

    def _send_intercepted(
        self,
        topic: str,
        values: Iterable[object],
        keys: Iterable[object] | None,
        headers: Iterable[Headers | None] | None,
        timestamps: Iterable[int | None] | None,
        partition: int | None,
    ) -> BatchFuture:
        """Send records and call the interceptors for each of them."""
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
            future = self.send_source(topic, source, None)
        except Exception as error:
            future = getattr(error, "future", None)
            if future is None:
                for record in records:
                    interceptors.notify_failed(record, error)
            raise
        finally:
            if future is not None:
                for row in range(len(future)):
                    interceptors.notify_when_done(future[row], records[row].headers)
        return future

    def check_takes_columns(self) -> None:
        """Raise ``TypeError`` if there are serializers or interceptors, which process single records."""
        if self._serializes or self._interceptors is not None:
            raise TypeError(
                "send_arrow() sends columns unchanged, but this producer has a key_serializer, a "
                "value_serializer or interceptors. Use send_batch(), or a producer without these settings."
            )

    def check_partitions(self, source: RecordSource) -> None:
        """Raise ``TypeError`` if a custom partitioner would have to choose the partition of a record."""
        if self._partitioner is not None and partition_range(source)[0] < 0:
            raise TypeError(
                "send_arrow() cannot call this producer's partitioner. Add a column with the partition of "
                "each row, or use send_batch()."
            )

    def _prepare_rows(
        self,
        topic: str,
        values: Iterable[object],
        keys: Iterable[object] | None,
        headers: Iterable[Headers | None] | None,
        partitions: Iterable[int | None] | None,
    ) -> tuple[list[Any], list[Any], list[Headers], list[int | None] | None]:
        """Apply the serializers and the custom partitioner to each record. Return the resulting columns."""
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

    def send_source(
        self, topic: str, source: RecordSource, partition: int | None, allow_empty: bool = False
    ) -> BatchFuture:
        """Append the records of ``source``. Wait for metadata if the topic or a partition is unknown."""
        future = self._accumulator.append_source(topic, source, partition, None, allow_empty)
        if future is not None:
            return future
        deadline_ms = self._topics.deadline_ms()
        highest = partition_range(source)[1] if partition is None else partition
        try:
            cluster = self._topics.await_topic(topic, None if highest < 0 else highest, deadline_ms)
        except BrokerResponseError as error:
            self._fail_transaction(error)
            return self._accumulator.failed_source(topic, source, produce_error(error, False))
        left_ms = self._topics.left_ms(deadline_ms)
        future = self._accumulator.append_source(topic, source, partition, left_ms, allow_empty)
        if future is None:
            raise ValueError(
                f"topic {printable(topic)} has no partition {highest}: it has "
                f"{len(cluster.partitions_for_topic(topic) or ())} partition(s), numbered from 0. "
                "No row was sent."
            )
        return future

    def _fail_transaction(self, error: KafkaError) -> None:
        """Fail the transaction, because a record failed before it was appended to a batch."""
        if self._transactions is not None:
            self._transactions.fail_transaction(error)


def _serialize_function(serializer: Any) -> _SerializeFunction | None:
    """Return a function ``(topic, headers, data) → bytes``.

    ``serializer`` is an object with a ``serialize`` method, or a function that takes only the data.
    """
    if serializer is None:
        return None
    method: _SerializeFunction | None = getattr(serializer, "serialize", None)
    if method is not None:
        return method
    return lambda topic, headers, data: serializer(data)


def _refuse_arrow(*columns: object) -> None:
    if any(
        hasattr(column, "__arrow_c_array__") or hasattr(column, "__arrow_c_stream__") for column in columns
    ):
        raise TypeError(
            "Arrow data are sent unchanged, but this producer has an interceptor, a serializer or a "
            "partitioner that processes each row. Pass lists, or use a producer without these settings."
        )
