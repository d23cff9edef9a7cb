"""The code blocks of a documentation page, to be run unchanged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[3]
_BLOCK = re.compile(
    r"^(?:<!-- not run: ([^\n]+) -->\n)?(`{3,})([^\n`]*)\n(.*?)^\2$", re.MULTILINE | re.DOTALL
)


class Block(NamedTuple):
    """A code block, its language, and the reason why it is not run, or ``None``."""

    code: str
    why_not_run: str | None
    language: str = "python"


def fenced_blocks(page: str, places: Mapping[str, str] = MappingProxyType({})) -> list[Block]:
    """Return all blocks of a page, with ``places`` (addresses, folders, ports) replaced by others."""
    text = (ROOT / page).read_text()
    for shown, other in places.items():
        assert shown in text, f"{page} no longer shows {shown}"
        text = text.replace(shown, other)
    return [Block(code, why or None, language.strip()) for why, _, language, code in _BLOCK.findall(text)]


def page_blocks(page: str, places: Mapping[str, str]) -> list[Block]:
    """Return the blocks of Python of a page."""
    return [block for block in fenced_blocks(page, places) if block.language == "python"]


def code_blocks(page: str, places: Mapping[str, str]) -> list[str]:
    """Return the code of :func:`page_blocks`."""
    return [block.code for block in page_blocks(page, places)]


def run_readme(bootstrap_servers: str) -> dict[str, object]:
    """Run the blocks of README.md in order in one namespace, and return it."""
    places = {"localhost:9092": bootstrap_servers}
    names: dict[str, object] = {}
    for number, block in enumerate(page_blocks("README.md", places)):
        if block.why_not_run is None:
            exec(compile(block.code, f"README.md, block {number}", "exec"), names)
    return names
