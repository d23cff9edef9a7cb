"""Replaces segments by one compacted segment. After a crash, the next start finishes or undoes this.

The new segment is written with the suffix ``.cleaned`` and renamed to ``.swap`` once it is complete and on
disk. Then the old segments are renamed to ``.deleted``, and the suffix of the new segment is removed. Each
step is synced before the next step begins. The code follows Kafka's ``LocalLog.replaceSegments`` and
``LogLoader``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kafkacore.broker.log.config import LogConfig
from kafkacore.broker.log.open_files import OpenFiles
from kafkacore.broker.log.segment import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    LogSegment,
)
from kafkacore.broker.storage.disk import Disk

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
_FILES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)


def write_files(disk: Disk, folder: Path, base_offset: int, contents: Sequence[tuple[str, bytes]]) -> None:
    """Write files of a ``.cleaned`` segment, given as pairs of suffix and content, and sync them."""
    for suffix, content in contents:
        fd = disk.open(cleaned_file(folder, base_offset, suffix), create=True)
        try:
            disk.pwritev(fd, [content], 0)
            disk.fdatasync(fd)
        finally:
            disk.close(fd)


def cleaned_file(folder: Path, base_offset: int, suffix: str) -> Path:
    """Return the path of a file of a ``.cleaned`` segment."""
    return folder / f"{base_offset:020d}{suffix}{CLEANED_SUFFIX}"


def remove_cleaned(disk: Disk, folder: Path, base_offset: int) -> None:
    """Remove the files of an unfinished ``.cleaned`` segment."""
    for suffix in _FILES:
        path = cleaned_file(folder, base_offset, suffix)
        if disk.exists(path):
            disk.unlink(path)


def begin_swap(disk: Disk, new: LogSegment) -> None:
    """Rename the new segment to ``.swap``.

    If the broker crashes after this call, the next start finishes the replacement.
    """
    new.rename(SWAP_SUFFIX)
    disk.fsync_dir(new.folder)


def finish_swap(disk: Disk, new: LogSegment, old: Sequence[LogSegment]) -> None:
    """Rename the old segments to ``.deleted``, then give the new segment its final name."""
    for segment in old:
        segment.mark_deleted()
    disk.fsync_dir(new.folder)
    new.rename("")
    disk.fsync_dir(new.folder)


def finish_replacements(
    files: OpenFiles, folder: Path, config: LogConfig, now_ms: int, names: Sequence[str]
) -> bool:
    """Undo or finish the replacements that a crash has interrupted. Call this before a log is opened.

    Parameters
    ----------
    files:
        Cache of open files.
    folder:
        Folder of the partition.
    config:
        Configuration of the topic.
    now_ms:
        Wall-clock time in milliseconds since the epoch.
    names:
        Names of the files in the folder.

    Returns
    -------
    bool
        Whether files were renamed or removed.

    Raises
    ------
    CorruptRecordError
        The new segment is damaged, and the old segments may already be removed.
    """
    disk = files.disk
    cleaned = {_base(name) for name in names if name.endswith(CLEANED_SUFFIX)}
    swaps = {_base(name) for name in names if name.endswith(SWAP_SUFFIX)}
    for name in names:
        is_taken_back = name.endswith(SWAP_SUFFIX) and _base(name) in cleaned
        if name.endswith(CLEANED_SUFFIX) or is_taken_back:
            disk.unlink(folder / name)
    for base_offset in sorted(swaps - cleaned):
        _finish(files, folder, base_offset, config, now_ms)
    if cleaned or swaps:
        disk.fsync_dir(folder)
    return bool(cleaned or swaps)


def _finish(files: OpenFiles, folder: Path, base_offset: int, config: LogConfig, now_ms: int) -> None:
    disk = files.disk
    own = f"{base_offset:020d}"
    if disk.exists(folder / f"{own}{LOG_SUFFIX}{SWAP_SUFFIX}"):
        segment = LogSegment(files, folder, base_offset, config, now_ms, SWAP_SUFFIX)
        try:
            end = max(segment.next_offset(), base_offset + 1)
        finally:
            segment.close()
        for name in disk.listdir(folder):
            path = Path(name)
            if path.suffix in _FILES and path.stem.isdecimal() and base_offset <= int(path.stem) < end:
                disk.unlink(folder / name)
        disk.fsync_dir(folder)
    # The .log file is renamed last: while it still has the suffix, the next start repeats all steps.
    for suffix in (*_FILES[1:], LOG_SUFFIX):
        path = folder / f"{own}{suffix}{SWAP_SUFFIX}"
        if disk.exists(path):
            disk.rename(path, folder / f"{own}{suffix}")
    disk.fsync_dir(folder)


def _base(name: str) -> int:
    stem = name.split(".", 1)[0]
    return int(stem) if stem.isdecimal() else -1
