"""Write each micro-batch exactly once: the driver commits the transactions that the tasks prepared.

A task writes in a transaction of its own and leaves it open. After all tasks of a batch have finished, the
driver takes over each transaction, adds the batch number as the offset of a consumer group, and commits it.
So the records and the fact that they are written become visible together. docs/how-it-works/spark.md
explains why this holds and what each crash leaves.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kafkacore.client.config import CLIENT_SETTINGS
from kafkacore.consumer import KafkaConsumer
from kafkacore.errors import (
    IllegalStateError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    KafkaError,
    ProducerFencedError,
    UnsupportedVersionError,
)
from kafkacore.producer.prepared_transaction import PreparedTransaction
from kafkacore.settings import Config
from kafkacore.spark.sink.columns import SinkColumns
from kafkacore.spark.sink.options import SinkOptions
from kafkacore.spark.sink.producers import lend_producer
from kafkacore.spark.sink.task import Written, write_rows
from kafkacore.structs import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacore.producer import KafkaProducer

logger = logging.getLogger(__name__)

#: How long a task or a batch that has failed waits for its transactions to be aborted; then they time out.
ABORT_TIMEOUT_S = 5.0
#: What is said of a transaction that a later attempt has ended, or that was committed before.
ENDED_ALREADY = (ProducerFencedError, InvalidProducerEpochError, InvalidTxnStateError)
#: Brokers take offsets for partitions that exist, and this one always does.
MARKER_PARTITION = 0


class ExactlyOnceError(KafkaError):
    """Going on would lose rows or write them twice."""


class TaskTransaction(NamedTuple):
    """A task's part of a micro-batch: written, acknowledged, and in a transaction that is open.

    Attributes
    ----------
    query_id:
        Spark's name of the query, which its checkpoint keeps.
    task:
        Number of the task within the batch.
    """

    query_id: str
    task: int
    written: Written
    prepared: PreparedTransaction


class Marker(NamedTuple):
    """What the group's offset says: how far the last batch is committed.

    Attributes
    ----------
    tasks, committed:
        Into how many tasks the batch was divided, and how many of them are committed: the first ones.
    digest:
        Of the rows and bytes of each task, by which a repetition of something else is told.
    """

    batch_id: int
    tasks: int
    committed: int
    digest: int

    @classmethod
    def of(cls, stored: OffsetAndMetadata) -> Marker:
        """Raises :class:`ExactlyOnceError` for an offset that somebody else has committed."""
        try:
            tasks, committed, digest = (int(word) for word in stored.metadata.split())
        except ValueError:
            raise ExactlyOnceError(
                f"the group that holds this query's progress has an offset {stored.offset} with metadata "
                f"{stored.metadata!r}, which is not the sink's: set exactly.once.prefix to another name"
            ) from None
        return cls(stored.offset, tasks, committed, digest)

    def stored(self) -> OffsetAndMetadata:
        """The offset that says it."""
        return OffsetAndMetadata(self.batch_id, f"{self.tasks} {self.committed} {self.digest}", -1)


def digest_of(tasks: Iterable[TaskTransaction]) -> int:
    """A number that differs, in all likelihood, where a task has other rows."""
    return zlib.crc32(repr([tuple(one.written) for one in tasks]).encode())


def group_of(options: SinkOptions, query_id: str) -> str:
    """The group whose offsets are the query's progress."""
    return f"{options.prefix}{query_id}"


def write_task(
    options: SinkOptions,
    columns: SinkColumns,
    batches: Iterable[pa.RecordBatch],
    query_id: str,
    task: int,
) -> TaskTransaction:
    """Write a task's rows in a transaction, and leave that open.

    Raises
    ------
    RecordWriteError, NullTopicError
        As of :func:`~kafkacore.spark.sink.task.write_rows`.
    ProducerFencedError
        Another attempt of the same task has begun after this one.
    ExactlyOnceError
        The broker has no transactions.
    """
    name = f"{group_of(options, query_id)}-{task}"
    with lend_producer(_configs(options, query_id), ABORT_TIMEOUT_S) as producer:
        producer.change_transactional_id(name)
        _initialize(producer)
        producer.begin_transaction()
        written = write_rows(producer, batches, columns, options.topic)
        return TaskTransaction(query_id, task, written, producer.prepare_transaction())


def _configs(options: SinkOptions, query_id: str) -> Config:
    return options.producer_configs | {"transactional_id": group_of(options, query_id)}


def _initialize(producer: KafkaProducer) -> None:
    try:
        # Ends what an earlier attempt has left, and fences it if it still runs.
        producer.init_transactions()
    except UnsupportedVersionError as error:
        raise ExactlyOnceError(
            "exactly.once needs a broker with transactions, which this one does not have: write to Apache "
            "Kafka, or leave exactly.once out"
        ) from error


