"""Records of consumer groups, written by Kafka's group coordinator (``golden/group_records.txt``)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kafkacore.broker.coordinator.interfaces import CoordinatorRecord

FILE: Final = Path(__file__).resolve().parents[1] / "golden" / "group_records.txt"


def golden_group_records() -> dict[str, CoordinatorRecord]:
    """Return the records by the names in the file."""
    found = {}
    for line in FILE.read_text().splitlines():
        if not line.startswith("#"):
            name, key, value = line.split(" ")
            found[name] = CoordinatorRecord(
                bytes.fromhex(key), None if value == "-" else bytes.fromhex(value)
            )
    return found
