"""Offset reset strategies: where to start in a partition without a valid position (``auto_offset_reset``).

This is Kafka's ``AutoOffsetResetStrategy``. Durations are those of KIP-1106.
"""

from __future__ import annotations

import re
from typing import ClassVar

from kafkacore.structs import INT64_MAX, OffsetSpec

_BY_DURATION = "by_duration:"
_MS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000}
_DURATION = re.compile(
    r"""(?P<sign>[-+]?)P
    (?=.)(?:(?P<days>[-+]?[0-9]+)D)?
    (?:T(?=.)(?:(?P<hours>[-+]?[0-9]+)H)?
        (?:(?P<minutes>[-+]?[0-9]+)M)?
        (?:(?P<seconds>[-+]?[0-9]+)(?:[.,](?P<fraction>[0-9]{0,9}))?S)?)?""",
    re.IGNORECASE | re.VERBOSE,
)
#: Largest number of seconds in a Java ``Duration``.
_MOST_SECONDS = INT64_MAX


class OffsetResetStrategy:
    """One way to find a position: :attr:`EARLIEST`, :attr:`LATEST`, :attr:`NONE`, or a duration.

    Attributes
    ----------
    name:
        Value of ``auto_offset_reset``.
    duration_ms:
        How far before the current time to start, in milliseconds; ``None`` without a duration.
    """

    __slots__ = ("_timestamp", "duration_ms", "name")

    EARLIEST: ClassVar[OffsetResetStrategy]
    LATEST: ClassVar[OffsetResetStrategy]
    NONE: ClassVar[OffsetResetStrategy]

    def __init__(self, name: str, timestamp: int | None = None, duration_ms: int | None = None) -> None:
        self.name = name
        self._timestamp = timestamp
        self.duration_ms = duration_ms

    @classmethod
    def parse(cls, text: str) -> OffsetResetStrategy:
        """Return the strategy for a value of ``auto_offset_reset``.

        Parameters
        ----------
        text:
            ``earliest``, ``latest``, ``none``, or ``by_duration:`` followed by an ISO 8601 duration, such as
            ``by_duration:P1DT2H``.

        Raises
        ------
        ValueError
            If the text is not a strategy, or the duration is negative.
        """
        for known in (cls.EARLIEST, cls.LATEST, cls.NONE):
            if text == known.name:
                return known
        if not text.startswith(_BY_DURATION):
            raise ValueError(f"{text!r} is not an offset reset strategy")
        return cls(text, duration_ms=parse_duration_ms(text.removeprefix(_BY_DURATION)))

    def timestamp(self, wall_ms: int) -> int:
        """Return the timestamp for ListOffsets: milliseconds since the epoch, or an :class:`OffsetSpec`."""
        if self.duration_ms is not None:
            return max(wall_ms - self.duration_ms, 0)
        assert self._timestamp is not None, "'none' has no timestamp"
        return self._timestamp

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OffsetResetStrategy):
            return NotImplemented
        return (self.name, self.duration_ms) == (other.name, other.duration_ms)

    def __hash__(self) -> int:
        return hash((self.name, self.duration_ms))

    def __repr__(self) -> str:
        return f"<OffsetResetStrategy {self.name}>"


OffsetResetStrategy.EARLIEST = OffsetResetStrategy("earliest", int(OffsetSpec.EARLIEST))
OffsetResetStrategy.LATEST = OffsetResetStrategy("latest", int(OffsetSpec.LATEST))
OffsetResetStrategy.NONE = OffsetResetStrategy("none")


def parse_duration_ms(text: str) -> int:
    """Return the milliseconds of an ISO 8601 duration of days and smaller units.

    The syntax is that of Java's ``Duration.parse``.

    Raises
    ------
    ValueError
        If the text is not a duration, is negative, or exceeds Java's range.
    """
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a duration of the form PnDTnHnMn.nS")
    ms = sum(int(found[unit] or 0) * factor for unit, factor in _MS.items())
    seconds = found["seconds"] or "0"
    nanoseconds = int((found["fraction"] or "").ljust(9, "0"))
    ms_of_seconds = abs(int(seconds)) * 1000 + nanoseconds // 1_000_000
    ms += -ms_of_seconds if seconds.startswith("-") else ms_of_seconds
    ms = -ms if found["sign"] == "-" else ms
    if ms < 0:
        raise ValueError(f"the duration {text!r} is negative")
    if ms > _MOST_SECONDS * 1000:
        raise ValueError(f"the duration {text!r} exceeds the range of a Java Duration")
    return ms
