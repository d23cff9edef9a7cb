"""Resolve references in docstrings to errors, which share one page, and to names without a page."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from docutils import nodes

from kafkacore import errors

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

ERRORS_PAGE = "reference/errors"


def resolve(
    app: Sphinx, env: BuildEnvironment, node: nodes.Element, contnode: nodes.Node
) -> nodes.Node | None:
    """Return a link to an error, or plain text for any other name that exists.

    For an unknown name, return ``None``, and Sphinx reports a warning.
    """
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    name = target.rpartition(".")[2]
    if isinstance(getattr(errors, name, None), type) and hasattr(errors, name):
        uri = f"{app.builder.get_relative_uri(node['refdoc'], ERRORS_PAGE)}#{name.lower()}"
        return nodes.reference("", "", contnode, internal=True, refuri=uri)
    here = ".".join(filter(None, (node.get("py:module"), node.get("py:class"))))
    places = (target, f"{here}.{target}", f"{node.get('py:module')}.{target}", f"builtins.{target}")
    return contnode if any(_exists(place.strip(".")) for place in places) else None


def _exists(path: str) -> bool:
    """Return whether a dotted path is a module or an attribute of one."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:length]))
        except ImportError:
            continue
        for attribute in parts[length:]:
            if not hasattr(found, attribute) and attribute not in getattr(found, "__annotations__", {}):
                return False
            found = getattr(found, attribute, None)
        return True
    return False
