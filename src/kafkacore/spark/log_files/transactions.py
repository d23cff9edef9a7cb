"""Find the aborted transactions of a log, and the offset up to which all transactions are decided.

Each transaction ends with a control batch of its producer, so the log itself has the answer. ``.txnindex``
is not used: it is absent both if no transaction was aborted and if the file was not copied. A log is
compacted only below its last stable offset. So a gap after a transaction without a marker means that the
transaction was committed.
"""

from __future__ import annotations

from typing import NamedTuple

from kafkacore.errors import CorruptRecordError
from kafkacore.record import BatchHeader, RecordBatch
from kafkacore.record.control import ControlRecordType, control_type
from kafkacore.record.segment_file import Damage, ReadAt, SegmentFile, read_headers

# Key of a control record: version, then type, both int16.


class UnreadEnd(NamedTuple):
    """A transaction from offset ``first`` to ``last`` whose end cannot be read; where that lies, and why."""

    first: int
    last: int
    place: str


class TransactionScan:
    """Goes through the files of one partition, in order of their offsets.

    Attributes
    ----------
    aborted:
        By producer id, first and last offset of each aborted transaction, and of those of ``unread_ends``.
    unread_ends:
        Transactions of which the log does not say any more how they ended.
    """

    def __init__(self) -> None:
        self.aborted: dict[int, list[tuple[int, int]]] = {}
        self.unread_ends: list[UnreadEnd] = []
        self._open: dict[int, int] = {}
        #: By producer id, the damage in which the end of its transaction may have been.
        self._doubts: dict[int, str] = {}
        self._next_offset: int | None = None

    @property
    def last_stable_offset(self) -> int | None:
        """First offset of a transaction that is not decided; ``None`` if all are."""
        return min(self._open.values(), default=None)

    @property
    def doubt(self) -> str | None:
        """Where the end of the transaction at :attr:`last_stable_offset` may have been, and what is there."""
        if not self._open:
            return None
        return self._doubts.get(min(self._open, key=lambda producer_id: self._open[producer_id]))

    def scan(self, read: ReadAt, size: int, name: str, may_be_cut: bool = True) -> None:
        """Take in the batches of a file.

        Parameters
        ----------
        name:
            Of the file, for messages.
        may_be_cut:
            Whether a file that ends within a batch is only incomplete, and not damaged.
        """
        for header in read_headers(read, size):
            if isinstance(header, Damage):
                # Offsets are missing, but not because they were decided.
                self._next_offset = None
                if not (header.is_cut and may_be_cut):
                    place = f"{name}, position {header.position}: {header.reason}"
                    self._doubts = dict.fromkeys(self._open, place) | self._doubts
                continue
            if self._open and self._next_offset is not None and _is_compacted(header, self._next_offset):
                # A log is compacted only where every transaction is decided. The marker that said how has
                # been taken away, and what is left of the transaction is not: it was committed.
                self._open.clear()
                self._doubts.clear()
            self._next_offset = header.next_offset
            if not header.is_transactional:
                continue
            if not header.is_control:
                self._open.setdefault(header.producer_id, header.base_offset)
                continue
            first = self._open.pop(header.producer_id, None)
            self._doubts.pop(header.producer_id, None)
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
    """Raises :class:`CorruptRecordError` where it does not say."""
    end = header.position + header.size_in_bytes
    batch = SegmentFile(read, size, header.position, end).next_batch()
    if not isinstance(batch, RecordBatch):
        raise CorruptRecordError("no batch" if batch is None else batch.reason)
    marker = next(iter(batch), None)
    kind = None if marker is None else control_type(marker.key)
    if kind is None:
        raise CorruptRecordError("a transaction's marker has no type")
    return kind == ControlRecordType.ABORT
