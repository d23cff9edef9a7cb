"""Plan how the committed offsets of a group move, as ``kafka-consumer-groups.sh --reset-offsets`` does."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from kafkacore.cli.common import CommandError
from kafkacore.errors import KafkaConfigurationError
from kafkacore.structs import INT64_MAX, OffsetSpec, TopicPartition, partition_name, printable

if TYPE_CHECKING:
    from kafkacore.admin import KafkaAdminClient


class Target(Enum):
    """Position to which committed offsets move. ``OFFSET``, ``TIME`` and ``SHIFT`` also need a value."""

    EARLIEST = "to-earliest"
    LATEST = "to-latest"
    CURRENT = "to-current"
    OFFSET = "to-offset"
    TIME = "to-datetime"
    SHIFT = "shift-by"


@dataclass(frozen=True)
class OffsetMove:
    """The new committed offset of one partition.

    ``wanted_offset`` is the requested offset. ``new_offset`` is that offset, limited to the range of the log.
    """

    group: str
    topic: str
    partition: int
    current_offset: int | None
    new_offset: int
    wanted_offset: int

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition as a :class:`TopicPartition`."""
        return TopicPartition(self.topic, self.partition)


def committed_offsets(admin: KafkaAdminClient, group: str) -> dict[TopicPartition, int]:
    """Return all committed offsets of a group."""
    from kafkacore.admin import lag

    return lag.committed_offsets(admin.list_group_offsets({group: None}).get(group, {}))


def plan(
    admin: KafkaAdminClient,
    group: str,
    partitions: Sequence[TopicPartition],
    target: Target,
    value: int = 0,
) -> list[OffsetMove]:
    """Plan how the committed offsets of partitions move to a target.

    Parameters
    ----------
    group:
        Name of the group.
    partitions:
        The partitions, which must exist.
    target:
        Position to which the offsets move.
    value:
        The offset, the time in milliseconds since the epoch, or the number of records to shift by.

    Raises
    ------
    CommandError
        If the target is ``SHIFT`` and a partition has no committed offset.
    """
    if not partitions:
        return []
    committed = committed_offsets(admin, group)
    if target is Target.SHIFT and (without := [tp for tp in partitions if tp not in committed]):
        raise CommandError(
            f"cannot shift {', '.join(map(partition_name, without))}: group {group!r} has no committed "
            "offset for them; use --to-earliest or --to-latest"
        )
    at_time = admin.list_partition_offsets(dict.fromkeys(partitions, value)) if target is Target.TIME else {}
    earliest, latest = _log_bounds(admin, partitions)
    wanted: dict[TopicPartition, int] = {}
    for tp in partitions:
        if target is Target.EARLIEST:
            wanted[tp] = earliest[tp]
        elif target is Target.OFFSET:
            wanted[tp] = value
        elif target is Target.SHIFT:
            wanted[tp] = committed[tp] + value
        elif target is Target.CURRENT:
            wanted[tp] = committed.get(tp, latest[tp])
        elif target is Target.TIME and at_time[tp].offset >= 0:
            wanted[tp] = at_time[tp].offset
        else:
            # Use the end of the log for LATEST, and for TIME if all records are older than the time.
            wanted[tp] = latest[tp]
    return _moves(group, wanted, committed, earliest, latest)


def plan_from_file(
    admin: KafkaAdminClient, group: str, offsets: Mapping[TopicPartition, int]
) -> list[OffsetMove]:
    """Plan how committed offsets move to the offsets in a file. The partitions must exist."""
    earliest, latest = _log_bounds(admin, offsets)
    return _moves(group, offsets, committed_offsets(admin, group), earliest, latest)


def read_offsets(path: Path, group: str) -> dict[TopicPartition, int]:
    """Read offsets from a CSV file that ``kafka-consumer-groups.sh --export`` has written.

    The lines of the file are ``topic,partition,offset``, or ``group,topic,partition,offset`` for several
    groups. Lines of other groups are skipped.

    Raises
    ------
    KafkaConfigurationError
        If a line is invalid, or the file has no line for the group.
    """
    offsets: dict[TopicPartition, int] = {}
    with path.open(encoding="utf-8", newline="") as file:
        try:
            for number, cells in enumerate(csv.reader(file), 1):
                if not cells or (len(cells) == 4 and cells[0] != group):
                    continue
                if len(cells) not in (3, 4) or not all(_is_natural(cell) for cell in cells[-2:]):
                    raise KafkaConfigurationError(
                        f"{path}: line {number} is not topic,partition,offset or group,topic,partition,offset"
                    )
                offsets[TopicPartition(cells[-3], int(cells[-2]))] = int(cells[-1])
        except (csv.Error, UnicodeDecodeError) as error:
            raise KafkaConfigurationError(f"{path} is not a CSV file: {error}") from None
    if not offsets:
        raise KafkaConfigurationError(f"{path} has no offsets for group {group!r}")
    return offsets


def csv_lines(moves: Iterable[OffsetMove]) -> list[str]:
    """Return the moves as lines of a CSV file that :func:`read_offsets` and Kafka's own tool can read."""
    return [f"{printable(move.topic)},{move.partition},{move.new_offset}" for move in moves]


def _is_natural(text: str) -> bool:
    return text.isascii() and text.isdecimal() and int(text[:20]) <= INT64_MAX


def _log_bounds(
    admin: KafkaAdminClient, partitions: Iterable[TopicPartition]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Return the first and the end offsets of partitions."""
    first = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
    last = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    return (
        {tp: each.offset for tp, each in first.items()},
        {tp: each.offset for tp, each in last.items()},
    )


def _moves(
    group: str,
    wanted: Mapping[TopicPartition, int],
    committed: Mapping[TopicPartition, int],
    earliest: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
) -> list[OffsetMove]:
    return [
        OffsetMove(
            group,
            tp.topic,
            tp.partition,
            committed.get(tp),
            min(max(offset, earliest[tp]), latest[tp]),
            offset,
        )
        for tp, offset in sorted(wanted.items())
    ]
