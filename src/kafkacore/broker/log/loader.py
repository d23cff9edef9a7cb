"""From the files of a partition to its segments and its producers, whatever the last owner left behind.

A folder in; sound segments, offsets and producers' state out. Does not know: clients, the high watermark.
Source of the behaviour: Kafka's ``LogLoader``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from os.path import splitext
from pathlib import Path
from typing import NamedTuple

from kafkacore.broker.log.config import LogConfig
from kafkacore.broker.log.epochs import LeaderEpochCache
from kafkacore.broker.log.open_files import OpenFiles
from kafkacore.broker.log.producer_state import ProducerStateManager
from kafkacore.broker.log.replacement import finish_replacements
from kafkacore.broker.log.segment import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    LogSegment,
)
from kafkacore.broker.log.segment_recovery import recover_segment
from kafkacore.errors import CorruptRecordError

logger = logging.getLogger(__name__)

#: Endings of files that a crash can leave and that no log is made of.
_LEFTOVERS = (DELETED_SUFFIX, ".tmp")
_INDEX_SUFFIXES = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)

#: Bytes before a snapshot in which producers' batches are looked for; more while not all have been found.
TAIL_SIZES = (1 << 20, 4 << 20, 16 << 20)


class LoadedLog(NamedTuple):
    segments: list[LogSegment]
    #: Those that have to be synced before anybody reads them.
    recovered: list[LogSegment]
    producers: ProducerStateManager
    epochs: LeaderEpochCache
    log_start_offset: int
    log_end_offset: int
    #: Everything, the folder's names too, is on disk.
    is_synced: bool


class _Loader:
    def __init__(
        self,
        files: OpenFiles,
        folder: Path,
        name: str,
        config: LogConfig,
        now_ms: int,
        is_same_boot: bool,
    ) -> None:
        self.files = files
        self.disk = files.disk
        self.folder = folder
        self.name = name
        self.config = config
        self.now_ms = now_ms
        self.is_same_boot = is_same_boot
        self.segments: list[LogSegment] = []
        #: What was found in the folder, leftovers included.
        self.names: list[str] = []
        #: Segments whose index files were missing or unusable.
        self.without_index: set[int] = set()
        #: Of the first segment that recovery has looked into, and from which offset on.
        self.first_recovered = 0
        self.walked_from = 0
        #: Whether something was taken away, which a loss of power brings back until it is synced.
        self.has_cut = False

    def open_segments(self) -> None:
        """Remove leftovers and index files without a log, then open every segment in order."""
        names = self.names = self.disk.listdir(self.folder)
        if finish_replacements(self.files, self.folder, self.config, self.now_ms, names):
            names = self.names = self.disk.listdir(self.folder)
        for name in names:
            # Text, not Path: a start asks this of every file.
            stem, suffix = splitext(name)
            is_orphan = suffix in _INDEX_SUFFIXES and stem + LOG_SUFFIX not in names
            if suffix in _LEFTOVERS or is_orphan:
                self.disk.unlink(self.folder / name)
        for name in names:
            stem, suffix = splitext(name)
            if suffix == LOG_SUFFIX and stem.isdecimal():
                has_indexes = stem + INDEX_SUFFIX in names and stem + TIME_INDEX_SUFFIX in names
                self.segments.append(self.open_segment(int(stem), has_indexes))
        self.segments.sort(key=lambda segment: segment.base_offset)

    def open_segment(self, base_offset: int, has_indexes: bool = True) -> LogSegment:
        try:
            segment = LogSegment(self.files, self.folder, base_offset, self.config, self.now_ms)
        except CorruptRecordError as error:
            logger.warning("%s: %s; built anew", self.name, error.reason)
            LogSegment.remove_indexes(self.disk, self.folder, base_offset)
            segment = LogSegment(self.files, self.folder, base_offset, self.config, self.now_ms)
            has_indexes = False
        if not has_indexes and segment.size:
            self.without_index.add(base_offset)
        return segment

    def check_closed(self, segments: list[LogSegment]) -> None:
        """Of segments that are wholly on disk, only the indexes may be wrong."""
        for segment in segments:
            try:
                if segment.base_offset in self.without_index:
                    segment.rebuild_indexes()
                else:
                    segment.check_indexes()
            except CorruptRecordError as error:
                # Readers get to hear of it when they come to the place; what lies behind it stays readable.
                logger.error("%s: %s is damaged: %s", self.name, segment.base_offset, error)
            segment.release_indexes()

    def recover(self, recovery_point: int) -> int:
        """Recover from the segment of ``recovery_point`` on; the log's end offset."""
        first = max((i for i, s in enumerate(self.segments) if s.base_offset <= recovery_point), default=0)
        self.check_closed(self.segments[:first])
        self.first_recovered = first
        end = self.walked_from = self.segments[first].base_offset
        for index in range(first, len(self.segments)):
            segment = self.segments[index]
            is_gap = self.config.compacts and segment.base_offset > end
            if segment.base_offset != end and not is_gap:
                # Ours follow without a gap; what is missing was never synced, nor was what lies behind it.
                self.remove_from(index, f"segment {segment.base_offset} does not begin at {end}")
                break
            size = segment.size
            end, damage, walked_from = recover_segment(
                segment, recovery_point, trusts_indexes=self.is_same_boot
            )
            if index == first:
                self.walked_from = walked_from
            if damage is not None:
                self.has_cut = True
                self.remove_from(index + 1, f"{damage}; cut {size - segment.size} bytes")
                break
        if end < recovery_point:
            logger.error("%s: ends at %d, and was on disk up to %d", self.name, end, recovery_point)
        return end

    def remove_from(self, index: int, why: str) -> None:
        later = self.segments[index:]
        logger.warning("%s: %s, and %d segments", self.name, why, len(later))
        self.has_cut = True
        for segment in later:
            segment.remove()
        del self.segments[index:]

    def close(self) -> None:
        for segment in self.segments:
            segment.close()


