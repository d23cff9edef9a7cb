"""Where to start without a usable position: ``auto_offset_reset`` in, what ListOffsets is asked for out.

Does not know: partitions, requests. (Kafka's ``AutoOffsetResetStrategy``; durations: KIP-1106.)
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
#: Seconds that fit what Java counts durations in.
_MOST_SECONDS = INT64_MAX


class OffsetResetStrategy:
    """One way of finding a position: :attr:`EARLIEST`, :attr:`LATEST`, by a duration, or :attr:`NONE`.

    Attributes
    ----------
    name:
        As in ``auto_offset_reset``.
    duration_ms:
        How far back from now to start; ``None`` for the others.
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
        """The strategy of ``auto_offset_reset=text``: one of three names or ``by_duration:`` with an ISO 8601
        duration, as ``by_duration:P1DT2H``.

        Raises
        ------
        ValueError
            If it is none of them, or the duration is negative.
        """
        for known in (cls.EARLIEST, cls.LATEST, cls.NONE):
            if text == known.name:
                return known
        if not text.startswith(_BY_DURATION):
            raise ValueError(f"{text!r} is no way to reset an offset")
        return cls(text, duration_ms=parse_duration_ms(text.removeprefix(_BY_DURATION)))

    def timestamp(self, wall_ms: int) -> int:
        """What ListOffsets is asked for: a value of :class:`OffsetSpec`, or milliseconds since the epoch."""
        if self.duration_ms is not None:
            return max(wall_ms - self.duration_ms, 0)
        assert self._timestamp is not None, "'none' asks for nothing"
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
    """Milliseconds of an ISO 8601 duration in days and smaller, as Java's ``Duration.parse`` takes it.

    Raises
    ------
    ValueError
        If it is none, is negative, or longer than Java can count.
    """
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no duration of the form PnDTnHnMn.nS")
    ms = sum(int(found[unit] or 0) * factor for unit, factor in _MS.items())
    seconds = found["seconds"] or "0"
    nanoseconds = int((found["fraction"] or "").ljust(9, "0"))
    ms_of_seconds = abs(int(seconds)) * 1000 + nanoseconds // 1_000_000
    ms += -ms_of_seconds if seconds.startswith("-") else ms_of_seconds
    ms = -ms if found["sign"] == "-" else ms
    if ms < 0:
        raise ValueError(f"the duration {text!r} is negative")
    if ms > _MOST_SECONDS * 1000:
        raise ValueError(f"the duration {text!r} is too long")
    return ms
