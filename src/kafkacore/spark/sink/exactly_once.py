"""Write each micro-batch exactly once: the driver commits the transactions that the tasks prepared.

Each task writes in its own transaction and leaves it open. After all tasks of a batch have finished, the
driver takes over each transaction, adds the batch number as the offset of a consumer group, and commits it.
So the records and the progress of the query become visible together. docs/how-it-works/spark.md explains why
this is exactly once and what happens after a crash.
"""

from __future__ import annotations

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
from kafkacore.logs import logger_of
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

logger = logger_of(__name__)

#: Maximum seconds that a failed task or batch waits until its transactions are aborted. A transaction that is
#: still open then ends when it times out.
ABORT_TIMEOUT_S = 5.0
#: Errors that the broker returns if the transaction was already committed or a later attempt has aborted it.
ENDED_ALREADY = (ProducerFencedError, InvalidProducerEpochError, InvalidTxnStateError)
#: Partition for which the progress is committed. Brokers require that it exists, and partition 0 always does.
MARKER_PARTITION = 0


class ExactlyOnceError(KafkaError):
    """The query cannot continue without losing rows or writing them twice."""


class TaskTransaction(NamedTuple):
    """Open transaction with the acknowledged records of one task of a micro-batch.

    Attributes
    ----------
    query_id:
        Spark's id of the query, which is stored in its checkpoint.
    task:
        Number of the task within the batch.
    """

    query_id: str
    task: int
    written: Written
    prepared: PreparedTransaction


class Marker(NamedTuple):
    """Progress of a query: how much of its last batch is committed.

    The marker is stored as the committed offset of a consumer group.

    Attributes
    ----------
    tasks, committed:
        Number of tasks in the batch, and how many of them are committed. Tasks are committed in order.
    digest:
        Digest of the number of rows and bytes of each task. It detects a batch that is repeated with other
        rows.
    """

    batch_id: int
    tasks: int
    committed: int
    digest: int

    @classmethod
    def of(cls, stored: OffsetAndMetadata) -> Marker:
        """Parse a committed offset. Raise ExactlyOnceError if another application committed it."""
        try:
            tasks, committed, digest = (int(word) for word in stored.metadata.split())
        except ValueError:
            raise ExactlyOnceError(
                f"the consumer group for this query's progress has the offset {stored.offset} with metadata "
                f"{stored.metadata!r}, which the sink did not write: set exactly.once.prefix to another name"
            ) from None
        return cls(stored.offset, tasks, committed, digest)

    def stored(self) -> OffsetAndMetadata:
        """Return the offset to commit."""
        return OffsetAndMetadata(self.batch_id, f"{self.tasks} {self.committed} {self.digest}", -1)


def digest_of(tasks: Iterable[TaskTransaction]) -> int:
    """Return a checksum of the number of rows and bytes of each task."""
    return zlib.crc32(repr([tuple(one.written) for one in tasks]).encode())


def group_of(options: SinkOptions, query_id: str) -> str:
    """Return the consumer group whose committed offset is the query's progress."""
    return f"{options.prefix}{query_id}"


