"""Skip tests whose tools this machine lacks. The last lines of a run say which tools and how to get them.

With ``KAFKACORE_REQUIRE_ALL=1``, which CI sets, a missing tool is a failure.
"""

from __future__ import annotations

import importlib
import os
import shutil
from collections import Counter
from collections.abc import Iterable
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

#: Folders of administrators' programs, which are not on every user's PATH.
ADMIN_FOLDERS = ("/usr/sbin", "/usr/local/sbin")
LEFT_OUT = "missing: "


class MissingToolError(Exception):
    """A program that a test runs is not installed; the message says how to get it."""


def tools_are_required() -> bool:
    """Return whether a missing tool is a failure."""
    return os.environ.get("KAFKACORE_REQUIRE_ALL") == "1"


def find_tool(*names: str, package: str) -> str:
    """Return the path of the first of these programs that is installed.

    Raises
    ------
    MissingToolError
        None is installed. The message names the Debian package.
    """
    path = os.pathsep.join([os.environ.get("PATH", ""), *ADMIN_FOLDERS])
    for name in names:
        if found := shutil.which(name, path=path):
            return found
    raise MissingToolError(f"{names[0]} (Debian, Ubuntu: apt-get install {package})")


#: How to install the module for Kerberos.
GSSAPI = "gssapi (apt-get install libkrb5-dev, then rm .venv/.dev)"


def import_or_leave_out(module: str, how: str) -> ModuleType:
    """Import a module for a test file, or skip the file if the module is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        if tools_are_required():
            raise
        import pytest

        pytest.skip(f"{LEFT_OUT}{how}", allow_module_level=True)


def leave_out(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Turn the failure of a test that lacks a tool into a skip that names the tool."""
    if call.excinfo is None or tools_are_required():
        return
    error: BaseException | None = call.excinfo.value
    while error is not None and not isinstance(error, MissingToolError):
        error = error.__cause__ or error.__context__
    if error is not None:
        report.outcome = "skipped"
        report.longrepr = (str(item.path), (item.location[1] or 0) + 1, f"Skipped: {LEFT_OUT}{error}")


def summary(reasons: Iterable[str]) -> list[str]:
    """Return one line for each missing tool, with the number of tests that were skipped for it."""
    counts = Counter(reason.partition(LEFT_OUT)[2].strip() for reason in reasons if LEFT_OUT in reason)
    return [f"{count} left out without {tool}" for tool, count in counts.most_common()]
