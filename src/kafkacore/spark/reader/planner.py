"""Plan a read on the driver: which partitions exist, and where the read starts and ends.

A consumer that fetches no records looks up topics and offsets, and retries after retriable errors. Every call
queries the brokers, although Spark asks for the latest offsets every 11 ms while no records arrive. A cache
would delay new records, and a deleted topic would be noticed only when a request times out. A lookup takes
one request for metadata, and then one request to each leader. The built-in source sends four requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.consumer import KafkaConsumer
from kafkacore.errors import KafkaConfigurationError, KafkaError, OffsetNotAvailableError
from kafkacore.logs import logger_of
from kafkacore.spark.options.client_arguments import consumer_configs
from kafkacore.spark.options.java_regex import compile_java_pattern
from kafkacore.spark.reader.data_loss import Reason, report_data_loss
from kafkacore.spark.reader.offsets import OffsetRange, Offsets
from kafkacore.spark.reader.options import EARLIEST_OFFSET, LATEST_OFFSET, Bound, SourceOptions, names_of
from kafkacore.structs import TopicPartition

logger = logger_of(__name__)
T = TypeVar("T")

#: Kafka's internal topics. Like Spark's own source, this source ignores them in every subscription.
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


class MissingTopicError(KafkaConfigurationError):
    """A topic that the options name does not exist (yet)."""

    retriable = True


class OffsetPlanner:
    """Finds partitions and offsets by querying the brokers.

    The planner connects on first use. Only one thread may use a planner at a time.

    Parameters
    ----------
    options:
        Options of the read.
    clock:
        Clock for the pauses between retries.
    """

    def __init__(self, options: SourceOptions, clock: Clock = SYSTEM_CLOCK) -> None:
        self._options = options
        self._clock = clock
        self._connected: KafkaConsumer | None = None
        pattern = options.subscribe_pattern
        self._pattern = None if pattern is None else compile_java_pattern(pattern, "subscribePattern")

    @property
    def _consumer(self) -> KafkaConsumer:
        if self._connected is None:
            self._connected = KafkaConsumer(**consumer_configs(self._options.client_configs))
        return self._connected

    def close(self) -> None:
        """Close the connection. A later call opens a new one."""
        if self._connected is not None:
            self._connected.close()
            self._connected = None

    # ---- Partitions --------------------------------------------------------------------------------------

    def partitions(self) -> list[TopicPartition]:
        """Return the sorted partitions that the options select and that exist now.

        Raises
        ------
        MissingTopicError
            A topic that ``subscribe`` or ``assign`` names does not exist.
        """
        return self._retried(self._find_partitions)

    def _find_partitions(self) -> list[TopicPartition]:
        """Find the selected partitions.

        As in Spark, partitions of ``assign`` that do not exist are ignored.
        """
        options = self._options
        if self._pattern is not None:
            everything = self._consumer.partitions_by_topic()
            found = {topic: numbers for topic, numbers in everything.items() if self._pattern.search(topic)}
        else:
            wanted = options.subscribe or sorted({tp.topic for tp in options.assign})
            found = self._consumer.partitions_by_topic(wanted) if wanted else {}
            for topic in wanted:
                if not found.get(topic):
                    raise MissingTopicError(
                        f"topic {topic!r} does not exist on {options.client_configs['bootstrap_servers']}: "
                        f"create it, or correct the {'subscribe' if options.subscribe else 'assign'} option"
                    )
        partitions = sorted(
            TopicPartition(topic, number)
            for topic, numbers in found.items()
            if topic not in INTERNAL_TOPICS
            for number in numbers
        )
        if options.assign:
            assigned = set(options.assign)
            return [tp for tp in partitions if tp in assigned]
        return partitions

    # ---- Offsets -----------------------------------------------------------------------------------------

    def earliest_of_new(self, new: Iterable[TopicPartition]) -> Offsets:
        """Return the earliest offset of each partition. A partition that no longer exists is left out."""
        wanted = set(new)
        if not wanted:
            return {}
        return self._retried(
            lambda: self._earliest_of([tp for tp in self._find_partitions() if tp in wanted])
        )

    def latest(self, known: Mapping[TopicPartition, int] | None = None) -> Offsets:
        """Return the end offset of every partition that exists now.

        The end offset is the high watermark, or the last stable offset with read_committed.

        Parameters
        ----------
        known:
            Offsets up to which the query has read. If a broker returns a lower end offset, the lookup is
            repeated, because a new leader may not know the current end yet. ``fetchOffset.numRetries`` limits
            the number of lookups.
        """
        read_up_to = known or {}
        for attempt in range(1, self._attempts + 1):
            found = self._retried(self._find_latest)
            behind = [tp for tp, offset in found.items() if offset < read_up_to.get(tp, 0)]
            if behind and attempt < self._attempts:
                logger.warning(
                    "partitions end before the offset that was already read: %s; retrying", names_of(behind)
                )
                self._clock.sleep_ms(self._options.fetch_retry_interval_ms)
            elif not behind:
                break
        return found

    def _find_latest(self) -> Offsets:
        return self._latest_of(self._find_partitions())

    def _latest_of(self, partitions: list[TopicPartition]) -> Offsets:
        return _complete(partitions, self._consumer.end_offsets(partitions)) if partitions else {}

    def _earliest_of(self, partitions: list[TopicPartition]) -> Offsets:
        return _complete(partitions, self._consumer.beginning_offsets(partitions)) if partitions else {}

    def at_times(self, timestamps: Mapping[TopicPartition, int]) -> Offsets:
        """Return each partition's first offset at or after a time in ms since the epoch.

        For a partition without such an offset, return the end of the log.
        """
        times = {tp: max(time, 0) for tp, time in timestamps.items()}
        return self._retried(lambda: self._at_times(times, "filtered"))

    def starting(self) -> Offsets:
        """Return the offsets at which the first batch starts."""
        return self._retried(
            lambda: self._resolve(self._options.starting, "starting", self._find_partitions())
        )

    def _resolve(self, bound: Bound, which: str, partitions: list[TopicPartition]) -> Offsets:
        if bound.timestamp is not None:
            return self._at_times(dict.fromkeys(partitions, bound.timestamp), which)
        if bound.timestamps is not None:
            self._require_same(bound.timestamps, partitions, f"{which}OffsetsByTimestamp")
            return self._at_times(bound.timestamps, which)
        if bound.offsets is not None:
            self._require_same(bound.offsets, partitions, f"{which}Offsets")
            return self._named(bound.offsets)
        name = EARLIEST_OFFSET if bound.name == "earliest" else LATEST_OFFSET
        return self._named(dict.fromkeys(partitions, name))

    def _named(self, offsets: Mapping[TopicPartition, int]) -> Offsets:
        """Replace -2 and -1 by the earliest and the latest offsets."""
        first = [tp for tp, offset in offsets.items() if offset == EARLIEST_OFFSET]
        last = [tp for tp, offset in offsets.items() if offset == LATEST_OFFSET]
        return {**offsets, **self._earliest_of(first), **self._latest_of(last)}

    @staticmethod
    def _require_same(
        given: Mapping[TopicPartition, int], partitions: list[TopicPartition], option: str
    ) -> None:
        missing, extra = sorted(set(partitions) - set(given)), sorted(set(given) - set(partitions))
        if missing or extra:
            condition = "TIMESTAMP_OFFSET" if "Timestamp" in option else "START_OFFSET"
            parts = [f"missing {names_of(missing)}"] if missing else []
            parts += [f"not read by this query: {names_of(extra)}"] if extra else []
            raise KafkaConfigurationError(
                f"[KAFKA_{condition}_DOES_NOT_MATCH_ASSIGNED] {option} must name exactly the partitions that "
                f"the query reads; {'; '.join(parts)}"
            )

    def _at_times(self, timestamps: Mapping[TopicPartition, int], which: str) -> Offsets:
        """Return the first offset at or after each time.

        The times -2 and -1 stand for the earliest and the latest offset.
        """
        times = {tp: time for tp, time in timestamps.items() if time >= 0}
        answer = self._consumer.offsets_for_times(times) if times else {}
        found = {tp: match.offset for tp, match in answer.items() if match is not None}
        missing = [tp for tp in times if tp not in found]
        if missing and which == "starting" and not self._options.timestamp_strategy_latest:
            raise KafkaConfigurationError(
                f"no record at or after the starting timestamp in {names_of(missing)}: choose an earlier "
                f"timestamp, or set startingOffsetsByTimestampStrategy to 'latest'"
            )
        offsets = {tp: found.get(tp, LATEST_OFFSET) if tp in times else timestamps[tp] for tp in timestamps}
        return self._named(offsets)

    # ---- Ranges ------------------------------------------------------------------------------------------

    def batch_ranges(self) -> list[OffsetRange]:
        """Return the ranges of a batch read.

        Raises
        ------
        KafkaConfigurationError
            The end is before the start.
        DataLossError
            The options name offsets outside the log, and ``failOnDataLoss`` is true.
        """
        return self._retried(self._find_batch_ranges)

    def _find_batch_ranges(self) -> list[OffsetRange]:
        partitions = self._find_partitions()
        start = self._resolve(self._options.starting, "starting", partitions)
        end = self._resolve(self._options.ending, "ending", partitions)
        for tp in sorted(start):
            if start[tp] > end[tp]:
                raise KafkaConfigurationError(
                    f"[RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET] {names_of([tp])}: the read would start "
                    f"at offset {start[tp]} and end at {end[tp]}: change the starting or the ending options"
                )
        self._limit_to_log(start, end)
        return [OffsetRange(tp.topic, tp.partition, start[tp], end[tp]) for tp in sorted(end)]

    def _limit_to_log(self, start: Offsets, end: Offsets) -> None:
        """Move user-given offsets that are outside the log to the start or end of the log. Report data loss.

        Otherwise a task would wait for the missing records until it times out.
        """
        given = self._options.starting.offsets or {}
        first = self._earliest_of([tp for tp, n in given.items() if n >= 0])
        for tp, offset in sorted(first.items()):
            if start[tp] < min(offset, end[tp]):
                self._lost("COULD_NOT_READ_OFFSET_RANGE", f"{names_of([tp])}: offsets {start[tp]} to "
                           f"{min(offset, end[tp]) - 1} have been deleted")  # fmt: skip
                start[tp] = min(offset, end[tp])
        given = self._options.ending.offsets or {}
        committed = self._options.client_configs.get("isolation_level") == "read_committed"
        why = " with isolation level read_committed" if committed else ""
        for tp, offset in sorted(self._latest_of([tp for tp, n in given.items() if n >= 0]).items()):
            if end[tp] > max(offset, start[tp]):
                self._lost("COULD_NOT_READ_OFFSET_RANGE", f"{names_of([tp])} ends at offset {offset}{why}, "
                           f"before the ending offset {end[tp]}")  # fmt: skip
                end[tp] = max(offset, start[tp])

    def ranges(
        self, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
    ) -> list[OffsetRange]:
        """Return the ranges that a micro-batch reads between two positions.

        A partition that is not in ``start`` is new and is read from its earliest offset. Deleted partitions
        and partitions that end before ``start`` are data loss, which is an error, or a warning if
        ``failOnDataLoss`` is false. The tasks detect records deleted from the start of a log. See
        ``getOffsetRangesFromResolvedOffsets`` of Spark's ``KafkaOffsetReaderAdmin``.
        """
        new = sorted(end.keys() - start.keys())
        first = self.earliest_of_new(new)
        if gone := [tp for tp in new if tp not in first]:
            self._lost(
                "INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS",
                f"new partitions were deleted before they were read: {names_of(gone)}",
            )
        for tp in sorted(first):
            if first[tp] > 0:
                self._lost(
                    "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO",
                    f"new partition {names_of([tp])} starts at offset {first[tp]}, not 0",
                )
        if deleted := sorted(start.keys() - end.keys()):
            self._lost(
                "PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT"
                if self._options.group_id_is_given
                else "PARTITIONS_DELETED",
                f"partitions were deleted: {names_of(deleted)}",
            )
        begin = {**start, **first}
        found = [OffsetRange(tp.topic, tp.partition, begin[tp], end[tp]) for tp in sorted(end) if tp in begin]
        for piece in found:
            if piece.end < piece.start:
                self._lost(
                    "PARTITION_OFFSET_CHANGED",
                    f"{names_of([piece.topic_partition])} ends at offset {piece.end}, before the position "
                    f"{piece.start} of the query: the topic was recreated, or the starting offset was too "
                    "high",
                )
        return found

    def _lost(self, reason: Reason, what: str) -> None:
        report_data_loss(self._options.fail_on_data_loss, reason, what)

    # ---- Retries -----------------------------------------------------------------------------------------

    @property
    def _attempts(self) -> int:
        """Number of attempts. As in Spark's own source, ``fetchOffset.numRetries`` includes the first."""
        return max(self._options.fetch_retries, 1)

    def _retried(self, call: Callable[[], T]) -> T:
        for attempt in range(1, self._attempts + 1):
            try:
                return call()
            except KafkaError as error:
                if not error.retriable or attempt == self._attempts:
                    raise
                logger.info("failed to get offsets, retrying: %s", error)
                self.close()
                self._clock.sleep_ms(self._options.fetch_retry_interval_ms)
        raise AssertionError("unreachable: the last attempt returns or raises")


def _complete(requested: list[TopicPartition], found: Mapping[TopicPartition, int]) -> Offsets:
    """Return ``found``; raise a retriable error if it has no offset for a requested partition."""
    missing = [tp for tp in requested if tp not in found]
    if missing:
        raise OffsetNotAvailableError(f"the broker returned no offset for {names_of(missing)}")
    return dict(found)
