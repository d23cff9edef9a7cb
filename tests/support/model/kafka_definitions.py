"""Kafka's own message definitions: the JSON files in the kafka-clients jar, without their comments."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

FOLDER = "common/message/"
#: Matches whole-line comments, which JSON does not allow.
COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)


def kafka_definitions(jar: Path, folder: str = FOLDER) -> dict[str, dict[str, Any]]:
    """Return every definition in the folder of the jar, by the name of its message."""
    with zipfile.ZipFile(jar) as archive:
        names = [name for name in archive.namelist() if name.startswith(folder) and name.endswith(".json")]
        texts = [archive.read(name).decode() for name in names]
    found = [json.loads(COMMENT.sub("", text)) for text in texts]
    return {definition["name"]: definition for definition in found}


def versions_in(text: str | None, valid: range) -> list[int]:
    """Return the versions of ``valid`` in a range such as ``none``, ``3``, ``3+`` or ``3-5``."""
    if text is None or text == "none":
        return []
    low, _, high = text.rstrip("+").partition("-")
    last = valid.stop - 1 if text.endswith("+") else int(high or low)
    return [version for version in valid if int(low) <= version <= last]


def valid_versions(definition: dict[str, Any]) -> range:
    """Return the versions of a message."""
    text = definition["validVersions"]
    if text == "none":
        return range(0)
    low, _, high = text.partition("-")
    return range(int(low), int(high or low) + 1)
