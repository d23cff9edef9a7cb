"""The files of a segment that takes the place of others, and what a start makes of a crash on the way.

``.cleaned``: being written, nothing yet. ``.swap``: whole and on disk, from here on it counts; those it
replaces are renamed to ``.deleted``, then it loses its ending. Each step is on disk before the next begins.
Does not know: what is in the files. Source: Kafka's ``LocalLog.replaceSegments`` and ``LogLoader``.
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
    """Write small files of a segment to be, each by its suffix; on disk on return."""
    for suffix, content in contents:
        fd = disk.open(cleaned_file(folder, base_offset, suffix), create=True)
        try:
            disk.pwritev(fd, [content], 0)
            disk.fdatasync(fd)
        finally:
            disk.close(fd)


def cleaned_file(folder: Path, base_offset: int, suffix: str) -> Path:
    return folder / f"{base_offset:020d}{suffix}{CLEANED_SUFFIX}"


def remove_cleaned(disk: Disk, folder: Path, base_offset: int) -> None:
    """Remove what there is of a segment that will not be."""
    for suffix in _FILES:
        path = cleaned_file(folder, base_offset, suffix)
        if disk.exists(path):
            disk.unlink(path)


def announce(disk: Disk, new: LogSegment) -> None:
    """From here on the new segment counts, whatever happens."""
    new.rename(SWAP_SUFFIX)
    disk.fsync_dir(new.folder)


def put_in_place(disk: Disk, new: LogSegment, old: Sequence[LogSegment]) -> None:
    """Take the old segments' names away, then give the new one its own."""
    for segment in old:
        segment.mark_deleted()
    disk.fsync_dir(new.folder)
    new.rename("")
    disk.fsync_dir(new.folder)


def finish_replacements(
    files: OpenFiles, folder: Path, config: LogConfig, now_ms: int, names: Sequence[str]
) -> bool:
    """Before a log is opened: take back the replacements that did not come to count, finish those that did.

    Parameters
    ----------
    names:
        What lies in the folder.

    Returns
    -------
    Whether something else lies there now.

    Raises
    ------
    CorruptRecordError
        The new segment cannot be read, and the ones that it replaces may be gone.
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
    # The file of the batches last: as long as it has its ending, all of this is done again.
    for suffix in (*_FILES[1:], LOG_SUFFIX):
        path = folder / f"{own}{suffix}{SWAP_SUFFIX}"
        if disk.exists(path):
            disk.rename(path, folder / f"{own}{suffix}")
    disk.fsync_dir(folder)


def _base(name: str) -> int:
    stem = name.split(".", 1)[0]
    return int(stem) if stem.isdecimal() else -1
