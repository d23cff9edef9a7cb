"""Plan a read on the driver: which partitions exist, and where the read starts and ends.

A consumer that fetches no records looks up topics and offsets, and retries errors that a broker may recover
from. Every call asks the brokers. Spark asks for the latest offset every 11 ms while nothing arrives, but a
cache would delay new records and would ask for deleted topics until a request times out. A look costs two
requests, one of them to each leader; the built-in source sends four.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from kafkacore.clock import SYSTEM_CLOCK, Clock
from kafkacore.consumer import KafkaConsumer
from kafkacore.errors import KafkaConfigurationError, KafkaError, OffsetNotAvailableError
from kafkacore.spark.options.client_arguments import consumer_configs
from kafkacore.spark.options.java_regex import compile_java_pattern
from kafkacore.spark.reader.data_loss import Reason, report_data_loss
from kafkacore.spark.reader.offsets import OffsetRange, Offsets
from kafkacore.spark.reader.options import EARLIEST_OFFSET, LATEST_OFFSET, Bound, SourceOptions, names_of
from kafkacore.structs import TopicPartition

logger = logging.getLogger(__name__)
T = TypeVar("T")

#: Kafka's own topics, which Spark's sources pass over, whatever is subscribed to.
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


class MissingTopicError(KafkaConfigurationError):
    """A topic that is named in the options does not exist, or not yet."""

    retriable = True


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
        pattern = options.subscribe_pattern
        self._pattern = None if pattern is None else compile_java_pattern(pattern, "subscribePattern")

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
        """Every partition that the options name and that there is now, in order.

        Raises
        ------
        MissingTopicError
            A topic that ``subscribe`` or ``assign`` names does not exist.
        """
        return self._retried(self._find_partitions)

    def _find_partitions(self) -> list[TopicPartition]:
        """Of ``assign``, those partitions that do not exist are left out, as Spark's own source does it."""
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
        """The first offset that is still there, for each partition; one that has gone again is left out."""
        asked = set(new)
        if not asked:
            return {}
        return self._retried(lambda: self._earliest_of([tp for tp in self._find_partitions() if tp in asked]))

    def latest(self, known: Mapping[TopicPartition, int] | None = None) -> Offsets:
        """The offset after the last readable record (the last stable one under read_committed) of every
        partition that there is now.

        Parameters
        ----------
        known:
            Offsets up to which has been read. A broker that says less is asked again, ``numRetries`` times in
            all: one that has just become leader may not know better yet.
        """
        read_up_to = known or {}
        for attempt in range(1, self._attempts + 1):
            found = self._retried(self._find_latest)
            behind = [tp for tp, offset in found.items() if offset < read_up_to.get(tp, 0)]
            if behind and attempt < self._attempts:
                logger.warning(
                    "logs end before what has been read of them: %s; asking again", names_of(behind)
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
        """The first offset at or after a time, in ms since the epoch; the log's end if there is none."""
        asked = {tp: max(time, 0) for tp, time in timestamps.items()}
        return self._retried(lambda: self._at_times(asked, "filtered"))

    def starting(self) -> Offsets:
        """Where the first batch starts."""
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
        """-2 and -1 replaced by what they stand for."""
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
                f"are read; {'; '.join(parts)}"
            )

    def _at_times(self, timestamps: Mapping[TopicPartition, int], which: str) -> Offsets:
        """The first offset at or after each time; -2 and -1 are no times, but what they always are."""
        times = {tp: time for tp, time in timestamps.items() if time >= 0}
        answer = self._consumer.offsets_for_times(times) if times else {}
        found = {tp: match.offset for tp, match in answer.items() if match is not None}
        missing = [tp for tp in times if tp not in found]
        if missing and which == "starting" and not self._options.timestamp_strategy_latest:
            raise KafkaConfigurationError(
                f"no record at or after the starting timestamp in {names_of(missing)}: choose an earlier "
                f"one, or set startingOffsetsByTimestampStrategy to 'latest'"
            )
        offsets = {tp: found.get(tp, LATEST_OFFSET) if tp in times else timestamps[tp] for tp in timestamps}
        return self._named(offsets)

    # ---- Ranges ------------------------------------------------------------------------------------------

    def batch_ranges(self) -> list[OffsetRange]:
        """What a batch read reads, from its start to its end.

        Raises
        ------
        KafkaConfigurationError
            The end lies before the start.
        DataLossError
            The options name offsets that the log does not have, and ``failOnDataLoss`` is true.
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
        self._keep_to_the_log(start, end)
        return [OffsetRange(tp.topic, tp.partition, start[tp], end[tp]) for tp in sorted(end)]

    def _keep_to_the_log(self, start: Offsets, end: Offsets) -> None:
        """A number that the user has given may lie where the log is not. Said now, not when a task has waited
        for it in vain.
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
        why = " for readers of committed records" if committed else ""
        for tp, offset in sorted(self._latest_of([tp for tp, n in given.items() if n >= 0]).items()):
            if end[tp] > max(offset, start[tp]):
                self._lost("COULD_NOT_READ_OFFSET_RANGE", f"{names_of([tp])} ends at offset {offset}{why}, "
                           f"before the ending offset {end[tp]}")  # fmt: skip
                end[tp] = max(offset, start[tp])

    def ranges(
        self, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
    ) -> list[OffsetRange]:
        """What a micro-batch reads between two positions.

        A partition that ``start`` does not know is new and is read from its first offset. Where the log has
        changed so that records are missed, that is data loss: an error, or a warning where
        ``failOnDataLoss`` is false. What is deleted from the log's beginning, the tasks find out.
        (``getOffsetRangesFromResolvedOffsets`` of Spark's ``KafkaOffsetReaderAdmin``.)
        """
        new = sorted(end.keys() - start.keys())
        first = self.earliest_of_new(new)
        if gone := [tp for tp in new if tp not in first]:
            self._lost("INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS", f"new and gone again: {names_of(gone)}")
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
                f"partitions have been deleted: {names_of(deleted)}",
            )
        begin = {**start, **first}
        found = [OffsetRange(tp.topic, tp.partition, begin[tp], end[tp]) for tp in sorted(end) if tp in begin]
        for piece in found:
            if piece.end < piece.start:
                self._lost(
                    "PARTITION_OFFSET_CHANGED",
                    f"{names_of([piece.topic_partition])} ends at {piece.end}, before offset {piece.start} "
                    "where reading stood: the topic has been made anew, or the start was set too high",
                )
        return found

    def _lost(self, reason: Reason, what: str) -> None:
        report_data_loss(self._options.fail_on_data_loss, reason, what)

    # ---- Asking again ------------------------------------------------------------------------------------

    @property
    def _attempts(self) -> int:
        """``fetchOffset.numRetries`` counts all attempts, as it does in Spark's own source."""
        return max(self._options.fetch_retries, 1)

    def _retried(self, ask: Callable[[], T]) -> T:
        for attempt in range(1, self._attempts + 1):
            try:
                return ask()
            except KafkaError as error:
                if not error.retriable or attempt == self._attempts:
                    raise
                logger.info("asking for offsets again: %s", error)
                self.close()
                self._clock.sleep_ms(self._options.fetch_retry_interval_ms)
        raise AssertionError("unreachable: the last attempt returns or raises")


def _complete(asked: list[TopicPartition], found: Mapping[TopicPartition, int]) -> Offsets:
    """Return ``found``; raise a retriable error if a broker had no offset for one of ``asked``."""
    missing = [tp for tp in asked if tp not in found]
    if missing:
        raise OffsetNotAvailableError(f"the broker returned no offset for {names_of(missing)}")
    return dict(found)
