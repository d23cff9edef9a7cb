"""The worker's side: one range of one partition in, Arrow record batches out.

Runs in Spark's Python workers, which live on between tasks: a consumer stays open, keyed by its
configuration, and is made after the fork, never before. Does not know: micro-batches, other partitions, the
driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.consumer import KafkaConsumer
from kafkacore.errors import KafkaTimeoutError, OffsetOutOfRangeError
from kafkacore.spark.configs import consumer_configs
from kafkacore.spark.offsets import OffsetRange
from kafkacore.spark.planner import DataLossError
from kafkacore.spark.schema import COLUMN_OF, Column, arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacore.record import RecordColumns
    from kafkacore.spark.options import SourceOptions

#: Rows of one Arrow batch: large enough that the per-batch cost in the JVM (~0.2 ms) does not show.
BATCH_ROWS = 100_000
#: Longest single wait for the broker, so that a killed task notices soon.
POLL_MS = 500

_consumers: dict[tuple[tuple[str, str], ...], KafkaConsumer] = {}


def _borrow(configs: Mapping[str, str]) -> KafkaConsumer:
    """This process's idle consumer for ``configs``, or a new one. Whoever borrows it owns it until given
    back.
    """
    idle = _consumers.pop(tuple(sorted(configs.items())), None)
    return idle if idle is not None else KafkaConsumer(**consumer_configs(configs, for_fetching=True))


def _give_back(configs: Mapping[str, str], consumer: KafkaConsumer) -> None:
    key = tuple(sorted(configs.items()))
    if key in _consumers:
        consumer.close()
        return
    consumer.assign([])
    _consumers[key] = consumer


def read_range(
    options: SourceOptions, offsets: OffsetRange, columns: tuple[Column, ...], clock: Clock = SYSTEM_CLOCK
) -> Iterator[pa.RecordBatch]:
    """Every record of the range, in order, in batches of up to :data:`BATCH_ROWS` rows.

    Raises
    ------
    DataLossError
        Part of the range has been deleted and ``failOnDataLoss`` is true.
    KafkaTimeoutError
        Nothing came for ``kafkaConsumer.pollTimeoutMs``.
    """
    consumer = _borrow(options.client_configs)
    whole = False
    try:
        yield from _read(consumer, options, offsets, columns, clock)
        whole = True
    finally:
        # Cut short (a limit, a killed task, an error): answers may be on their way, so it is not used again.
        if whole:
            _give_back(options.client_configs, consumer)
        else:
            consumer.close()


def _read(
    consumer: KafkaConsumer,
    options: SourceOptions,
    offsets: OffsetRange,
    columns: tuple[Column, ...],
    clock: Clock,
) -> Iterator[pa.RecordBatch]:
    tp = offsets.topic_partition
    fetched = tuple(dict.fromkeys(COLUMN_OF[c] for c in columns if c in COLUMN_OF)) or ("offset",)
    schema = arrow_schema(columns)
    consumer.assign([tp])
    consumer.seek(tp, offsets.start)
    last_progress_ms = clock.monotonic_ms()
    while (position := consumer.position(tp)) < offsets.end:
        try:
            polled = consumer.poll_arrow(
                timeout_ms=POLL_MS,
                max_records=BATCH_ROWS,
                columns=fetched,
                timestamp_unit="us",
                end_offsets={tp: offsets.end},
            )
        except OffsetOutOfRangeError as error:
            _skip_deleted(consumer, options, offsets, error)
            continue
        if polled:
            for columns_of_batch in polled.values():
                yield _to_batch(columns_of_batch, offsets, columns, schema)
        if polled or consumer.position(tp) > position:
            last_progress_ms = clock.monotonic_ms()
        elif clock.monotonic_ms() - last_progress_ms > options.poll_timeout_ms:
            raise KafkaTimeoutError(
                f"no record of {tp.topic}-{tp.partition} came from offset {position} within "
                f"{options.poll_timeout_ms} ms (kafkaConsumer.pollTimeoutMs); reading up to {offsets.end}"
            )


def _skip_deleted(
    consumer: KafkaConsumer, options: SourceOptions, offsets: OffsetRange, error: OffsetOutOfRangeError
) -> None:
    """The log's start has passed our position while we read: an error, or on from what is left."""
    tp = offsets.topic_partition
    position = consumer.position(tp)
    first = consumer.beginning_offsets([tp])[tp]
    if options.fail_on_data_loss or first <= position:
        raise DataLossError(
            f"{tp.topic}-{tp.partition}: offsets from {position} on are gone (the log starts at {first}). "
            f"Set failOnDataLoss to false to go on without these records"
        ) from error
    consumer.seek(tp, min(first, offsets.end))


def _to_batch(
    found: RecordColumns, offsets: OffsetRange, columns: tuple[Column, ...], schema: pa.Schema
) -> pa.RecordBatch:
    import pyarrow as pa

    decoded = pa.record_batch(found)
    count = decoded.num_rows
    arrays: list[pa.Array[Any]] = []
    for column in columns:
        if column == "topic":
            arrays.append(pa.repeat(pa.scalar(offsets.topic, pa.string()), count))
        elif column == "partition":
            arrays.append(pa.repeat(pa.scalar(offsets.partition, pa.int32()), count))
        else:
            arrays.append(decoded.column(COLUMN_OF[column]))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
