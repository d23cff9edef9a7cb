"""Read one range of a partition in a Spark worker, as Arrow record batches.

The task fetches the first piece itself. If there is more, a thread prefetches while Spark uses the last
piece. A fetch asks for 4 MiB: 16 MiB cost as much per record and four times the memory. What is left of a
response stays with the idle consumer, because the next micro-batch may start with it. A read that was cut
short closes its consumer, because responses may still be in flight.
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

#: Rows of one Arrow batch: large enough that the per-batch cost in the JVM (~0.2 ms) does not show.
BATCH_ROWS = 100_000
#: Of the first batch, before it is known how large they are: an answer of 4 MiB may have been compressed.
FIRST_ROWS = 50_000
#: Bytes of a batch: about, and at most in a column unless a record alone has more.
BATCH_BYTES, MAX_BATCH_BYTES = 8 * 1024 * 1024, 16 * 1024 * 1024
#: Bytes of batches that are made before Spark asks for them.
AHEAD_BYTES = 4 * 1024 * 1024
#: Longest single wait for the broker.
POLL_MS = 500


def read_range(
    options: SourceOptions, offsets: OffsetRange, output: Output, clock: Clock = SYSTEM_CLOCK
) -> Iterator[pa.RecordBatch]:
    """Every record of the range, in order, in batches of up to :data:`BATCH_ROWS` rows or about
    :data:`BATCH_BYTES`.

    Parameters
    ----------
    clock:
        For ``kafkaConsumer.pollTimeoutMs``.

    Raises
    ------
    DataLossError
        Part of the range has been deleted and ``failOnDataLoss`` is true.
    KafkaTimeoutError
        Nothing came for ``kafkaConsumer.pollTimeoutMs``.
    """
    configs = consumer_configs(options.client_configs, for_fetching=True)
    ahead: Prefetch[pa.RecordBatch] | None = None

    def drop(consumer: KafkaConsumer) -> None:
        """After a limit, a killed task or an error: the thread that fetches ahead may still use it."""
        if ahead is None:
            drop_consumer(consumer)
        else:
            ahead.when_ended(lambda: drop_consumer(consumer))

    with CONSUMERS.lend(configs, drop) as consumer:
        reading = _Reading(consumer, options, offsets, output, clock)
        batches = reading.batches()
        first = next(batches, None)
        if first is not None and reading.is_at_end:
            # As most micro-batches are: a thread would have nothing to fetch.
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
    """One range being read by a consumer that is ours for the while; used by one thread at a time."""

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
        """Whether there is nothing left to fetch."""
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
                self._nothing_comes()

    def _nothing_comes(self) -> None:
        """Is what we wait for in the log at all?"""
        first, behind_last = self._available()
        if not first <= self._position < behind_last:
            self._skip_lost(None)
            return
        raise KafkaTimeoutError(
            f"no record of {partition_name(self._tp)} came from offset {self._position} within "
            f"{self._options.poll_timeout_ms} ms (kafkaConsumer.pollTimeoutMs); reading up to "
            f"{self._range.end}"
        )

    def _available(self) -> tuple[int, int]:
        tp, consumer = self._tp, self._consumer
        return consumer.beginning_offsets([tp])[tp], consumer.end_offsets([tp])[tp]

    def _skip_lost(self, error: OffsetOutOfRangeError | None) -> None:
        """The log does not have what the range begins with: an error, or on from what it has.

        As ``KafkaDataConsumer`` of Spark's own source: what has been deleted is passed over; of a log that
        ends before the position nothing comes; and what is there after all is asked for again.
        """
        where = partition_name(self._tp)
        first, behind_last = self._available()
        position, end = self._position, self._range.end
        if position >= behind_last or first >= end:
            self._position = end
        elif position < first:
            self._position = first
        lost = f"{position} to {max(self._position, position + 1) - 1}"
        try:
            report_data_loss(
                self._options.fail_on_data_loss,
                "COULD_NOT_READ_OFFSET_RANGE",
                f"{where}: {lost} of the range {self._range.start} to {end} cannot be read; the log has "
                f"{first} to {behind_last} now: aged out by Kafka, or the topic was deleted",
            )
        except DataLossError as failure:
            raise failure from error
        if self._position == position:
            self._clock.sleep_ms(self._options.fetch_retry_interval_ms)
        self._consumer.seek(self._tp, self._position)
