"""Checkpoint file with the end offset of the acknowledged records of the metadata log.

The file is written before a change is acknowledged. A log that ends before the stored offset is damaged.
Records after the stored offset were not acknowledged.
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
    """The checkpoint file.

    The file is written in two steps. :meth:`prepare` needs disk space, so it is called before the log is
    written. :meth:`set` is called afterwards.

    Parameters
    ----------
    path:
        Path of the file, which the first :meth:`set` creates.
    disk:
        Access to the file system.
    """

    def __init__(self, path: Path, disk: Disk) -> None:
        self.path = path
        self._disk = disk
        self._temporary = path.with_name(path.name + ".tmp")

    def read(self) -> int:
        """Return the end offset of the acknowledged records; 0 if the file does not exist.

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
        """Write the offset to a temporary file. After an ``OSError``, nothing has changed."""
        fd = self._disk.open(self._temporary, create=True)
        try:
            self._disk.truncate(fd, 0)
            self._disk.pwritev(fd, [checked_json({_NEXT_OFFSET: next_offset})], 0)
            self._disk.fdatasync(fd)
        finally:
            self._disk.close(fd)

    def set(self) -> None:
        """Replace the checkpoint file by the temporary file, and sync the folder.

        After an ``OSError``, either the old or the new offset may be in effect.
        """
        self._disk.rename(self._temporary, self.path)
        self._disk.fsync_dir(self.path.parent)

    def _damaged(self, why: str) -> KafkaStorageError:
        return KafkaStorageError(
            f"{self.path} is damaged: {why}; restore it from a backup, or remove it if the metadata log is "
            f"not damaged"
        )
