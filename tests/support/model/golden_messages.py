"""Every request and response of every version, written by Kafka's generated classes (``golden/``)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).resolve().parents[1] / "golden" / "messages.txt"


class GoldenMessage(NamedTuple):
    """One line of messages.txt."""

    api_key: int
    kind: str
    version: int
    variant: str
    content: bytes


def golden_messages() -> Iterator[GoldenMessage]:
    for line in FILE.read_text().splitlines():
        if not line.startswith("#"):
            api_key, kind, version, variant, *content = line.split(" ")
            yield GoldenMessage(int(api_key), kind, int(version), variant, bytes.fromhex("".join(content)))
