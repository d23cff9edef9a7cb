"""The pages of docs/how-it-works: their size, and the modules, classes and tests that they name.

Two pages outside this folder name modules and tests as well.
"""

from __future__ import annotations

import builtins
import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
SOURCE = PROJECT / "src" / "kafkacore"
PAGES = sorted((PROJECT / "docs" / "how-it-works").glob("*.md"))
OTHER_PAGES = [PROJECT / "docs" / "dependencies.md", PROJECT / "docs" / "measured" / "index.md"]
#: Ten pages and the index.
MOST_PAGES, MOST_BYTES = 11, 10_000
#: Maximum width of a diagram that does not scroll on the web site.
MOST_COLUMNS = 90
#: Class-like names that belong to Kafka, Java or Python.
FOREIGN = {
    "HashMap", "DumpLogSegments", "JoinGroup", "SyncGroup", "Errors",
    "InitProducerId", "EndTxn", "TxnOffsetCommit", "CompleteCommit", "CompleteAbort", "PrepareCommit",
    "PrepareAbort", "PyJWKClient", "Py_EnterRecursiveCall", "Py_buffer", "Thread",
}  # fmt: skip


def page_text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def existing_file(name: str) -> bool:
    """Return whether a file exists in the package, in the project, or by its bare name anywhere in tests."""
    if (SOURCE / name).is_file() or (PROJECT / name).exists():
        return True
    return "/" not in name and any((PROJECT / "tests").rglob(name))


def declared_classes() -> set[str]:
    sources = [path for path in SOURCE.rglob("*") if path.suffix in {".py", ".pyx"}]
    texts = (path.read_text(encoding="utf-8") for path in sources)
    return {name for text in texts for name in re.findall(r"^(?:cdef )?class (\w+)", text, re.MULTILINE)}


def test_pages_are_few_and_short() -> None:
    assert 0 < len(PAGES) <= MOST_PAGES
    assert {page.name: size for page in PAGES if (size := page.stat().st_size) > MOST_BYTES} == {}


@pytest.mark.parametrize("page", PAGES + OTHER_PAGES, ids=lambda page: page.stem)
def test_named_files_exist(page: Path) -> None:
    names = set(re.findall(r"`([\w/.-]+\.(?:py|pyx|pxd|pyi|c|h|txt))`", page_text(page)))
    names.discard("_name.pyx")  # a placeholder for the names of compiled modules
    names |= set(re.findall(r"`((?:tests|tools|bench|examples)/[\w/.-]+)`", page_text(page)))
    assert [name for name in sorted(names) if not existing_file(name)] == []


def test_named_classes_exist() -> None:
    text = "\n".join(map(page_text, PAGES))
    named = {
        name for name in re.findall(r"`([A-Z]\w+)(?:\.\w+)?(?:\(.*?\))?`", text) if re.search("[a-z]", name)
    }
    assert named - declared_classes() - FOREIGN - set(dir(builtins)) == set()


def test_pictures_are_no_wider_than_a_page() -> None:
    blocks = [
        block for page in PAGES for block in re.findall(r"```text\n(.*?)```", page_text(page), re.DOTALL)
    ]
    assert len(blocks) > 15
    assert [line for block in blocks for line in block.splitlines() if len(line) > MOST_COLUMNS] == []
