"""Find the aborted transactions of a log, and its last stable offset.

Each transaction ends with a control batch of its producer, so the segment files contain all that is needed.
The index of aborted transactions (``.txnindex``) is not used. It is missing if no transaction was aborted,
but also if it was not copied. A log is compacted only below its last stable offset. So a gap in the offsets
after a transaction without a marker means that the transaction was committed.
"""

from __future__ import annotations

from typing import NamedTuple

from kafkacore.errors import CorruptRecordError
from kafkacore.record import BatchHeader, RecordBatch
from kafkacore.record.control import ControlRecordType, control_type
from kafkacore.record.segment_file import Damage, ReadAt, SegmentFile, read_headers


class UnreadEnd(NamedTuple):
    """Transaction from offset ``first`` to ``last`` whose marker cannot be read.

    ``place`` describes the position of the marker and why it cannot be read.
    """

    first: int
    last: int
    place: str


class TransactionScan:
    """Scan of the files of one partition, in the order of their offsets.

    Attributes
    ----------
    aborted:
        First and last offset of each aborted transaction, by producer id. Includes ``unread_ends``.
    unread_ends:
        Transactions whose marker cannot be read.
    """

    def __init__(self) -> None:
        self.aborted: dict[int, list[tuple[int, int]]] = {}
        self.unread_ends: list[UnreadEnd] = []
        self._open: dict[int, int] = {}
        #: Description of the damage that may have hidden the marker of an open transaction, by producer id.
        self._possible_ends: dict[int, str] = {}
        self._next_offset: int | None = None

    @property
    def last_stable_offset(self) -> int | None:
        """First offset of the earliest open transaction; ``None`` if all transactions have ended."""
        return min(self._open.values(), default=None)

    @property
    def possible_end(self) -> str | None:
        """Damage that may have hidden the marker of the transaction at :attr:`last_stable_offset`."""
        if not self._open:
            return None
        return self._possible_ends.get(min(self._open, key=lambda producer_id: self._open[producer_id]))

    def scan(self, read: ReadAt, size: int, name: str, may_be_cut: bool = True) -> None:
        """Scan the batches of a file.

        Parameters
        ----------
        read:
            Function that reads from a position of the file.
        size:
            Size of the file in bytes.
        name:
            Name of the file, for messages.
        may_be_cut:
            Whether a file that ends within a batch is treated as incomplete rather than damaged.
        """
        for header in read_headers(read, size):
            if isinstance(header, Damage):
                # The damage may hide batches, so a gap in the offsets here is not a sign of compaction.
                self._next_offset = None
                if not (header.is_cut and may_be_cut):
                    place = f"{name}, position {header.position}: {header.reason}"
                    self._possible_ends = dict.fromkeys(self._open, place) | self._possible_ends
                continue
            if self._open and self._next_offset is not None and _is_compacted(header, self._next_offset):
                # Compaction happens only below the last stable offset, so every open transaction has ended.
                # Compaction removed the markers but kept the records, so the transactions were committed.
                self._open.clear()
                self._possible_ends.clear()
            self._next_offset = header.next_offset
            if not header.is_transactional:
                continue
            if not header.is_control:
                self._open.setdefault(header.producer_id, header.base_offset)
                continue
            first = self._open.pop(header.producer_id, None)
            self._possible_ends.pop(header.producer_id, None)
            if first is None:
                continue
            try:
                is_aborted = _is_abort(read, size, header)
            except CorruptRecordError as error:
                is_aborted = True
                place = f"{name}, position {header.position}: {error.reason}"
                self.unread_ends.append(UnreadEnd(first, header.last_offset, place))
            if is_aborted:
                self.aborted.setdefault(header.producer_id, []).append((first, header.last_offset))


def _is_compacted(header: BatchHeader, expected_offset: int) -> bool:
    is_short = 0 <= header.record_count < header.last_offset - header.base_offset + 1
    return is_short or header.base_offset > expected_offset


def _is_abort(read: ReadAt, size: int, header: BatchHeader) -> bool:
    """Return whether a control batch is an abort marker. Raise CorruptRecordError for an unreadable batch."""
    end = header.position + header.size_in_bytes
    batch = SegmentFile(read, size, header.position, end).next_batch()
    if not isinstance(batch, RecordBatch):
        raise CorruptRecordError("the file has no batch at this position" if batch is None else batch.reason)
    marker = next(iter(batch), None)
    kind = None if marker is None else control_type(marker.key)
    if kind is None:
        raise CorruptRecordError("the transaction marker has no type")
    return kind == ControlRecordType.ABORT