def load_log(
    files: OpenFiles,
    folder: Path,
    name: str,
    config: LogConfig,
    *,
    recovery_point: int,
    log_start_offset: int,
    is_clean: bool,
    now_ms: int,
    is_same_boot: bool = False,
) -> LoadedLog:
    """Open the log in ``folder``, and recover it if it was not closed.

    Parameters
    ----------
    name:
        The partition's, for messages.
    recovery_point, log_start_offset:
        From the checkpoints; 0 if they do not say.
    is_clean:
        All logs have been closed by their last owner.
    now_ms:
        Wall time.
    is_same_boot:
        The machine has been up since the last owner began, so that files are as it has left them.

    Raises
    ------
    CorruptRecordError
        The log is damaged below the recovery point, and sound behind: no start decides to cut that.
    OSError
        The disk refuses.
    """
    loader = _Loader(files, folder, name, config, now_ms, is_same_boot)
    try:
        return _load(loader, recovery_point, log_start_offset, is_clean)
    except BaseException:
        loader.close()
        raise


def _load(loader: _Loader, recovery_point: int, log_start_offset: int, is_clean: bool) -> LoadedLog:
    disk, folder = loader.disk, loader.folder
    loader.open_segments()
    log_end_offset, is_clean = _end_of(loader, recovery_point, is_clean)
    if loader.segments and log_end_offset < log_start_offset:
        # Everything that is left had been deleted before: begin where the log was said to begin.
        logger.warning("%s: ends at %d, begins at %d; emptied", loader.name, log_end_offset, log_start_offset)
        for segment in loader.segments:
            segment.remove()
        loader.segments.clear()
        loader.first_recovered = 0
        loader.has_cut = True
    if not loader.segments:
        loader.segments.append(loader.open_segment(log_start_offset))
        log_end_offset = log_start_offset
        is_clean = False
    start = max(log_start_offset, loader.segments[0].base_offset)
    epochs = LeaderEpochCache(disk, folder)
    unknown_from = 0 if not epochs.load() else log_end_offset if is_clean else loader.walked_from
    producers = _load_producers(loader, start, log_end_offset, epochs, unknown_from)
    epochs.fit(start, log_end_offset)
    # Partitions that nobody uses need no descriptors.
    for segment in loader.segments:
        segment.release_indexes()
    # What lies below the recovery point is on disk; recovery keeps nothing else if the log ends there. A log
    # that has been emptied has nothing to sync but its names: without that, what was removed could come back,
    # and so could a tail that was cut.
    is_safe = is_clean or (log_end_offset in (0, recovery_point) and not loader.has_cut)
    recovered = [] if is_safe else loader.segments[loader.first_recovered :]
    return LoadedLog(loader.segments, recovered, producers, epochs, start, log_end_offset, is_clean)


