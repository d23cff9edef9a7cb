"""The driver's side: which partitions there are, and where a read starts and ends.

:class:`SourceOptions` in, offsets out, by a consumer that fetches no record. Retries what a broker may get
over. Does not know: Spark, micro-batches, record bytes.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.consumer import KafkaConsumer
from kafkacore.errors import KafkaConfigurationError, KafkaError
from kafkacore.spark.configs import consumer_configs
from kafkacore.spark.offsets import OffsetRange, Offsets
from kafkacore.spark.options import EARLIEST_OFFSET, LATEST_OFFSET, Bound, SourceOptions
from kafkacore.structs import TopicPartition

log = logging.getLogger(__name__)
T = TypeVar("T")


class DataLossError(KafkaError):
    """Records that the read should have given are no longer in Kafka (Spark's ``KAFKA_DATA_LOSS``)."""


class OffsetPlanner:
    """Asks the brokers for partitions and offsets. Connects on first use; one thread at a time.

    Parameters
    ----------
    options:
        What to read.
    clock:
        For the waits between retries.
    """

    def __init__(self, options: SourceOptions, clock: Clock = SYSTEM_CLOCK) -> None:
        self._options = options
        self._clock = clock
        self._connected: KafkaConsumer | None = None

    @property
    def _consumer(self) -> KafkaConsumer:
        if self._connected is None:
            self._connected = KafkaConsumer(**consumer_configs(self._options.client_configs))
        return self._connected

    def close(self) -> None:
        """Close the connection; a later call opens another."""
        if self._connected is not None:
            self._connected.close()
            self._connected = None

    # ---- Partitions --------------------------------------------------------------------------------------

    def partitions(self) -> list[TopicPartition]:
        """Every partition that the options name, in order.

        Raises
        ------
        KafkaConfigurationError
            A topic that ``subscribe`` names does not exist.
        """
        return self._retried(self._find_partitions)

    def _find_partitions(self) -> list[TopicPartition]:
        if self._options.assign:
            return list(self._options.assign)
        if self._options.subscribe_pattern is not None:
            pattern = re.compile(self._options.subscribe_pattern)
            topics: Iterable[str] = sorted(t for t in self._consumer.topics() if pattern.fullmatch(t))
        else:
            topics = sorted(self._options.subscribe)
        found = []
        for topic in topics:
            numbers = self._consumer.partitions_for_topic(topic)
            if not numbers:
                raise KafkaConfigurationError(
                    f"topic {topic!r} does not exist on {self._options.client_configs['bootstrap_servers']}: "
                    f"create it, or correct the subscribe option"
                )
            found += [TopicPartition(topic, number) for number in sorted(numbers)]
        return found

    # ---- Offsets -----------------------------------------------------------------------------------------

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The first offset that is still there, for each partition."""
        asked = list(partitions)
        return dict(self._retried(lambda: self._consumer.beginning_offsets(asked)))

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The offset after the last readable record (the last stable one under read_committed)."""
        asked = list(partitions)
        return dict(self._retried(lambda: self._consumer.end_offsets(asked)))

    def starting(self) -> Offsets:
        """Where the first batch starts."""
        return self._resolve(
            self._options.starting, "startingOffsets", no_match_latest=self._options.timestamp_strategy_latest
        )

    def ending(self) -> Offsets:
        """Where a batch read ends."""
        return self._resolve(self._options.ending, "endingOffsets", no_match_latest=True)

    def _resolve(self, bound: Bound, option: str, no_match_latest: bool) -> Offsets:
        partitions = self.partitions()
        if bound.timestamp is not None:
            return self._at_times(dict.fromkeys(partitions, bound.timestamp), no_match_latest)
        if bound.timestamps is not None:
            self._require_same(bound.timestamps, partitions, f"{option}ByTimestamp")
            return self._at_times(bound.timestamps, no_match_latest)
        if bound.offsets is None:
            return self.earliest(partitions) if bound.name == "earliest" else self.latest(partitions)
        self._require_same(bound.offsets, partitions, option)
        first = self.earliest(tp for tp, n in bound.offsets.items() if n == EARLIEST_OFFSET)
        last = self.latest(tp for tp, n in bound.offsets.items() if n == LATEST_OFFSET)
        return {tp: first.get(tp, last.get(tp, number)) for tp, number in bound.offsets.items()}

    @staticmethod
    def _require_same(
        given: Mapping[TopicPartition, int], partitions: list[TopicPartition], option: str
    ) -> None:
        missing, extra = sorted(set(partitions) - set(given)), sorted(set(given) - set(partitions))
        if missing or extra:
            parts = [f"missing {_names(missing)}"] if missing else []
            parts += [f"not read by this query: {_names(extra)}"] if extra else []
            raise KafkaConfigurationError(
                f"{option} must name exactly the partitions that are read; {'; '.join(parts)}"
            )

    def _at_times(self, timestamps: Mapping[TopicPartition, int], no_match_latest: bool) -> Offsets:
        answer = self._retried(lambda: self._consumer.offsets_for_times(dict(timestamps)))
        found = {tp: match.offset for tp, match in answer.items() if match is not None}
        missing = [tp for tp in timestamps if tp not in found]
        if missing and not no_match_latest:
            raise KafkaConfigurationError(
                f"no record at or after the starting timestamp in {_names(missing)}: choose an earlier one, "
                f"or set startingOffsetsByTimestampStrategy to 'latest'"
            )
        ends = self.latest(missing) if missing else {}
        return {tp: found[tp] if tp in found else ends[tp] for tp in timestamps}

    # ---- Ranges ------------------------------------------------------------------------------------------

    def ranges(
        self, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
    ) -> list[OffsetRange]:
        """What to read between two positions.

        A partition that ``start`` does not know is new and is read from its first offset. What has been
        deleted from the log meanwhile is data loss: an error, or a warning where ``failOnDataLoss`` is
        false.
        """
        for gone in sorted(set(start) - set(end)):
            self._data_loss(f"{_names([gone])} is gone")
        begin = {tp: start[tp] for tp in end if tp in start}
        earliest = self.earliest(end)
        for tp in sorted(end):
            if tp not in begin:
                begin[tp] = earliest[tp]
                if earliest[tp] > 0:
                    self._data_loss(f"new partition {_names([tp])} starts at offset {earliest[tp]}, not 0")
            elif begin[tp] < earliest[tp] and begin[tp] < end[tp]:
                last_gone = min(earliest[tp], end[tp]) - 1
                self._data_loss(f"{_names([tp])}: offsets {begin[tp]} to {last_gone} have been deleted")
                begin[tp] = min(earliest[tp], end[tp])
            if end[tp] < begin[tp]:
                self._data_loss(
                    f"{_names([tp])} ends at {end[tp]}, before offset {begin[tp]} where reading stood"
                )
                begin[tp] = end[tp]
        return [OffsetRange(tp.topic, tp.partition, begin[tp], end[tp]) for tp in sorted(end)]

    def _data_loss(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            raise DataLossError(f"{what}. Set failOnDataLoss to false to go on without these records")
        log.warning("data loss accepted (failOnDataLoss=false): %s", what)

    def _retried(self, ask: Callable[[], T]) -> T:
        for attempt in range(self._options.fetch_retries + 1):
            try:
                return ask()
            except KafkaError as error:
                if not error.retriable or attempt == self._options.fetch_retries:
                    raise
                log.info("asking for offsets again: %s", error)
                self.close()
                self._clock.sleep_ms(self._options.fetch_retry_interval_ms)
        raise AssertionError("unreachable: the last attempt returns or raises")


def _names(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(f"{tp.topic}-{tp.partition}" for tp in partitions)
