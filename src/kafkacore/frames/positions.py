"""The start and the end of a read, from the arguments ``start`` and ``end``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from operator import index
from typing import TYPE_CHECKING, Literal, TypeAlias

from kafkacore.errors import KafkaConfigurationError, UnknownTopicOrPartitionError
from kafkacore.structs import TopicPartition, partition_name

if TYPE_CHECKING:
    from kafkacore.consumer import KafkaConsumer

#: A position in one partition or in all partitions.
Position: TypeAlias = Literal["earliest", "latest"] | datetime | int
#: A position for all partitions, or partition → position.
Positions: TypeAlias = Position | Mapping[int, Position]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def check_positions(argument: str, given: Positions) -> None:
    """Check the argument ``start`` or ``end``, without a broker.

    Raises
    ------
    KafkaConfigurationError
        The argument is not a position, an offset is negative, or a time has no time zone.
    """
    for position in given.values() if isinstance(given, Mapping) else (given,):
        if isinstance(position, datetime):
            if position.utcoffset() is None:
                raise KafkaConfigurationError(
                    f"the time {position} in {argument} has no time zone: set one, such as "
                    f"tzinfo=datetime.timezone.utc"
                )
        elif position not in ("earliest", "latest") and not _is_offset(position):
            raise KafkaConfigurationError(
                f"{argument} must be 'earliest', 'latest', an offset, a datetime, or a mapping from "
                f"partition numbers to these, not {position!r}"
            )


def ranges_to_read(
    consumer: KafkaConsumer, partitions: list[TopicPartition], start: Positions, end: Positions
) -> dict[TopicPartition, tuple[int, int]]:
    """Look up the range of offsets to read in each partition.

    Partitions without offsets to read are left out. A range never exceeds the log. It ends at the latest at
    the end of the log, or at the last stable offset with ``isolation_level="read_committed"``.

    Parameters
    ----------
    consumer:
        Consumer of the cluster.
    partitions:
        All partitions of a topic.
    start, end:
        Checked positions. The end is exclusive.

    Raises
    ------
    UnknownTopicOrPartitionError
        A mapping has a partition that does not exist.
    KafkaTimeoutError
        The brokers did not respond in time.
    """
    first, last = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    starts = _offsets(consumer, partitions, start, "earliest", first, last)
    ends = _offsets(consumer, partitions, end, "latest", first, last)
    found = {tp: (max(starts[tp], first[tp]), min(ends[tp], last[tp])) for tp in partitions}
    return {tp: (begin, stop) for tp, (begin, stop) in found.items() if begin < stop}


def _offsets(
    consumer: KafkaConsumer,
    partitions: list[TopicPartition],
    given: Positions,
    otherwise: Literal["earliest", "latest"],
    first: Mapping[TopicPartition, int],
    last: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    by_number = given if isinstance(given, Mapping) else {tp.partition: given for tp in partitions}
    numbers = {tp.partition for tp in partitions}
    for number in by_number:
        if number not in numbers:
            name = partition_name(TopicPartition(partitions[0].topic, number))
            raise UnknownTopicOrPartitionError(f"partition {name} does not exist")
    offsets: dict[TopicPartition, int] = {}
    times: dict[TopicPartition, int] = {}
    for tp in partitions:
        position = by_number.get(tp.partition, otherwise)
        if isinstance(position, datetime):
            # Round up, because the first record at or after the time is wanted.
            times[tp] = max(0, -((_EPOCH - position) // timedelta(milliseconds=1)))
        elif isinstance(position, str):
            offsets[tp] = first[tp] if position == "earliest" else last[tp]
        else:
            offsets[tp] = index(position)
    if times:
        for tp, found in consumer.offsets_for_times(times).items():
            offsets[tp] = last[tp] if found is None else found.offset
    return offsets


def _is_offset(position: object) -> bool:
    if isinstance(position, bool):
        return False
    try:
        return index(position) >= 0  # type: ignore[arg-type]  # index() raises TypeError for other types
    except TypeError:
        return False
