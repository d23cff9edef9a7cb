"""Where a broker under test keeps its data: the folder that it is given, or a temporary one.

Does not know: who uses it.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


class ScratchFolder:
    """A folder for a while.

    Parameters
    ----------
    given:
        Is used and stays; ``None`` makes a temporary one.
    prefix:
        Of a temporary one's name.
    """

    def __init__(self, given: str | os.PathLike[str] | None, prefix: str) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix=prefix) if given is None else None
        self.path = Path(self._temporary.name if self._temporary is not None else given or "")

    def remove(self) -> None:
        """Remove it if it is temporary. May be called again."""
        if self._temporary is not None:
            self._temporary.cleanup()
