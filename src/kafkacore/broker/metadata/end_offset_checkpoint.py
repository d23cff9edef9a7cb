"""The end of the durable part of the metadata log: a small file beside it, written before a response.

A log that ends before that offset is damaged. A record after it was not acknowledged.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kafkacore.broker.storage.checked_json import checked_json, read_checked_json
from kafkacore.broker.storage.disk import Disk
from kafkacore.errors import KafkaStorageError
from kafkacore.structs import INT64_MAX

FILE_NAME: Final = "cluster-metadata.end"
_NEXT_OFFSET: Final = "next_offset"
_LAST_OFFSET: Final = INT64_MAX


class EndOffsetCheckpoint:
    """In two steps, so that all that needs room on the disk is done before the log is touched.

    Parameters
    ----------
    path:
        The file; made by the first :meth:`set`.
    """

    def __init__(self, path: Path, disk: Disk) -> None:
        self.path = path
        self._disk = disk
        self._temporary = path.with_name(path.name + ".tmp")

    def read(self) -> int:
        """The offset behind the last record that is on disk for certain; 0 if nothing is known.

        Raises
        ------
        KafkaStorageError
            The file is damaged.
        """
        try:
            found = read_checked_json(self._disk.read_file(self.path)).get(_NEXT_OFFSET)
        except FileNotFoundError:
            return 0
        except ValueError as error:
            raise self._damaged(str(error)) from None
        if type(found) is not int or not 0 <= found <= _LAST_OFFSET:
            raise self._damaged(f"{_NEXT_OFFSET} is {found!r}")
        return found

    def prepare(self, next_offset: int) -> None:
        """Write the mark under another name; an ``OSError`` leaves everything as it was."""
        fd = self._disk.open(self._temporary, create=True)
        try:
            self._disk.truncate(fd, 0)
            self._disk.pwritev(fd, [checked_json({_NEXT_OFFSET: next_offset})], 0)
            self._disk.fdatasync(fd)
        finally:
            self._disk.close(fd)

    def set(self) -> None:
        """Let what was prepared be true. Syncs the names of the folder; after an ``OSError`` it may be
        either.
        """
        self._disk.rename(self._temporary, self.path)
        self._disk.fsync_dir(self.path.parent)

    def _damaged(self, why: str) -> KafkaStorageError:
        return KafkaStorageError(
            f"{self.path} cannot be read: {why}; restore it, or remove it if the log beside it is whole"
        )