def commit_batch(options: SinkOptions, tasks: Sequence[TaskTransaction], batch_id: int) -> int:
    """End the transactions of all tasks of a micro-batch; one that repeats what is committed is aborted.

    Transactions are committed in the order of the tasks, so whatever stops it, those committed are the first
    ones, and the first one says into how many tasks the batch was divided.

    Returns
    -------
    int
        How many were a repetition.

    Raises
    ------
    IllegalStateError
        A task is missing.
    ExactlyOnceError
        The batch was begun with other tasks or other rows, or is older than what has been committed.
    ProducerFencedError
        Another run of the query has taken over, or the batch took longer than ``transaction_timeout_ms``.
    """
    if not tasks:
        return 0
    tasks = sorted(tasks, key=lambda one: one.task)
    if (numbers := [one.task for one in tasks]) != list(range(len(tasks))):
        raise IllegalStateError(f"tasks {numbers} are not all of batch {batch_id}")
    group = group_of(options, tasks[0].query_id)
    place = TopicPartition(options.marker_topic, MARKER_PARTITION)
    digest = digest_of(tasks)
    repeated = _repeated(read_marker(options, group), Marker(batch_id, len(tasks), 0, digest))
    with lend_producer(_configs(options, tasks[0].query_id)) as producer:
        for one in tasks[:repeated]:
            _abort(producer, one)
        for one in tasks[repeated:]:
            marker = Marker(batch_id, len(tasks), one.task + 1, digest)
            producer.take_over_transaction(one.prepared)
            producer.send_offsets_to_transaction({place: marker.stored()}, group)
            producer.commit_transaction()
    return repeated


def abort_batch(options: SinkOptions, tasks: Iterable[TaskTransaction]) -> None:
    """Abort what tasks of a failed batch have left open, so that readers need not wait for its time-out."""
    for one in tasks:
        configs = _configs(options, one.query_id) | {"max_block_ms": 1000 * ABORT_TIMEOUT_S}
        try:
            with lend_producer(configs) as producer:
                _abort(producer, one)
        except ENDED_ALREADY as error:
            logger.info("the transaction of task %d is no more to be aborted: %s", one.task, error)
        except KafkaError as error:
            logger.warning(
                "transactions of a failed batch were not aborted, and wait for their time-out: %s", error
            )
            return


def _abort(producer: KafkaProducer, one: TaskTransaction) -> None:
    if not one.written.rows:
        # The broker has not heard of it.
        return
    producer.take_over_transaction(one.prepared)
    producer.abort_transaction()


def read_marker(options: SinkOptions, group: str) -> Marker | None:
    """How far the query is, waiting for what is being committed; ``None`` before its first batch."""
    shared = {name: value for name, value in options.producer_configs.items() if name in CLIENT_SETTINGS}
    with KafkaConsumer(**shared, group_id=group, enable_auto_commit=False) as consumer:
        stored = consumer.committed(TopicPartition(options.marker_topic, MARKER_PARTITION), metadata=True)
        if isinstance(stored, OffsetAndMetadata):
            return Marker.of(stored)
        if not consumer.partitions_by_topic([options.marker_topic]).get(options.marker_topic):
            raise ExactlyOnceError(
                f"topic {options.marker_topic}, under whose name exactly.once keeps its progress, does not "
                "exist: create it, or set exactly.once.topic to one that does"
            )
    return None


def _repeated(marker: Marker | None, batch: Marker) -> int:
    """How many of the batch's tasks, the first ones, are committed already."""
    if marker is None or marker.batch_id < batch.batch_id:
        return 0
    if marker.batch_id > batch.batch_id:
        raise ExactlyOnceError(
            f"batch {batch.batch_id} comes after batch {marker.batch_id}, which is committed: the checkpoint "
            "is an older one. Nothing was committed. Go on with the newest checkpoint, or set "
            "exactly.once.prefix to a new name and accept what is written twice"
        )
    if marker.tasks != batch.tasks:
        raise ExactlyOnceError(
            f"batch {batch.batch_id} was committed by {marker.tasks} tasks, and is repeated by {batch.tasks}"
            ": rows cannot be told apart. Nothing was committed now. Run this batch again with as many "
            "partitions as before, then change them"
        )
    if marker.digest != batch.digest:
        raise ExactlyOnceError(
            f"batch {batch.batch_id} is repeated with other rows in its tasks than were committed: the query "
            "does not give the same again. Nothing was committed now. Make it deterministic (no random or "
            "current time, no repartition without columns), or leave exactly.once out"
        )
    return marker.committed