def write_again(segments: Iterable[LogSegment], offset: int, name: str) -> None:
    """After a failed sync of ``segments``, of which all below ``offset`` is on disk: let the next start have
    something to sync. ``name``: the partition's, for messages.
    """
    try:
        for segment in segments:
            segment.write_again(offset)
    except (OSError, CorruptRecordError) as error:
        logger.error("%s: what could not be synced could not be written again: %s", name, error)


def _end_of(loader: _Loader, recovery_point: int, is_clean: bool) -> tuple[int, bool]:
    """The log's end offset, and whether it was found without recovery."""
    if not loader.segments:
        return 0, is_clean
    if is_clean:
        loader.check_closed(loader.segments)
        try:
            return loader.segments[-1].next_offset(), True
        except CorruptRecordError as error:
            logger.error("%s: closed cleanly, and yet %s", loader.name, error)
    return loader.recover(recovery_point), False


def _remember(loader: _Loader, producers: ProducerStateManager) -> None:
    """What a snapshot does not keep, from the log before it. Of that only headers are read."""
    end = producers.map_end_offset
    before = [segment for segment in loader.segments if segment.base_offset < end]
    for size in TAIL_SIZES:
        left = size
        places: list[tuple[LogSegment, int]] = []
        for segment in reversed(before):
            position = segment.position_before(end, left)
            places.insert(0, (segment, position))
            left -= segment.size - position
            if left <= 0:
                break
        lists = (segment.headers(position) for segment, position in places)
        try:
            if producers.remember(header for each in lists for headers in each for header in headers):
                break
        except CorruptRecordError as error:
            # Readers get to hear of it when they come to the place.
            logger.error("%s: not all batches of producers are known: %s", loader.name, error)
            break


def _load_producers(
    loader: _Loader,
    log_start_offset: int,
    log_end_offset: int,
    epochs: LeaderEpochCache,
    unknown_from: int,
) -> ProducerStateManager:
    """From the last snapshot and the batches behind it; from batches that begin at ``unknown_from`` or later
    ``epochs`` are taken in, too.
    """
    producers = ProducerStateManager(loader.disk, loader.folder, loader.name)
    bases = [segment.base_offset for segment in loader.segments]
    producers.load(log_start_offset, log_end_offset, bases, loader.names)
    start = min(producers.map_end_offset, unknown_from)
    if len(producers):
        _remember(loader, producers)
    for segment, end in zip(loader.segments, [*bases[1:], log_end_offset], strict=True):
        if end <= start:
            continue
        try:
            position = segment.position_before(start, 0) if start > segment.base_offset else 0
            for headers in segment.headers(position):
                producers.replay(headers)
                epochs.replay(headers)
        except CorruptRecordError as error:
            logger.error("%s: producers of %d are not all known: %s", loader.name, segment.base_offset, error)
    producers.map_end_offset = log_end_offset
    return producers
