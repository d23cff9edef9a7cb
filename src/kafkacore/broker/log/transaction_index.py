"""Aborted transactions of a log: ``.txnindex`` files, and the tracking of transactions in compaction.

This broker does not open transactions yet, but a data folder written by Apache Kafka may contain them.
Follows Kafka's ``TransactionIndex``, ``AbortedTxn`` and ``CleanedTransactionMetadata``.
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterable
from typing import NamedTuple

from kafkacore.errors import CorruptRecordError
from kafkacore.record import RecordBatch
from kafkacore.record.control import ControlRecordType, control_type

# Version, producer id, first offset, last offset, last stable offset.
_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0


class AbortedTransaction(NamedTuple):
    """An entry of a transaction index."""

    #: Offset of the first record.
    first_offset: int
    #: Offset of the abort marker.
    last_offset: int
    producer_id: int
    last_stable_offset: int


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
        if version != _VERSION:
            raise CorruptRecordError(f"the transaction index has unknown version {version}")
        entries.append(AbortedTransaction(first, last, producer_id, stable))
    return entries


def aborted_bytes(entries: Iterable[AbortedTransaction]) -> bytes:
    """Return the content of a ``.txnindex`` file."""
    return b"".join(
        _ENTRY.pack(_VERSION, one.producer_id, one.first_offset, one.last_offset, one.last_stable_offset)
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
        # Producer id → its current aborted transaction, and whether a batch of it was seen.
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
        """Whether a transaction marker can be removed, because no batch of its transaction remains."""
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
