"""Batches written by Kafka's Java client and the records it read from them; see ``golden/README.md``."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "batches"


@dataclass(frozen=True)
class GoldenCase:
    """One file of batches: its ``content``, and ``batches`` as Java read them (dicts as in golden.json)."""

    name: str
    content: bytes
    batches: list[dict[str, Any]]

    @property
    def magics(self) -> set[int]:
        return {batch["magic"] for batch in self.batches}

    @property
    def records(self) -> list[dict[str, Any]]:
        return [record for batch in self.batches for record in batch["records"]]


@cache
def golden_cases() -> dict[str, GoldenCase]:
    """Return every case by its name."""
    described = json.loads((FOLDER / "golden.json").read_text(encoding="utf-8"))
    return {
        case["name"]: GoldenCase(case["name"], (FOLDER / f"{case['name']}.bin").read_bytes(), case["batches"])
        for case in described["cases"]
    }


def as_golden(value: bytes | memoryview | None) -> str | dict[str, Any] | None:
    """Return bytes in the form in which golden.json stores them."""
    if value is None:
        return None
    value = bytes(value)
    if len(value) <= 1024:
        return base64.b64encode(value).decode()
    return {"length": len(value), "sha256": base64.b64encode(hashlib.sha256(value).digest()).decode()}


def record_as_golden(
    offset: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes | None]],
) -> dict[str, Any]:
    """Return a record in the form of golden.json."""
    return {
        "offset": offset,
        "timestamp": timestamp,
        "key": as_golden(key),
        "value": as_golden(value),
        "headers": [{"key": name, "value": as_golden(content)} for name, content in headers],
    }
