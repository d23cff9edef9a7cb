"""The Python that a page of documentation shows: its blocks, to be run as they stand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def code_blocks(page: str, places: Mapping[str, str]) -> list[str]:
    """The blocks of a page, with ``places`` (addresses, folders, ports) exchanged for others."""
    text = (ROOT / page).read_text()
    for shown, other in places.items():
        assert shown in text, f"{page} no longer shows {shown}"
        text = text.replace(shown, other)
    return _BLOCK.findall(text)
