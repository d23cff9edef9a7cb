"""Opens the log of a partition, and recovers it after a crash. The code follows Kafka's ``LogLoader``."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from os.path import splitext
from pathlib import Path
from typing import NamedTuple

from kafkacore.broker.log.config import LogConfig
from kafkacore.broker.log.epochs import LeaderEpochCache
from kafkacore.broker.log.open_files import OpenFiles
from kafkacore.broker.log.producer_state import ProducerStateManager
from kafkacore.broker.log.replacement import CLEANED_SUFFIX, SWAP_SUFFIX, finish_replacements
from kafkacore.broker.log.segment import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    MAX_OFFSET,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    LogSegment,
)
from kafkacore.broker.log.segment_recovery import recover_segment
from kafkacore.broker.log.transaction_index import AbortedTransaction
from kafkacore.broker.log.transaction_recovery import TransactionRecovery
from kafkacore.errors import CorruptRecordError
from kafkacore.logs import logger_of

logger = logger_of(__name__)

#: Suffixes of files that a crash may leave behind and that are not part of the log.
_LEFTOVERS = (DELETED_SUFFIX, ".tmp")
#: Suffixes of the files that a compaction replaces or creates.
_OF_COMPACTION = (CLEANED_SUFFIX, SWAP_SUFFIX, DELETED_SUFFIX)
_INDEX_SUFFIXES = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)

#: Numbers of bytes before a snapshot in which recovery searches for the producers' recent batches. Recovery
#: tries the next number if it has not found all batches.
TAIL_SIZES = (1 << 20, 4 << 20, 16 << 20)


class LoadedLog(NamedTuple):
    """Result of :func:`load_log`."""

    segments: list[LogSegment]
    #: Segments that must be synced before the first read.
    recovered: list[LogSegment]
    producers: ProducerStateManager
    epochs: LeaderEpochCache
    log_start_offset: int
    log_end_offset: int
    #: Whether all files and their names are on disk.
    is_synced: bool
    #: Whether there are aborted transactions.
    has_aborted: bool


class _Loader:
    def __init__(
        self,
        files: OpenFiles,
        folder: Path,
        name: str,
        config: LogConfig,
        compacted_to: int,
        now_ms: int,
        is_same_boot: bool,
    ) -> None:
        self.files = files
        self.disk = files.disk
        self.folder = folder
        self.name = name
        self.config = config
        self.compacted_to = compacted_to
        self.now_ms = now_ms
        self.is_same_boot = is_same_boot
        self.segments: list[LogSegment] = []
        #: Names of the files in the folder, including files that a crash has left behind.
        self.names: list[str] = []
        #: Base offsets of the segments whose index files were missing or damaged.
        self.without_index: set[int] = set()
        #: Index of the first segment that recovery has read.
        self.first_recovered = 0
        #: Offset at which recovery has begun to read the segment at ``first_recovered``.
        self.walked_from = 0
        #: From this offset on, entries of the transaction indexes may be missing or wrong, because they were
        #: not on disk when the machine stopped.
        self.unsynced_from = MAX_OFFSET
        #: Offset of the first marker at or after ``unsynced_from``.
        self.first_unsynced_marker = MAX_OFFSET
        #: Whether data was removed. Until the removal is synced, a loss of power may bring the data back.
        self.has_truncated = False

    def open_segments(self) -> None:
        """Remove leftovers and orphaned index files, then open every segment in order."""
        found = names = self.names = self.disk.listdir(self.folder)
        if finish_replacements(self.files, self.folder, self.config, self.now_ms, names):
            names = self.names = self.disk.listdir(self.folder)
        for name in names:
            # Do not use Path, because it is slow and a start does this for every file.
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
        self._allow_compaction_of(found)

    def _allow_compaction_of(self, names: list[str]) -> None:
        """Raise ``compacted_to`` to the end of the segments that a compaction was replacing.

        Apache Kafka may compact records after its last written recovery point. It keeps the replaced segments
        for a minute, until it has written a newer recovery point.
        """
        bases = [segment.base_offset for segment in self.segments]
        for name in names:
            stem, suffix = name.split(".", 1)[0], splitext(name)[1]
            if self.config.compacts and suffix in _OF_COMPACTION and stem.isdecimal():
                after = bisect_right(bases, int(stem))
                if after < len(bases):
                    self.compacted_to = max(self.compacted_to, bases[after])

    def open_segment(self, base_offset: int, has_indexes: bool = True) -> LogSegment:
        try:
            segment = LogSegment(self.files, self.folder, base_offset, self.config, self.now_ms)
        except CorruptRecordError as error:
            logger.warning("%s: rebuilding a damaged index: %s", self.name, error.reason)
            LogSegment.remove_indexes(self.disk, self.folder, base_offset)
            segment = LogSegment(self.files, self.folder, base_offset, self.config, self.now_ms)
            has_indexes = False
        if not has_indexes and segment.size:
            self.without_index.add(base_offset)
        return segment

    def check_closed(self, segments: list[LogSegment]) -> None:
        """Check the indexes of segments whose batches are all on disk."""
        for segment in segments:
            try:
                if segment.base_offset in self.without_index:
                    segment.rebuild_indexes()
                else:
                    segment.check_indexes()
            except CorruptRecordError as error:
                # A read of the damaged batch will fail. The batches after it stay readable.
                logger.error("%s: segment %s is damaged: %s", self.name, segment.base_offset, error)
            segment.release_indexes()

    def recover(self, recovery_point: int) -> int:
        """Recover the log from the segment that contains ``recovery_point`` on. Return the log end offset."""
        first = max((i for i, s in enumerate(self.segments) if s.base_offset <= recovery_point), default=0)
        if not self.is_same_boot:
            self.unsynced_from = recovery_point
        self.check_closed(self.segments[:first])
        self.first_recovered = first
        end = self.walked_from = self.segments[first].base_offset
        for index in range(first, len(self.segments)):
            segment = self.segments[index]
            is_compacted = end < segment.base_offset <= self.compacted_to
            if segment.base_offset != end and not is_compacted:
                # The records before this segment were not on disk when the power was lost, so the later
                # records were not synced either.
                self.remove_from(index, f"segment {segment.base_offset} does not begin at offset {end}")
                break
            size = segment.size
            end, damage, walked_from, first_marker = recover_segment(
                segment, recovery_point, trusts_indexes=self.is_same_boot
            )
            if not self.is_same_boot:
                self.first_unsynced_marker = min(self.first_unsynced_marker, first_marker)
            if index == first:
                self.walked_from = walked_from
            if damage is not None:
                self.has_truncated = True
                cut_bytes = size - segment.size
                self.remove_from(index + 1, f"{damage}; truncated the segment by {cut_bytes} bytes")
                break
        if end < recovery_point:
            logger.error(
                "%s: records are missing: the log ends at offset %d, but was on disk up to %d",
                self.name,
                end,
                recovery_point,
            )
        return end

    def remove_from(self, index: int, why: str) -> None:
        later = self.segments[index:]
        logger.warning("%s: recovery: %s; removed %d segments", self.name, why, len(later))
        self.has_truncated = True
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
    compacted_to: int = 0,
    log_start_offset: int,
    is_clean: bool,
    now_ms: int,
    is_same_boot: bool = False,
) -> LoadedLog:
    """Open the log in ``folder``, and recover it if it was not closed.

    Parameters
    ----------
    files:
        Cache of open files.
    folder:
        Folder of the partition.
    name:
        Name of the partition, for messages.
    config:
        Configuration of the topic.
    recovery_point, log_start_offset:
        Offsets from the checkpoint files; 0 if the files do not have the partition.
    compacted_to:
        Offset below which compaction may have removed records. Recovery treats later records that are missing
        as lost.
    is_clean:
        Whether the last process that used the log shut down cleanly.
    now_ms:
        Wall-clock time in milliseconds since the epoch.
    is_same_boot:
        Whether the machine has been running since the last process opened the log. If so, no write was lost.

    Returns
    -------
    LoadedLog
        The segments and the state of the log.

    Raises
    ------
    CorruptRecordError
        There is damage below the recovery point, followed by valid batches. Recovery does not remove these
        batches.
    OSError
        A file cannot be read or written.
    """
    loader = _Loader(files, folder, name, config, compacted_to, now_ms, is_same_boot)
    try:
        return _load(loader, recovery_point, log_start_offset, is_clean)
    except BaseException:
        loader.close()
        raise


def _load(loader: _Loader, recovery_point: int, log_start_offset: int, is_clean: bool) -> LoadedLog:
    disk, folder = loader.disk, loader.folder
    loader.open_segments()
    log_end_offset, is_clean = _find_end_offset(loader, recovery_point, is_clean)
    if loader.segments and log_end_offset < log_start_offset:
        # All remaining records had been deleted already, so start with an empty log.
        logger.warning(
            "%s: log end offset %d is below log start offset %d; removed all segments",
            loader.name,
            log_end_offset,
            log_start_offset,
        )
        for segment in loader.segments:
            segment.remove()
        loader.segments.clear()
        loader.first_recovered = 0
        loader.has_truncated = True
    if not loader.segments:
        loader.segments.append(loader.open_segment(log_start_offset))
        log_end_offset = log_start_offset
        is_clean = False
    start = max(log_start_offset, loader.segments[0].base_offset)
    epochs = LeaderEpochCache(disk, folder)
    unknown_from = 0 if not epochs.load() else log_end_offset if is_clean else loader.walked_from
    transactions = TransactionRecovery(loader.segments, log_end_offset, loader.names, loader.unsynced_from)
    transactions.check(loader.name)
    producers = _load_producers(loader, start, log_end_offset, epochs, unknown_from, transactions)
    epochs.truncate_to_bounds(start, log_end_offset)
    # Close the indexes, because unused partitions need no descriptors.
    for segment in loader.segments:
        segment.release_indexes()
    # A log that ends at the recovery point needs no sync unless recovery has removed data. After a removal,
    # the new sizes and names must be synced, because a loss of power could bring the data back.
    is_safe = is_clean or (log_end_offset in (0, recovery_point) and not loader.has_truncated)
    recovered = [] if is_safe else loader.segments[loader.first_recovered :]
    has_aborted = transactions.has_entries
    return LoadedLog(
        loader.segments, recovered, producers, epochs, start, log_end_offset, is_clean, has_aborted
    )


def rewrite_unsynced(segments: Iterable[LogSegment], offset: int, name: str) -> None:
    """Rewrite the batches from ``offset`` on after a failed sync, so that the next sync writes them.

    Parameters
    ----------
    segments:
        Segments whose sync failed.
    offset:
        Offset below which all records are on disk.
    name:
        Name of the partition, for messages.
    """
    try:
        for segment in segments:
            segment.rewrite_unsynced(offset)
    except (OSError, CorruptRecordError) as error:
        logger.error("%s: failed to rewrite unsynced batches: %s", name, error)


def _find_end_offset(loader: _Loader, recovery_point: int, is_clean: bool) -> tuple[int, bool]:
    """Return the log end offset, and whether it was found without recovery."""
    if not loader.segments:
        return 0, is_clean
    if is_clean:
        loader.check_closed(loader.segments)
        try:
            return loader.segments[-1].next_offset(), True
        except CorruptRecordError as error:
            logger.error(
                "%s: recovering the log, which is damaged despite a clean shutdown: %s", loader.name, error
            )
    return loader.recover(recovery_point), False


def _restore_recent_batches(loader: _Loader, producers: ProducerStateManager) -> None:
    """Restore the producers' recent batches before the snapshot by reading the log.

    The snapshot has only the last batch of each producer. Only batch headers are read.
    """
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
            if producers.restore_recent_batches(
                header for each in lists for headers in each for header in headers
            ):
                break
        except CorruptRecordError as error:
            # Only log the error here. A consumer that reads the damaged batch will get an error as well.
            logger.error("%s: failed to restore the recent batches of producers: %s", loader.name, error)
            break


def _load_producers(
    loader: _Loader,
    log_start_offset: int,
    log_end_offset: int,
    epochs: LeaderEpochCache,
    unknown_from: int,
    transactions: TransactionRecovery,
) -> ProducerStateManager:
    """Restore producer state from a snapshot and the batches after it, and complete the transaction indexes.

    The batches from offset ``unknown_from`` on are also added to ``epochs``.
    """
    producers = ProducerStateManager(loader.disk, loader.folder, loader.name)
    bases = [segment.base_offset for segment in loader.segments]
    latest = min(transactions.valid_until, loader.first_unsynced_marker)
    producers.load(log_start_offset, log_end_offset, bases, loader.names, latest)
    replayed_from = producers.map_end_offset
    start = min(replayed_from, unknown_from)
    if len(producers):
        _restore_recent_batches(loader, producers)
    for segment, end in zip(loader.segments, [*bases[1:], log_end_offset], strict=True):
        aborted: list[AbortedTransaction] = []
        replayed_to = end
        try:
            if end > start:
                position = segment.position_before(start, 0) if start > segment.base_offset else 0
                for headers in segment.headers(position):
                    aborted += producers.replay(headers, segment.batch)
                    epochs.replay(headers)
        except CorruptRecordError as error:
            replayed_to = producers.map_end_offset
            logger.error(
                "%s: failed to restore producer state from segment %d: %s",
                loader.name,
                segment.base_offset,
                error,
            )
        transactions.complete(segment, aborted, replayed_from, replayed_to)
    producers.map_end_offset = log_end_offset
    return producers
