"""The lag of the consumer groups of a cluster, in records and in seconds.

The age of the first uncommitted record is estimated from past end offsets. Reading the record's timestamp
would fetch a whole batch per lagging partition and group each time, and would need permission to read the
data of every topic. End offsets are read anyway, to compute the lag.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from kafkacore.admin.groups import DESCRIBED_TYPES, GroupAdmin, GroupDescription, GroupListing, GroupType
from kafkacore.admin.offset_timeline import OffsetTimeline
from kafkacore.admin.partitions import PartitionAdmin
from kafkacore.clock import Clock
from kafkacore.errors import KafkaError
from kafkacore.structs import IsolationLevel, OffsetAndMetadata, OffsetSpec, TopicPartition, partition_name

#: Maximum number of lookups of past end offsets, for a partition that lags when it is first seen.
MAX_LOOKUPS: Final = 16
#: Timestamp in a request that selects the first record of a log. The response has the record's timestamp.
_BEGINNING: Final = 0

ErrorKind = Literal["broker", "group", "partition"]
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True)
class PartitionLag:
    """The lag of a group in a partition.

    Attributes
    ----------
    offset:
        Committed offset.
    end_offset:
        Offset of the next record that will be written.
    lag:
        Number of records from the committed offset to the end of the log.
    lag_seconds:
        Estimated age of the first record that is not committed, in seconds. It is 0 without lag, and ``None``
        if no timestamp is known.
    """

    topic: str
    partition: int
    offset: int
    end_offset: int
    lag: int
    lag_seconds: float | None


@dataclass(frozen=True)
class GroupLag:
    """The state and the lag of a group.

    Attributes
    ----------
    members:
        Number of members, or ``None`` if the coordinator did not describe the group.
    partitions:
        Partitions that have a committed offset and a known end offset, sorted by topic and number.
    """

    group: str
    state: str
    members: int | None
    partitions: tuple[PartitionLag, ...]

    @property
    def sum_lag(self) -> int:
        """The lag in all partitions."""
        return sum(each.lag for each in self.partitions)

    @property
    def max_lag_seconds(self) -> float | None:
        """The highest known lag in seconds."""
        known = [each.lag_seconds for each in self.partitions if each.lag_seconds is not None]
        return max(known, default=None)


@dataclass(frozen=True)
class LagError:
    """The reason why the lag of a broker's groups, of a group or of a partition could not be read.

    Attributes
    ----------
    kind:
        ``broker`` (the broker did not list its groups), ``group`` or ``partition``.
    name:
        The broker's id, or the name of the group or partition.
    """

    kind: ErrorKind
    name: str
    error: KafkaError


@dataclass(frozen=True)
class ClusterLag:
    """The result of :meth:`LagReader.read`.

    Attributes
    ----------
    end_offsets:
        End offset of each partition for which a group has committed an offset.
    errors:
        Brokers, groups and partitions that could not be read and are missing from the result.
    duration_ms:
        Time in milliseconds that the read took.
    """

    groups: tuple[GroupLag, ...]
    end_offsets: Mapping[TopicPartition, int]
    errors: tuple[LagError, ...]
    duration_ms: float


def committed_offsets(fetched: Mapping[TopicPartition, OffsetAndMetadata]) -> dict[TopicPartition, int]:
    """Return the committed offsets, without the partitions for which the broker returns -1 (no offset)."""
    return {tp: found.offset for tp, found in fetched.items() if found.offset >= 0}


def records_behind(offset: int, end_offset: int) -> int:
    """Return the number of records from a committed offset to the end of the log.

    It is 0 if the log ends before the committed offset, because records were lost after the commit.
    """
    return max(end_offset - offset, 0)


class LagReader:
    """Reads the lag of groups repeatedly, and remembers end offsets to estimate the ages of records.

    Parameters
    ----------
    groups, partitions:
        Operations of an admin client.
    clock:
        Source of the times of samples and durations.
    group_pattern, topic_pattern:
        Only groups and topics whose whole name matches are read.
    """

    def __init__(
        self,
        groups: GroupAdmin,
        partitions: PartitionAdmin,
        clock: Clock,
        group_pattern: re.Pattern[str],
        topic_pattern: re.Pattern[str],
    ) -> None:
        self._groups = groups
        self._partitions = partitions
        self._clock = clock
        self._group_pattern = group_pattern
        self._topic_pattern = topic_pattern
        self._timelines: dict[TopicPartition, OffsetTimeline] = {}

    def read(self, timeout_ms: float) -> ClusterLag:
        """Read the lag of all groups. A group, partition or broker that fails is in ``errors``.

        Parameters
        ----------
        timeout_ms:
            Time limit of each step in milliseconds.

        Raises
        ------
        KafkaError
            No broker listed its groups.
        """
        started_ms = self._clock.monotonic_ms()
        errors: list[LagError] = []
        listings = self._list_groups(errors, timeout_ms)
        described = self._describe(listings, errors, timeout_ms)
        committed = self._committed(listings, errors, timeout_ms)
        wanted = sorted({tp for offsets in committed.values() for tp in offsets})
        ends = {
            tp: found.offset
            for tp, found in _values(
                errors,
                "partition",
                self._partitions.offset_of_each(
                    dict.fromkeys(wanted, OffsetSpec.LATEST), IsolationLevel.READ_UNCOMMITTED, timeout_ms
                ),
                partition_name,
            ).items()
        }
        now_ms = float(self._clock.wall_ms())
        self._remember(ends, now_ms)
        self._learn_history(_first_uncommitted(committed.values(), ends), now_ms, timeout_ms)
        groups = tuple(
            GroupLag(
                group,
                # ListGroups returns the state of a group only since Kafka 2.6.
                listing["group_state"] or (described[group]["group_state"] if group in described else ""),
                len(described[group]["members"]) if group in described else None,
                tuple(
                    self._lag(tp, offset, ends[tp], now_ms)
                    for tp, offset in sorted(committed.get(group, {}).items())
                    if tp in ends
                ),
            )
            for group, listing in sorted(listings.items())
        )
        return ClusterLag(groups, ends, tuple(errors), self._clock.monotonic_ms() - started_ms)

    def _list_groups(self, errors: list[LagError], timeout_ms: float) -> dict[str, GroupListing]:
        brokers = self._groups.broker_ids(timeout_ms)
        answers = self._groups.listings_by_broker(brokers, None, None, timeout_ms)
        lists = _values(errors, "broker", answers, str)
        if errors and not lists:
            raise errors[0].error
        return {
            listing["group_id"]: listing
            for listings in lists.values()
            for listing in listings
            # A share group acknowledges records one by one, and has no committed offsets.
            if listing["group_type"] != GroupType.SHARE and self._group_pattern.fullmatch(listing["group_id"])
        }

    def _describe(
        self, listings: Mapping[str, GroupListing], errors: list[LagError], timeout_ms: float
    ) -> dict[str, GroupDescription]:
        groups = [group for group, each in listings.items() if each["group_type"] in DESCRIBED_TYPES]
        if not groups:
            return {}
        return _values(errors, "group", self._groups.description_of_each(groups, None, timeout_ms), str)

    def _committed(
        self, groups: Iterable[str], errors: list[LagError], timeout_ms: float
    ) -> dict[str, dict[TopicPartition, int]]:
        """Return the committed offsets of the wanted topics by group."""
        # Do not ask again about a group that has failed already, so that only one error is reported for it.
        failed = {error.name for error in errors if error.kind == "group"}
        wanted: dict[str, Iterable[TopicPartition] | None] = dict.fromkeys(
            group for group in groups if group not in failed
        )
        if not wanted:
            return {}
        fetched: dict[str, dict[TopicPartition, OffsetAndMetadata]] = _values(
            errors, "group", self._groups.offsets_by_group(wanted, timeout_ms), str
        )
        return {
            group: {
                tp: offset
                for tp, offset in committed_offsets(offsets).items()
                if self._topic_pattern.fullmatch(tp.topic)
            }
            for group, offsets in fetched.items()
        }

    def _remember(self, ends: Mapping[TopicPartition, int], now_ms: float) -> None:
        for tp in self._timelines.keys() - ends.keys():
            del self._timelines[tp]
        for tp, end in ends.items():
            self._timelines.setdefault(tp, OffsetTimeline()).ended_at(end, now_ms)

    def _learn_history(self, lagging: Mapping[TopicPartition, int], now_ms: float, timeout_ms: float) -> None:
        """Look up past end offsets of partitions whose first uncommitted record is older than every sample.

        The history of each partition is requested once. One request to a broker asks for all of its
        partitions, so a broker receives at most ``MAX_LOOKUPS`` requests.
        """
        unknown = {
            tp: offset
            for tp, offset in lagging.items()
            if not self._timelines[tp].has_history and not self._timelines[tp].covers(offset)
        }
        times_ms = dict.fromkeys(unknown, _BEGINNING)
        for attempt in range(MAX_LOOKUPS):
            if not times_ms:
                break
            found = self._partitions.offset_of_each(times_ms, IsolationLevel.READ_UNCOMMITTED, timeout_ms)
            next_ms: dict[TopicPartition, int] = {}
            for tp, answer in found.items():
                if isinstance(answer, KafkaError):
                    continue  # has_history is still False, so the next read asks again.
                timeline = self._timelines[tp]
                timeline.has_history = True
                timeline.learn(answer.offset, answer.timestamp, times_ms[tp])
                time_ms = timeline.next_lookup_ms(unknown[tp], halves=attempt % 2 == 1)
                if time_ms is not None:
                    next_ms[tp] = time_ms
            times_ms = next_ms

    def _lag(self, tp: TopicPartition, offset: int, end: int, now_ms: float) -> PartitionLag:
        written_ms = self._timelines[tp].written_ms(offset)
        seconds = None if written_ms is None else max(now_ms - written_ms, 0.0) / 1000
        return PartitionLag(*tp, offset, end, records_behind(offset, end), seconds if offset < end else 0.0)


def _values(
    errors: list[LagError], kind: ErrorKind, results: Mapping[K, V | KafkaError], name: Callable[[K], str]
) -> dict[K, V]:
    """Return the successful results by key, and add the failed results to ``errors``."""
    values: dict[K, V] = {}
    for key, result in results.items():
        if isinstance(result, KafkaError):
            errors.append(LagError(kind, name(key), result))
        else:
            values[key] = result
    return values


def _first_uncommitted(
    committed: Iterable[Mapping[TopicPartition, int]], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return the lowest committed offset of each partition with lag."""
    lowest: dict[TopicPartition, int] = {}
    for offsets in committed:
        for tp, offset in offsets.items():
            if offset < ends.get(tp, offset):
                lowest[tp] = min(offset, lowest.get(tp, offset))
    return lowest
