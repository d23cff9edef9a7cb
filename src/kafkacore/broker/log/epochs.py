"""The start offset of each leader epoch of a log, kept in ``leader-epoch-checkpoint`` (KIP-101, KIP-320).

The code follows Kafka's ``LeaderEpochFileCache``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from kafkacore.broker.log import checkpoints
from kafkacore.broker.storage.disk import Disk
from kafkacore.logs import logger_of
from kafkacore.record import BatchHeader
from kafkacore.structs import printable

logger = logger_of(__name__)

FIRST_EPOCH = 0
NO_EPOCH = -1
NO_OFFSET = -1


class EpochEndOffset(NamedTuple):
    """The largest epoch that is not above the requested epoch, and its end offset.

    Both fields are -1 if the log has no such epoch.
    """

    leader_epoch: int
    end_offset: int


class EpochStart(NamedTuple):
    """A leader epoch and the offset at which it starts."""

    leader_epoch: int
    start_offset: int


class LeaderEpochCache:
    """The leader epochs of a log. Callers hold the lock of the log.

    Changes are in memory until :meth:`write`, and on disk after :meth:`sync`.

    Parameters
    ----------
    disk:
        File system to use.
    folder:
        Folder of the partition.
    """

    def __init__(self, disk: Disk, folder: Path) -> None:
        self._disk = disk
        self._path = folder / checkpoints.LEADER_EPOCH_FILE
        self._epochs: list[int] = []
        self._starts: list[int] = []
        #: Current leader epoch, or :data:`FIRST_EPOCH` if none is known.
        self.latest = FIRST_EPOCH
        #: Whether there are changes that are not yet written to the file.
        self.is_changed = True
        #: Whether the file has been written since it was last synced.
        self.is_dirty = False

    def entries(self) -> list[EpochStart]:
        """Return all epochs with their start offsets, in order."""
        return [EpochStart(*entry) for entry in zip(self._epochs, self._starts, strict=True)]

    @property
    def is_empty(self) -> bool:
        """Whether no epoch is known."""
        return not self._epochs

    def epoch_at(self, offset: int) -> int:
        """Return the epoch of the record at ``offset``, or -1 if it is not known."""
        index = bisect_right(self._starts, offset) - 1
        return self._epochs[index] if index >= 0 else NO_EPOCH

    def end_offset(self, epoch: int, log_end_offset: int) -> EpochEndOffset:
        """Return the end offset of ``epoch``, as Kafka's ``LeaderEpochFileCache.endOffsetFor`` does."""
        if self._epochs and epoch == self._epochs[-1]:
            return EpochEndOffset(epoch, log_end_offset)
        higher = bisect_right(self._epochs, epoch)
        if epoch < 0 or higher == len(self._epochs):
            return EpochEndOffset(NO_EPOCH, NO_OFFSET)
        # An epoch older than all known epochs has no records left. It ends where the first known epoch
        # starts.
        known = self._epochs[higher - 1] if higher else epoch
        return EpochEndOffset(known, self._starts[higher])

    # ---- Changes --------------------------------------------------------------------------------------

    def assign(self, epoch: int, start_offset: int) -> None:
        """Start ``epoch`` at ``start_offset``, unless it is already the current epoch.

        Entries with an equal or larger epoch, or an equal or larger start offset, are removed.
        """
        if epoch < 0 or (self._epochs and epoch == self._epochs[-1] and start_offset >= self._starts[-1]):
            return
        keep = len(self._epochs)
        while keep and (self._epochs[keep - 1] >= epoch or self._starts[keep - 1] >= start_offset):
            keep -= 1
        self._epochs[keep:] = [epoch]
        self._starts[keep:] = [start_offset]
        self.latest = epoch
        self.is_changed = True

    def replay(self, headers: Iterable[BatchHeader]) -> None:
        """Add the epochs of batches of the log, in order."""
        for header in headers:
            epoch = header.partition_leader_epoch
            if not self._epochs or epoch > self._epochs[-1]:
                self.assign(epoch, header.base_offset)

    def truncate_from_start(self, offset: int) -> None:
        """Remove the epochs that end at or before ``offset``, the new log start offset.

        The epoch that contains ``offset`` then starts at ``offset``.
        """
        before = bisect_right(self._starts, offset)
        if before and (before > 1 or self._starts[0] < offset):
            del self._epochs[: before - 1], self._starts[: before - 1]
            self._starts[0] = offset
            self.is_changed = True

    def truncate_to_bounds(self, log_start_offset: int, log_end_offset: int) -> None:
        """Limit the entries to the bounds of the log.

        The latest epoch is kept even if the log ends before its start, because an epoch must not be reused.
        """
        while self._starts and self._starts[-1] > log_end_offset:
            del self._epochs[-1], self._starts[-1]
            self.is_changed = True
        self.assign(self.latest, log_end_offset)
        self.truncate_from_start(log_start_offset)

    # ---- File -----------------------------------------------------------------------------------------

    def load(self) -> bool:
        """Load the file and return whether it is valid.

        If the file is missing or damaged, the caller must :meth:`replay` the log.
        """
        try:
            data = self._disk.read_file(self._path)
        except FileNotFoundError:
            return False
        try:
            found = checkpoints.parse_leader_epochs(data)
        except ValueError as error:
            logger.warning(
                "%s is damaged and will be rebuilt from the batches: %s", self._path, printable(str(error))
            )
            return False
        self._epochs = [epoch for epoch, _ in found]
        self._starts = [start for _, start in found]
        self.latest = self._epochs[-1] if found else FIRST_EPOCH
        self.is_changed = False
        return bool(found)

    def write(self) -> None:
        """Replace the file if there are changes."""
        if not self.is_changed:
            return
        temporary = self._path.with_name(self._path.name + ".tmp")
        fd = self._disk.open(temporary, create=True)
        try:
            self._disk.truncate(fd, 0)
            self._disk.pwritev(fd, [checkpoints.leader_epochs(self.entries())], 0)
        finally:
            self._disk.close(fd)
        self._disk.rename(temporary, self._path)
        self.is_changed = False
        # A file with only the first epoch need not be synced, because it can be restored from the batches.
        self.is_dirty = self._epochs != [FIRST_EPOCH]

    def sync(self) -> None:
        """Sync the content of the file. Its name is durable only after the folder has been synced."""
        if self.is_dirty:
            self.is_dirty = False
            fd = self._disk.open(self._path)
            try:
                self._disk.fdatasync(fd)
            finally:
                self._disk.close(fd)
