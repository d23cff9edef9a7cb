"""Aborted transactions of a log: ``.txnindex`` files, and the tracking of transactions in compaction.

The code follows Kafka's ``TransactionIndex``, ``AbortedTxn`` and ``CleanedTransactionMetadata``.
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kafkacore.broker.log._transaction_index import ENTRY_SIZE, check_entries, find_aborted
from kafkacore.errors import CorruptRecordError
from kafkacore.record.control import ControlRecordType, control_type

if TYPE_CHECKING:
    from kafkacore.broker.log.open_files import LogFile, OpenFiles
    from kafkacore.record import RecordBatch

# Fields of an entry: version, producer id, first offset, last offset, last stable offset.
_ENTRY = struct.Struct(">hqqqq")
#: Version of the entries.
ABORTED_VERSION = 0
assert _ENTRY.size == ENTRY_SIZE
#: Number of entries that one read of a file returns.
_WINDOW_ENTRIES = 4096


class AbortedTransaction(NamedTuple):
    """An entry of a transaction index."""

    #: Offset of the first record.
    first_offset: int
    #: Offset of the abort marker.
    last_offset: int
    producer_id: int
    #: Last stable offset of the log once the abort marker is appended.
    last_stable_offset: int


class TransactionIndex:
    """The aborted transactions of a segment, in the order of their markers. Callers hold the lock of the log.

    The first append creates the file. The file is opened when it is used.

    Parameters
    ----------
    files:
        Cache of open files.
    path:
        Path of the file, which may be missing.
    """

    __slots__ = ("_count", "_file", "_files", "is_made")

    def __init__(self, files: OpenFiles, path: Path) -> None:
        self._files = files
        self._file: LogFile = files.file(path, creates=True)
        size = files.size(path)
        #: Whether the file exists.
        self.is_made = size is not None
        self._count = (size or 0) // _ENTRY.size

    def __len__(self) -> int:
        return self._count

    @property
    def path(self) -> Path:
        """Path of the file."""
        return self._file.path

    # ---- Write ----------------------------------------------------------------------------------------

    def append(self, one: AbortedTransaction) -> None:
        """Add an entry. Its abort marker must come after the marker of the last entry."""
        self._file.pwritev([aborted_bytes([one])], self._count * _ENTRY.size)
        self.is_made = True
        self._count += 1

    def truncate(self, count: int) -> None:
        """Remove everything after the first ``count`` entries, including an incomplete entry."""
        if self.is_made or self._file.exists():
            self._file.truncate(count * _ENTRY.size)
        self._count = count

    def replace(self, entries: list[AbortedTransaction]) -> None:
        """Replace the content of the file. The new content is durable on return."""
        self._file.release()
        self._files.disk.write_file(self.path, aborted_bytes(entries))
        self.is_made = True
        self._count = len(entries)

    def rewrite(self) -> None:
        """Write the same content again after a failed sync, so that the next sync writes it to disk."""
        if self.is_made:
            self._file.pwritev([self._file.pread(self._count * _ENTRY.size, 0)], 0)

    def mark_unsynced(self) -> None:
        """Treat the file as not synced, because parts of the file may be missing on disk."""
        self._file.is_unsynced = self.is_made

    def flush(self) -> None:
        """Sync the file if it was written since the last sync."""
        if self._file.is_unsynced:
            self._file.fdatasync()

    # ---- Read -----------------------------------------------------------------------------------------

    def collect(self, start_offset: int, end_offset: int) -> tuple[list[AbortedTransaction], bool]:
        """Return the aborted transactions with records in a range, and whether the search is complete.

        If the search is complete, later segments have no such transaction and need not be searched.

        Parameters
        ----------
        start_offset, end_offset:
            First offset of the range, and the offset after it.

        Raises
        ------
        CorruptRecordError
            The file is damaged.
        """
        found: list[AbortedTransaction] = []
        index = self._first_from(start_offset)
        while index < self._count:
            window = self._read(index, _WINDOW_ENTRIES)
            positions, is_complete = find_aborted(window, start_offset, end_offset)
            found += [_entry_at(window, position) for position in positions]
            if is_complete:
                return found, True
            index += _WINDOW_ENTRIES
        return found, False

    def _first_from(self, offset: int) -> int:
        """Return the index of the first entry whose marker is at or after ``offset``."""
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            if _entry_at(self._read(middle, 1), 0).last_offset < offset:
                low = middle + 1
            else:
                high = middle
        return low

    def _read(self, index: int, count: int) -> bytes:
        size = min(count, self._count - index) * _ENTRY.size
        data = self._file.pread(size, index * _ENTRY.size)
        if len(data) < size:
            raise CorruptRecordError(f"{self.path.name} ends before entry {index + count - 1}")
        return data

    def check(self, base_offset: int, end_offset: int) -> None:
        """Check all entries.

        Parameters
        ----------
        base_offset, end_offset:
            Base offset of the segment, and the offset after its last record.

        Raises
        ------
        CorruptRecordError
            An entry is invalid or incomplete, its marker is not in the segment, or the markers are not in
            order.
        """
        check_entries(self._content(), base_offset, end_offset)

    def entries(self) -> list[AbortedTransaction]:
        """Return all entries. Raise the same errors as :func:`read_aborted`."""
        return read_aborted(self._content())

    def _content(self) -> bytes:
        return self._files.disk.read_file(self.path) if self.is_made else b""

    def has_exactly(self, count: int) -> bool:
        """Whether the file has the size of ``count`` entries."""
        return (self._files.size(self.path) or 0) == count * _ENTRY.size

    # ---- Lifecycle ------------------------------------------------------------------------------------

    def hold(self) -> None:
        """Keep the file open, if it exists, until a matching call of :meth:`release_hold`."""
        if self.is_made:
            self._file.hold()

    def release_hold(self) -> None:
        """Undo one call of :meth:`hold`, so that the file may be closed."""
        if self.is_made:
            self._file.release_hold()

    def release(self) -> None:
        """Close the descriptor. The next use opens the file again."""
        self._file.release()

    def move(self, path: Path) -> None:
        """Rename the file, if it exists."""
        self._file.move(path, must_exist=False)

    def remove(self) -> None:
        """Close and remove the file, if it exists."""
        self._file.release()
        if self._file.exists():
            self._files.disk.unlink(self.path)


def _entry_at(data: bytes, position: int) -> AbortedTransaction:
    _, producer_id, first, last, stable = _ENTRY.unpack_from(data, position)
    return AbortedTransaction(first, last, producer_id, stable)


def read_aborted(data: bytes) -> list[AbortedTransaction]:
    """Parse a ``.txnindex`` file.

    Raises
    ------
    CorruptRecordError
        The version is unknown, or the last entry is incomplete.
    """
    if len(data) % _ENTRY.size:
        raise CorruptRecordError(
            f"the transaction index has {len(data)} bytes, not a multiple of {_ENTRY.size}"
        )
    entries = []
    for version, producer_id, first, last, stable in _ENTRY.iter_unpack(data):
        if version != ABORTED_VERSION:
            raise CorruptRecordError(f"the transaction index has unknown version {version}")
        entries.append(AbortedTransaction(first, last, producer_id, stable))
    return entries


def aborted_bytes(entries: Iterable[AbortedTransaction]) -> bytes:
    """Return the content of a ``.txnindex`` file."""
    return b"".join(
        _ENTRY.pack(
            ABORTED_VERSION, one.producer_id, one.first_offset, one.last_offset, one.last_stable_offset
        )
        for one in entries
    )


class CleanedTransactions:
    """Tracks transactions while compaction passes over the batches of a log in order.

    It determines which batches belong to aborted transactions, and which markers belong to transactions
    without any remaining batch.

    Parameters
    ----------
    aborted:
        Aborted transactions of the log whose marker is at or after the first batch.
    """

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._pending = list(aborted)
        heapq.heapify(self._pending)
        # Producer id → the producer's current aborted transaction, and whether a batch of that transaction
        # was read.
        self._aborted: dict[int, tuple[AbortedTransaction, bool]] = {}
        self._committed: set[int] = set()
        #: Aborted transactions whose markers are kept. The caller empties the list after each segment.
        self.kept: list[AbortedTransaction] = []

    def _advance_to(self, offset: int) -> None:
        while self._pending and self._pending[0].first_offset <= offset:
            one = heapq.heappop(self._pending)
            self._aborted.setdefault(one.producer_id, (one, False))

    def is_aborted(self, batch: RecordBatch) -> bool:
        """Whether a batch belongs to an aborted transaction and can be removed."""
        self._advance_to(batch.last_offset)
        if not batch.is_transactional:
            return False
        found = self._aborted.get(batch.producer_id)
        if found is None:
            self._committed.add(batch.producer_id)
            return False
        self._aborted[batch.producer_id] = (found[0], True)
        return True

    def may_discard(self, marker: RecordBatch) -> bool:
        """Whether no batch of a marker's transaction remains, so that the marker can be removed."""
        self._advance_to(marker.last_offset)
        record = next(iter(marker), None)
        if record is None:
            return True
        kind = control_type(record.key)
        if kind == ControlRecordType.ABORT:
            found = self._aborted.pop(marker.producer_id, None)
            if found is None or not found[1]:
                return True
            self.kept.append(found[0])
            return False
        if kind == ControlRecordType.COMMIT:
            was_seen = marker.producer_id in self._committed
            self._committed.discard(marker.producer_id)
            return not was_seen
        return False
