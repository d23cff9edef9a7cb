"""Read one range of a partition in a Spark worker, as Arrow record batches.

The task fetches the first batch itself. If the range has more records, a thread prefetches them while Spark
processes a batch. A fetch requests 4 MiB. With 16 MiB, the cost per record was the same, but the memory was
four times as large. After a read, the idle consumer keeps the rest of its last response, because the next
micro-batch may start with those records. If a read is aborted, its consumer is closed, because responses may
still be in flight.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.consumer import KafkaConsumer
from kafkacore.errors import KafkaTimeoutError, OffsetOutOfRangeError
from kafkacore.spark.columns.output import batches as output_batches
from kafkacore.spark.options.client_arguments import consumer_configs
from kafkacore.spark.reader.consumers import CONSUMERS, drop_consumer
from kafkacore.spark.reader.data_loss import DataLossError, report_data_loss
from kafkacore.spark.reader.offsets import OffsetRange
from kafkacore.spark.worker.prefetch import Prefetch
from kafkacore.structs import partition_name

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacore.spark.columns.output import Output
    from kafkacore.spark.reader.options import SourceOptions

#: Maximum rows of an Arrow batch. With so many rows, the JVM's cost per batch (about 0.2 ms) is negligible.
BATCH_ROWS = 100_000
#: Maximum rows of the first batch, when the size of a record is unknown. A compressed response of 4 MiB may
#: be much larger when decompressed.
FIRST_ROWS = 50_000
#: Approximate bytes of a batch, and maximum bytes of one of its columns, unless a single record is larger.
BATCH_BYTES, MAX_BATCH_BYTES = 8 * 1024 * 1024, 16 * 1024 * 1024
#: Maximum bytes of batches that are prefetched.
AHEAD_BYTES = 4 * 1024 * 1024
#: Maximum duration of one poll, in ms.
POLL_MS = 500


def read_range(
    options: SourceOptions, offsets: OffsetRange, output: Output, clock: Clock = SYSTEM_CLOCK
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a range, in order.

    A batch has at most :data:`BATCH_ROWS` rows and about :data:`BATCH_BYTES` bytes.

    Parameters
    ----------
    options:
        Options of the read.
    offsets:
        The range to read.
    output:
        Builder of the batches.
    clock:
        Clock that measures ``kafkaConsumer.pollTimeoutMs``.

    Raises
    ------
    DataLossError
        Part of the range has been deleted and ``failOnDataLoss`` is true.
    KafkaTimeoutError
        No record arrived within ``kafkaConsumer.pollTimeoutMs``.
    """
    configs = consumer_configs(options.client_configs, for_fetching=True)
    ahead: Prefetch[pa.RecordBatch] | None = None

    def drop(consumer: KafkaConsumer) -> None:
        """Close the consumer after an aborted read, once the prefetching thread no longer uses it."""
        if ahead is None:
            drop_consumer(consumer)
        else:
            ahead.when_ended(lambda: drop_consumer(consumer))

    with CONSUMERS.lend(configs, drop) as consumer:
        reading = _Reading(consumer, options, offsets, output, clock)
        batches = reading.batches()
        first = next(batches, None)
        if first is not None and reading.is_at_end:
            # The range is complete, as in most micro-batches, so there is nothing to prefetch.
            yield first
            yield from batches
        elif first is not None:
            ahead = Prefetch(batches, _bytes_of, AHEAD_BYTES, consumer.wakeup)
            with ahead:
                yield first
                del first
                yield from ahead


def _bytes_of(batch: pa.RecordBatch) -> int:
    return int(batch.nbytes)


class _Reading:
    """State of reading one range with a borrowed consumer. Used by one thread at a time."""

    def __init__(
        self,
        consumer: KafkaConsumer,
        options: SourceOptions,
        offsets: OffsetRange,
        output: Output,
        clock: Clock,
    ) -> None:
        self._consumer = consumer
        self._options = options
        self._range = offsets
        self._tp = offsets.topic_partition
        self._output = output
        self._clock = clock
        self._position = offsets.start
        self._most_rows = FIRST_ROWS

    @property
    def is_at_end(self) -> bool:
        """Whether all offsets of the range have been fetched."""
        return self._position >= self._range.end

    def batches(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        tp, consumer = self._tp, self._consumer
        consumer.assign([tp])
        consumer.seek(tp, self._range.start)
        poll_ms = min(POLL_MS, self._options.poll_timeout_ms)
        last_progress_ms = self._clock.monotonic_ms()
        while not self.is_at_end:
            try:
                polled = consumer.poll_arrow(
                    timeout_ms=poll_ms,
                    max_records=self._most_rows,
                    columns=self._output.fetched,
                    timestamp_unit="us",
                    timezone="UTC",
                    end_offsets={tp: self._range.end},
                    max_column_bytes=MAX_BATCH_BYTES,
                )
            except OffsetOutOfRangeError as error:
                self._skip_lost(error)
                continue
            before, self._position = self._position, consumer.position(tp)
            if polled:
                found = pa.record_batch(polled.pop(tp))
                self._most_rows = max(1, min(BATCH_ROWS, BATCH_BYTES * found.num_rows // (found.nbytes + 1)))
                yield from output_batches(self._output, found, tp.topic, tp.partition)
                del found
            if self._position > before:
                last_progress_ms = self._clock.monotonic_ms()
            elif self._clock.monotonic_ms() - last_progress_ms > self._options.poll_timeout_ms:
                self._handle_poll_timeout()

    def _handle_poll_timeout(self) -> None:
        """Skip lost records if the log does not contain the position; raise a timeout error otherwise."""
        first, log_end = self._available()
        if not first <= self._position < log_end:
            self._skip_lost(None)
            return
        raise KafkaTimeoutError(
            f"{partition_name(self._tp)}: received no record from offset {self._position} within "
            f"{self._options.poll_timeout_ms} ms (kafkaConsumer.pollTimeoutMs); the task reads up to offset "
            f"{self._range.end}"
        )

    def _available(self) -> tuple[int, int]:
        tp, consumer = self._tp, self._consumer
        return consumer.beginning_offsets([tp])[tp], consumer.end_offsets([tp])[tp]

    def _skip_lost(self, error: OffsetOutOfRangeError | None) -> None:
        """Report the loss of the record at the position, and continue with the next record that exists.

        This follows ``KafkaDataConsumer`` of Spark's own source. Deleted records are skipped. If the log ends
        before the position, the rest of the range is skipped. If the log contains the position after all, the
        fetch is repeated.
        """
        where = partition_name(self._tp)
        first, log_end = self._available()
        position, end = self._position, self._range.end
        if position >= log_end or first >= end:
            self._position = end
        elif position < first:
            self._position = first
        lost = f"{position} to {max(self._position, position + 1) - 1}"
        try:
            report_data_loss(
                self._options.fail_on_data_loss,
                "COULD_NOT_READ_OFFSET_RANGE",
                f"{where}: offsets {lost} of the range {self._range.start} to {end} cannot be read; the log "
                f"has {first} to {log_end} now. Retention deleted the records, or the topic was deleted",
            )
        except DataLossError as failure:
            raise failure from error
        if self._position == position:
            self._clock.sleep_ms(self._options.fetch_retry_interval_ms)
        self._consumer.seek(self._tp, self._position)
