"""A small file that is replaced as a whole: after a crash it has the old text or the new one.

Text in, text out. Does not know: what the text means.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


class StateFile:
    """``path`` is created with mode 0600 at the first :meth:`write`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> str | None:
        """The text, or ``None`` if nothing has been written yet."""
        try:
            return self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def write(self, text: str) -> None:
        """Replace the text; on disk, name included, when this returns. ``OSError`` leaves the old text."""
        temporary = self.path.with_name(self.path.name + ".tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        # The new name is only durable once its folder is.
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
