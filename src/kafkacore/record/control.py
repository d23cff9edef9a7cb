"""Read the key of a control record: the outcome of a transaction (Kafka's ``ControlRecordType``)."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

_VERSION_SIZE: Final = 2
_SIZE: Final = 4


class ControlRecordType(IntEnum):
    """The control records of data partitions."""

    ABORT = 0
    COMMIT = 1


def control_type(key: bytes | None) -> int | None:
    """Return the type in the key of a control record.

    Returns
    -------
    int or None
        A :class:`ControlRecordType`, or the number of another type; ``None`` if the key is too short.
    """
    if key is None or len(key) < _SIZE:
        return None
    return int.from_bytes(key[_VERSION_SIZE:_SIZE], "big")
