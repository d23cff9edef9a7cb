"""The data folder of a broker under test, which may be temporary."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


class ScratchFolder:
    """A given folder, or a temporary one.

    Parameters
    ----------
    given:
        A folder that is used and never removed. ``None`` creates a temporary one.
    prefix:
        Prefix of the name of a temporary folder.
    """

    def __init__(self, given: str | os.PathLike[str] | None, prefix: str) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix=prefix) if given is None else None
        self.path = Path(self._temporary.name if self._temporary is not None else given or "")

    def remove(self) -> None:
        """Remove the folder if it is temporary. Further calls do nothing."""
        if self._temporary is not None:
            self._temporary.cleanup()
