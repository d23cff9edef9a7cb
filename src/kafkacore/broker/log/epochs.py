"""Which leader epoch began at which offset of a log, kept in Kafka's ``leader-epoch-checkpoint``.

Epochs and offsets in, where an epoch ends out. Does not know: who leads, batches' records, threads.
Source of the rules: Kafka's ``LeaderEpochFileCache``; KIP-101, KIP-320.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from kafkacore.broker.log import checkpoints
from kafkacore.broker.storage.disk import Disk
from kafkacore.record import BatchHeader
from kafkacore.structs import printable

logger = logging.getLogger(__name__)

FIRST_EPOCH = 0
NO_EPOCH = -1
NO_OFFSET = -1


class EpochEndOffset(NamedTuple):
    """The largest epoch that is not above the one asked for, and the offset behind its last record; -1
    and -1 if nothing is known of it.
    """

    leader_epoch: int
    end_offset: int


class EpochStart(NamedTuple):
    leader_epoch: int
    start_offset: int


class LeaderEpochCache:
    """Used under its log's lock. Changes are in memory until :meth:`write`, on disk after :meth:`sync`.

    Parameters
    ----------
    folder:
        The partition's.
    """

    def __init__(self, disk: Disk, folder: Path) -> None:
        self._disk = disk
        self._path = folder / checkpoints.LEADER_EPOCH_FILE
        self._epochs: list[int] = []
        self._starts: list[int] = []
        #: The file does not say what is known here.
        self.is_changed = True
        #: The file has been written since it was last synced.
        self.is_dirty = False

    def entries(self) -> list[EpochStart]:
        return [EpochStart(*entry) for entry in zip(self._epochs, self._starts, strict=True)]

    @property
    def latest(self) -> int:
        """The epoch that batches are appended in; that of a new log if none is known."""
        return self._epochs[-1] if self._epochs else FIRST_EPOCH

    @property
    def is_empty(self) -> bool:
        return not self._epochs

    def epoch_at(self, offset: int) -> int:
        """The epoch in which ``offset`` was written, -1 if that is not known."""
        index = bisect_right(self._starts, offset) - 1
        return self._epochs[index] if index >= 0 else NO_EPOCH

    def end_offset(self, epoch: int, log_end_offset: int) -> EpochEndOffset:
        """Where ``epoch`` ends (``LeaderEpochFileCache.endOffsetFor``)."""
        if self._epochs and epoch == self._epochs[-1]:
            return EpochEndOffset(epoch, log_end_offset)
        higher = bisect_right(self._epochs, epoch)
        if epoch < 0 or higher == len(self._epochs):
            return EpochEndOffset(NO_EPOCH, NO_OFFSET)
        # Of an epoch before all that are known nothing is left: what it had ends where these begin.
        known = self._epochs[higher - 1] if higher else epoch
        return EpochEndOffset(known, self._starts[higher])

    # ---- Changes --------------------------------------------------------------------------------------

    def assign(self, epoch: int, start_offset: int) -> None:
        """``epoch`` begins at ``start_offset``, unless it has begun before; entries that contradict go."""
        if epoch < 0 or (self._epochs and epoch == self._epochs[-1] and start_offset >= self._starts[-1]):
            return
        keep = len(self._epochs)
        while keep and (self._epochs[keep - 1] >= epoch or self._starts[keep - 1] >= start_offset):
            keep -= 1
        self._epochs[keep:] = [epoch]
        self._starts[keep:] = [start_offset]
        self.is_changed = True

    def replay(self, headers: Iterable[BatchHeader]) -> None:
        """Take in batches as they lie in the log."""
        for header in headers:
            epoch = header.partition_leader_epoch
            if not self._epochs or epoch > self._epochs[-1]:
                self.assign(epoch, header.base_offset)

    def truncate_from_start(self, offset: int) -> None:
        """The log begins at ``offset``: what began before it, begins there."""
        before = bisect_right(self._starts, offset)
        if before and (before > 1 or self._starts[0] < offset):
            del self._epochs[: before - 1], self._starts[: before - 1]
            self._starts[0] = offset
            self.is_changed = True

    def fit(self, log_start_offset: int, log_end_offset: int) -> None:
        """Let the entries be of a log with these ends. The latest epoch is kept even if the log ends before
        it: nobody else remembers it, and an epoch must not come twice.
        """
        latest = self.latest
        while self._starts and self._starts[-1] > log_end_offset:
            del self._epochs[-1], self._starts[-1]
            self.is_changed = True
        self.assign(latest, log_end_offset)
        self.truncate_from_start(log_start_offset)

    # ---- File -----------------------------------------------------------------------------------------

    def load(self) -> bool:
        """Take in the file; whether there is a sound one. Without it the batches have to be replayed."""
        try:
            data = self._disk.read_file(self._path)
        except FileNotFoundError:
            return False
        try:
            found = checkpoints.parse_leader_epochs(data)
        except ValueError as error:
            logger.warning(
                "%s is broken (%s); built anew from the batches", self._path, printable(str(error))
            )
            return False
        self._epochs = [epoch for epoch, _ in found]
        self._starts = [start for _, start in found]
        self.is_changed = False
        return bool(found)

    def write(self) -> None:
        """Let the file say what is known here; it is replaced as a whole."""
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
        # That a log is in its first epoch need not be on disk: its batches say so.
        self.is_dirty = self._epochs != [FIRST_EPOCH]

    def sync(self) -> None:
        """Bring the file's bytes to disk; its name is durable when its folder has been synced."""
        if self.is_dirty:
            self.is_dirty = False
            fd = self._disk.open(self._path)
            try:
                self._disk.fdatasync(fd)
            finally:
                self._disk.close(fd)
