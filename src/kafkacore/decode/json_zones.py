"""Look up time zones by their Java names, and convert local times of a zone to instants.

For a zone with changing offsets, the decoder first stores local times. This module converts these local times
after each batch.
"""

from __future__ import annotations

import re
import zoneinfo
from datetime import datetime, timedelta
from functools import cache

import pyarrow as pa

from kafkacore.errors import KafkaConfigurationError

#: The short names in ``java.time.ZoneId.SHORT_IDS``, which Spark accepts in addition to other zone names.
SHORT_IDS = {
    "EST": "-05:00", "HST": "-10:00", "MST": "-07:00", "ACT": "Australia/Darwin", "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires", "ART": "Africa/Cairo", "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka", "CAT": "Africa/Harare", "CNT": "America/St_Johns",
    "CST": "America/Chicago", "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan", "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip
OFFSET = re.compile(r"([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?", re.ASCII)
MAX_OFFSET_S = 18 * 3600

US_PER_SECOND = 1_000_000
#: Length of the 400-year cycle after which the Gregorian calendar repeats, including weekdays, in
#: microseconds.
CYCLE_US = 146_097 * 86_400 * US_PER_SECOND
EPOCH = datetime(1970, 1, 1)
YEAR_1_US = (datetime(1, 1, 2) - EPOCH) // timedelta(microseconds=1)
YEAR_9000_US = (datetime(9000, 1, 1) - EPOCH) // timedelta(microseconds=1)


def fixed_offset_s(name: str) -> int | None:
    """Return the offset in seconds of a zone with a fixed offset (``+01:00``, ``GMT+1``), else ``None``."""
    name = SHORT_IDS.get(name, name)
    if name in ("Z", "UTC", "GMT", "UT"):
        return 0
    for prefix in ("UTC", "GMT", "UT"):
        if name.startswith(prefix):
            name = name.removeprefix(prefix)
            break
    if (match := OFFSET.fullmatch(name)) is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in match.groups()[1:])
    offset_s = hours * 3600 + minutes * 60 + seconds
    if minutes > 59 or seconds > 59 or offset_s > MAX_OFFSET_S:
        return None
    return -offset_s if match[1] == "-" else offset_s


@cache
def _regions() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


class Zones:
    """Time zones of one decoder.

    Parameters
    ----------
    session:
        Name of the time zone for times that contain no zone.

    Raises
    ------
    KafkaConfigurationError
        The zone is unknown.
    """

    def __init__(self, session: str) -> None:
        self.session = session
        self.session_offset_s = fixed_offset_s(session)
        if not self.is_known(session):
            raise KafkaConfigurationError(
                f"option timeZone: unknown time zone {session!r}. "
                f"Use a region such as Europe/Paris or an offset such as +01:00"
            )

    def is_known(self, name: str) -> bool:
        return fixed_offset_s(name) is not None or SHORT_IDS.get(name, name) in _regions()

    def to_instants(self, name: str | None, local: pa.Buffer) -> memoryview:
        """Convert local times to instants, in microseconds since 1970 UTC.

        Parameters
        ----------
        name:
            Name of a known zone. ``None`` means the zone ``session``.
        local:
            Local times as 64-bit microseconds since 1970. As in Java, a time that a clock change skips is
            read with the offset before the change. A time that occurs twice means the earlier instant.
        """
        name = self.session if name is None else name
        values = memoryview(local).cast("B").cast("q")
        if (offset_s := fixed_offset_s(name)) is not None:
            return _shifted(values, [offset_s] * len(values))
        zone = zoneinfo.ZoneInfo(SHORT_IDS.get(name, name))
        return _shifted(values, [_offset_s(zone, value) for value in values])


def _shifted(values: memoryview, offsets_s: list[int]) -> memoryview:
    shifted = bytearray(8 * len(values))
    out = memoryview(shifted).cast("q")
    for at, offset_s in enumerate(offsets_s):
        out[at] = values[at] - offset_s * US_PER_SECOND
    return out


def _offset_s(zone: zoneinfo.ZoneInfo, local_us: int) -> int:
    if local_us > YEAR_9000_US:
        local_us -= ((local_us - YEAR_9000_US) // CYCLE_US + 1) * CYCLE_US
    local = EPOCH + timedelta(microseconds=max(local_us, YEAR_1_US))
    # With fold=0, a time that occurs twice means the earlier instant, and a skipped time gets the offset
    # before the clock change.
    offset = zone.utcoffset(local.replace(fold=0))
    assert offset is not None
    return offset // timedelta(seconds=1)
