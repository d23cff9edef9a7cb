"""Parse points in time and durations in arguments."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from kafkacore.structs import INT64_MAX


def timestamp_ms(text: str) -> int:
    """Parse a point in time for argparse: ISO 8601, or milliseconds since the epoch.

    A time without an offset is in UTC, as in Kafka's own tools.

    Returns
    -------
    int
        Milliseconds since the epoch.
    """
    if text.isdecimal():
        found = int(text)
    else:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a time: use ISO 8601, such as 2026-07-01T12:30:00Z, or milliseconds since "
                "the epoch"
            ) from None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        found = round(moment.timestamp() * 1000)
    if not 0 <= found <= INT64_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is outside the range of times that Kafka can store")
    return found


def iso_time(ms: int | None) -> str | None:
    """Return the ISO 8601 text of a time in milliseconds since the epoch, or ``None`` for no time."""
    if ms is None or ms < 0:
        return None
    try:
        return (
            datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        )
    except (OverflowError, ValueError, OSError):
        # A broker may send a number that is out of the range of a datetime.
        return str(ms)


def duration_ms(text: str) -> int:
    """Parse an ISO 8601 duration for argparse, such as ``PT1H30M`` or ``P7D``.

    Returns
    -------
    int
        Milliseconds.
    """
    # Imported here, so that ``--help`` does not load the client.
    from kafkacore.consumer.offset_reset import parse_duration_ms

    try:
        return parse_duration_ms(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
