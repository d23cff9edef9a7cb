"""The code in README.md and in the documentation runs unchanged."""

from __future__ import annotations

import asyncio
import inspect
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from peers.shown_code import ROOT, Block, fenced_blocks

from kafkacore.cli.main import build_parser
from kafkacore.testing.embedded_broker import EmbeddedBroker

DOCS = ROOT / "docs"
EXCLUDED = {DOCS / name for name in runpy.run_path(str(DOCS / "conf.py"))["exclude_patterns"]}
SITE = sorted(set(DOCS.rglob("*.md")) - EXCLUDED)
PAGES = [str(path.relative_to(ROOT)) for path in (ROOT / "README.md", *SITE)]
#: Languages whose blocks are run.
RUN = ("python", "shell", "console")
#: A port shown on a page; the tests let the system choose a free one instead.
_PORT = re.compile(r"\bport=9400\b")


def run_blocks(page: str) -> list[Block]:
    return [block for block in fenced_blocks(page) if block.language in RUN and block.why_not_run is None]


@pytest.mark.parametrize("page", [page for page in PAGES if run_blocks(page)])
def test_blocks_of_page_run_in_order(
    page: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run Python blocks in one namespace, commands in a shell, and test functions with their fixtures."""
    monkeypatch.chdir(tmp_path)
    # A class that a page defines needs its module in sys.modules.
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with EmbeddedBroker(flush="os", group_initial_rebalance_delay_ms=0) as broker:
        for number, block in enumerate(run_blocks(page)):
            code = _PORT.sub("port=0", block.code.replace("localhost:9092", broker.bootstrap_servers))
            if block.language == "python":
                exec(compile(code, f"{page}, block {number}", "exec"), vars(module))
            else:
                _run_shell(code, block.language, tmp_path)
        for name, function in list(vars(module).items()):
            if name.startswith("test_") and inspect.isfunction(function):
                _run_test(function, request)


def _run_shell(code: str, language: str, folder: Path) -> None:
    if language == "console":
        code = "\n".join(line[2:] for line in code.splitlines() if line.startswith("$ "))
    # Use this environment's command, even if the environment is not activated.
    prelude = f'kafkacore() {{ {shlex.quote(sys.executable)} -m kafkacore "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", prelude + code],
        cwd=folder,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{code}\n{done.stderr}"


def _run_test(function: object, request: pytest.FixtureRequest) -> None:
    assert callable(function)
    arguments = {name: request.getfixturevalue(name) for name in inspect.signature(function).parameters}
    returned = function(**arguments)
    if inspect.iscoroutine(returned):
        asyncio.run(returned)


@pytest.mark.parametrize("page", PAGES)
def test_block_that_is_not_run_has_a_reason(page: str) -> None:
    """Check the reason of each block that is not run, and that the files it names exist."""
    for block in fenced_blocks(page):
        if block.why_not_run is not None:
            assert block.language in RUN, f"{block.language} is never run: remove the comment"
            assert len(block.why_not_run.split()) > 1
            for path in re.findall(r"\b(?:tests|examples)/[\w/.]*\w", block.why_not_run):
                assert (ROOT / path).exists(), path


def test_every_page_is_in_a_toctree() -> None:
    listed = {DOCS / "index.md"}
    for page in SITE:
        for block in fenced_blocks(str(page.relative_to(ROOT))):
            if block.language == "{toctree}":
                listed |= {page.parent / f"{entry}.md" for entry in toctree_entries(block.code)}
    assert set(SITE) == listed


def toctree_entries(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line and not line.startswith(":"):
            titled = re.fullmatch(r".*<(.+)>", line)
            yield (titled[1] if titled else line).strip().removesuffix(".md")


def in_code(page: str) -> list[str]:
    """Return the code of a page, without its prose, which can also begin with ``kafkacore``."""
    whole = (ROOT / page).read_text()
    shown = [block.code for block in fenced_blocks(page) if block.language in ("shell", "console")]
    shown += re.findall(
        r"^    .*(?:\\\n.*)*", re.sub(r"^```.*?^```", "", whole, flags=re.M | re.S), re.MULTILINE
    )
    return shown


@pytest.mark.parametrize("page", [*PAGES, "SECURITY.md"])
def test_every_command_that_is_shown_is_understood(page: str) -> None:
    text = "\n".join(in_code(page)).replace("\\\n", " ")
    # There is one command per line, possibly after variables. Lines with an ellipsis are not commands.
    lines = re.findall(r"^\s*(?:\$ )?(?:\w+=\S+ )*kafkacore ([^|<>&\n]*)", text, re.MULTILINE)
    for line in lines:
        if "..." not in line and "…" not in line:
            build_parser().parse_args(shlex.split(line, comments=True))