def write_task(
    options: SinkOptions,
    columns: SinkColumns,
    batches: Iterable[pa.RecordBatch],
    query_id: str,
    task: int,
) -> TaskTransaction:
    """Write a task's rows in a transaction, and leave it open.

    Raises
    ------
    RecordWriteError, NullTopicError
        See :func:`~kafkacore.spark.sink.task.write_rows`.
    ProducerFencedError
        A later attempt of the same task has started.
    ExactlyOnceError
        The broker does not support transactions.
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
        # The call aborts the transaction of an earlier attempt, and fences the attempt if it still runs.
        producer.init_transactions()
    except UnsupportedVersionError as error:
        raise ExactlyOnceError(
            "exactly.once needs transactions, which this broker does not support: write to a newer broker, "
            "or remove exactly.once"
        ) from error


def commit_batch(options: SinkOptions, tasks: Sequence[TaskTransaction], batch_id: int) -> int:
    """Commit the transactions of all tasks of a micro-batch.

    Transactions that repeat an already committed task are aborted. Transactions are committed in the order of
    the tasks. So after a failure at any point, the committed tasks are the first tasks of the batch. The
    stored progress contains the number of tasks in the batch.

    Returns
    -------
    int
        Number of repeated tasks.

    Raises
    ------
    IllegalStateError
        A task is missing.
    ExactlyOnceError
        The batch was partly committed with other tasks or rows, or a later batch was committed.
    ProducerFencedError
        Another run of the query has taken over, or the batch took longer than ``transaction_timeout_ms``.
    """
    if not tasks:
        return 0
    tasks = sorted(tasks, key=lambda one: one.task)
    if (numbers := [one.task for one in tasks]) != list(range(len(tasks))):
        raise IllegalStateError(f"batch {batch_id} is incomplete: it has only tasks {numbers}")
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
    """Abort the open transactions of a failed batch, so that readers do not have to wait for the timeout."""
    for one in tasks:
        configs = _configs(options, one.query_id) | {"max_block_ms": 1000 * ABORT_TIMEOUT_S}
        try:
            with lend_producer(configs) as producer:
                _abort(producer, one)
        except ENDED_ALREADY as error:
            logger.info("the transaction of task %d has already ended: %s", one.task, error)
        except KafkaError as error:
            logger.warning(
                "failed to abort the transactions of a failed batch; they stay open until they time out: %s",
                error,
            )
            return


def _abort(producer: KafkaProducer, one: TaskTransaction) -> None:
    if not one.written.rows:
        # The broker does not know the transaction, because no record was sent.
        return
    producer.take_over_transaction(one.prepared)
    producer.abort_transaction()


def read_marker(options: SinkOptions, group: str) -> Marker | None:
    """Read the progress of a query, after pending commits have completed; ``None`` before the first batch."""
    shared = {name: value for name, value in options.producer_configs.items() if name in CLIENT_SETTINGS}
    # With bootstrap_timeout_ms=0, the constructor does not wait for a broker. committed() waits instead, and
    # its error names what could not be read.
    shared = {"bootstrap_timeout_ms": 0} | shared
    with KafkaConsumer(**shared, group_id=group, enable_auto_commit=False) as consumer:
        stored = consumer.committed(TopicPartition(options.marker_topic, MARKER_PARTITION), metadata=True)
        if isinstance(stored, OffsetAndMetadata):
            return Marker.of(stored)
        if not consumer.partitions_by_topic([options.marker_topic]).get(options.marker_topic):
            raise ExactlyOnceError(
                f"topic {options.marker_topic}, for which exactly.once commits its progress, does not exist: "
                "create it, or set exactly.once.topic to an existing topic"
            )
    return None


def _repeated(marker: Marker | None, batch: Marker) -> int:
    """Return how many tasks of the batch, counted from the first, are already committed."""
    if marker is None or marker.batch_id < batch.batch_id:
        return 0
    if marker.batch_id > batch.batch_id:
        raise ExactlyOnceError(
            f"batch {batch.batch_id} was run after batch {marker.batch_id} had been committed, so the "
            "checkpoint is outdated. Nothing was committed. Continue from the newest checkpoint, or set "
            "exactly.once.prefix to a new name and accept duplicate records"
        )
    if marker.tasks != batch.tasks:
        raise ExactlyOnceError(
            f"batch {batch.batch_id} was committed with {marker.tasks} tasks, but is repeated with "
            f"{batch.tasks} tasks, so the sink cannot tell which rows are already written. Nothing was "
            "committed now. Run this batch with the previous number of partitions, then change that number"
        )
    if marker.digest != batch.digest:
        raise ExactlyOnceError(
            f"batch {batch.batch_id} is repeated with other rows than were committed, so the query is not "
            "deterministic. Nothing was committed now. Remove random values, the current time and "
            "repartition without columns from the query, or remove exactly.once"
        )
    return marker.committed
