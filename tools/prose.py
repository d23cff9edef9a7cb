"""Find sentences that are not plain English: words and forms that the project does not use.

    python tools/prose.py                      # the whole project, as make lint does
    python tools/prose.py src/kafkacore/admin  # any other file or folder

Documentation outside of its blocks of code is searched, and docstrings, comments and texts of the code.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).resolve().parents[1]
#: All that people read.
CHECKED = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "RELEASING.md",
    "SECURITY.md",
    "bench",
    "ci",
    "docs",
    "examples",
    "setup.py",
    "src",
    "tests",
    "tools",
)
SUFFIXES = (".md", ".py", ".pyx", ".pxd", ".pyi")

#: What to look for, and what to write instead.
RULES = tuple(
    (re.compile(pattern, re.IGNORECASE if pattern[0] != "(" else 0), instead)
    for pattern, instead in {
        r"\banew\b": "again, or a verb with re-",
        r"\bwhence\b|\bwherefrom\b": "from where, or the source",
        r"\bno ?body\b": "no client, no thread, none",
        r"\bsomebody\b|\beverybody\b": "a client, every user",
        r"\b(?:is|are|was|were|be|been|being) told\b": "is notified, or the verb of the actor",
        r"\bhand(?:s|ed|ing)? out\b": "return, give",
        r"\ball the same\b": "nevertheless",
        r"\bof whom\b|\bwho does\b|\bwho has\b|\bwho is\b": "the client that ..., the member that ...",
        r"\bcome(?:s)? to the point\b|\bcome(?:s)? to an end\b": "finish",
        r"\bcannot be had\b|\bcan be had\b": "is not available",
        r"\bno longer is\b|\bno more is\b": "is no longer",
        r"\bgoes on\b|\bgo on\b|\bwent on\b": "continue, resume",
        r"\blet(?:s)? in\b": "admit, accept",
        r"\b(?<!there )is no\b(?! longer)|(?-i:\bis none\b)": "is not a",
        r"\bDoes not know:": "leave it out: the layers are listed once",
        r"(?:^|[.:;] )(?:What|Who) (?!to )[^.?!;:]*(?:[.;:!]|$)": "a noun as the subject of the sentence",
        r"(?:^|[.] )For who\b": "for a client that ...",
    }.items()
)
#: A string, with its prefix, or a comment.
_TEXTS = re.compile(
    r'(?P<long>"""(?:\\.|[^\\])*?""")|"(?P<double>(?:\\.|[^"\\\n])*)"|\'(?P<single>(?:\\.|[^\'\\\n])*)\''
    r"|#(?P<comment>[^\n]*(?:\n[ \t]*#[^\n]*)*)",
    re.DOTALL,
)
_CODE = re.compile(r"^(`{3,}).*?^\1|^    .*?$|`[^`\n]*`|<!--.*?-->", re.MULTILINE | re.DOTALL)


class Finding(NamedTuple):
    """A text that a rule matches."""

    path: Path
    line: int
    text: str
    instead: str


def findings(path: Path) -> Iterator[Finding]:
    """Find what the rules match in a file."""
    whole = path.read_text(encoding="utf-8")
    for start, text in _paragraphs(path, whole):
        flat = re.sub(r"\s+", " ", text).strip()
        for rule, instead in RULES:
            for match in rule.finditer(flat):
                yield Finding(path, whole.count("\n", 0, start) + 1, match[0].strip(" ."), instead)


def _paragraphs(path: Path, whole: str) -> Iterator[tuple[int, str]]:
    """Return each paragraph with its place, without code."""
    if path.suffix == ".md":
        blanked = _CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), whole)
        texts = [(0, blanked)]
    else:
        texts = []
        for match in _TEXTS.finditer(whole):
            text = match[0].strip("\"'")
            if match["comment"] is not None:
                text = re.sub(r"^[ \t]*#:?", " ", match[0], flags=re.MULTILINE)
            texts.append((match.start(), re.sub(r"``.*?``", "x", text, flags=re.DOTALL)))
    for start, text in texts:
        at = 0
        for part in re.split(r"(\n[ \t]*\n|\n[ \t]*(?=[-*|] ))", text):
            if part.strip():
                yield start + at, part
            at += len(part)


def files(places: list[str]) -> list[Path]:
    """Return the files below the places."""
    found: set[Path] = set()
    for place in places:
        path = PROJECT / place
        found |= {path} if path.is_file() else {each for each in path.rglob("*") if each.suffix in SUFFIXES}
    # This file has the words that it looks for.
    found.discard(Path(__file__).resolve())
    return sorted(each for each in found if "generated" not in each.parts and "__pycache__" not in each.parts)


def main(places: list[str]) -> int:
    """Print the findings, and return 1 if there are any."""
    count = 0
    for path in files(places or list(CHECKED)):
        for found in findings(path):
            count += 1
            name = found.path.relative_to(PROJECT)
            print(f"{name}:{found.line}: {found.text!r}: write {found.instead}", file=sys.stderr)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
