"""Sphinx extension: write the reference from the code while the site is built.

A page has comments such as ``<!-- reference: settings producer -->``. Before Sphinx reads the page, each is
replaced by the Markdown that the function of that name returns. Nothing that is generated is committed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from reference.api import api, fixtures
from reference.apis import apis
from reference.commands import commands
from reference.errors import errors
from reference.links import resolve
from reference.metrics import metrics
from reference.settings import options, settings

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

#: Functions that generate the text replacing a comment, by the first word of the comment.
WRITERS = {
    "api": api,
    "apis": apis,
    "commands": commands,
    "errors": errors,
    "fixtures": fixtures,
    "metrics": metrics,
    "options": options,
    "settings": settings,
}
_COMMENT = re.compile(r"^<!-- reference: (\w+) ?(.*) -->$", re.MULTILINE)


def expanded(text: str) -> str:
    """Return the text of a page with its reference comments replaced by generated text."""
    return _COMMENT.sub(lambda match: WRITERS[match[1]](*match[2].split()), text)


def _on_source_read(app: Sphinx, docname: str, source: list[str]) -> None:
    source[0] = expanded(source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the extension to Sphinx."""
    app.connect("source-read", _on_source_read)
    app.connect("missing-reference", resolve)
    # The pages depend on code that Sphinx does not watch: read them in every build.
    app.connect("env-get-outdated", lambda app, env, added, changed, removed: _generated_pages(env))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _generated_pages(env: BuildEnvironment) -> list[str]:
    texts = {name: Path(env.doc2path(name)).read_text("utf-8") for name in env.found_docs}
    return sorted(name for name, text in texts.items() if _COMMENT.search(text))
