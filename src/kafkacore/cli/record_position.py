"""Positions in partitions: the values of ``kafkacore consume --from`` and ``--until``."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, NamedTuple

from kafkacore.structs import INT64_MAX, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafkacore import KafkaConsumer

#: Description of the accepted positions, for help and messages.
FORMS = (
    "an offset (1000), an offset before the end (-10), 'beginning', 'end', a time (2026-01-31T12:00:00Z; "
    "local time without a zone), an age (15m, 2h, 7d, PT1H30M), or milliseconds since the epoch "
    "(@1700000000000)"
)
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
_AGE = re.compile(rf"([0-9]{{1,12}})({'|'.join(_UNITS_MS)})")
_OFFSET = re.compile(r"-?[0-9]{1,19}")
_EPOCH_MS = re.compile(r"@[0-9]{1,15}")


class RecordPosition(NamedTuple):
    """A position in each partition.

    At most one of ``offset``, ``timestamp_ms`` and ``age_ms`` is given. If none is given, the position is the
    end of each partition.

    Parameters
    ----------
    text:
        The position as the user wrote it.
    offset:
        Offset; a negative value is the distance from the end offset.
    timestamp_ms:
        Time in milliseconds since the epoch.
    age_ms:
        How long before the start of the command the position is, in milliseconds.
    """

    text: str
    offset: int | None = None
    timestamp_ms: int | None = None
    age_ms: int | None = None

    def time(self, now_ms: int) -> int | None:
        """Return the time in milliseconds since the epoch, or ``None`` if the position is an offset."""
        return self.timestamp_ms if self.age_ms is None else max(now_ms - self.age_ms, 0)

    def offsets(
        self,
        consumer: KafkaConsumer,
        partitions: Sequence[TopicPartition],
        ends: Mapping[TopicPartition, int],
        now_ms: int,
    ) -> dict[TopicPartition, int]:
        """Return the position as an offset in each partition. The offset may be outside the partition's log.

        Parameters
        ----------
        consumer:
            Consumer that looks up offsets by time.
        ends:
            End offsets of the partitions.
        now_ms:
            Current time in milliseconds since the epoch.
        """
        time = self.time(now_ms)
        if time is not None:
            found = consumer.offsets_for_times(dict.fromkeys(partitions, time))
            return {tp: ends[tp] if (record := found[tp]) is None else record.offset for tp in partitions}
        if self.offset is None:
            return {tp: ends[tp] for tp in partitions}
        return {tp: self.offset if self.offset >= 0 else ends[tp] + self.offset for tp in partitions}


def record_position(text: str) -> RecordPosition:
    """Parse a position for argparse."""
    if text in ("beginning", "earliest"):
        return RecordPosition(text, offset=0)
    if text in ("end", "latest"):
        return RecordPosition(text)
    if _OFFSET.fullmatch(text) and abs(int(text)) <= INT64_MAX:
        return RecordPosition(text, offset=int(text))
    if _EPOCH_MS.fullmatch(text):
        return RecordPosition(text, timestamp_ms=int(text[1:]))
    if age := _AGE.fullmatch(text):
        return RecordPosition(text, age_ms=int(age[1]) * _UNITS_MS[age[2]])
    try:
        if text[:1] in ("P", "p"):
            # Imported here, so that ``--help`` does not load the client.
            from kafkacore.consumer.offset_reset import parse_duration_ms

            return RecordPosition(text, age_ms=parse_duration_ms(text))
        return RecordPosition(text, timestamp_ms=_epoch_ms(text))
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is not a position: give {FORMS}") from None


def _epoch_ms(text: str) -> int:
    # Imported here, because it takes a thirtieth of the start of the command.
    from datetime import datetime

    ms = round(datetime.fromisoformat(text).timestamp() * 1000)
    if ms < 0:
        raise ValueError("before 1970")
    return ms
