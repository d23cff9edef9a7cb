"""Aborted transactions of a log: Kafka's ``.txnindex`` files, and what compaction has to know of them.

Bytes of such files and batches in log order in; what of them may go out. This broker opens no transactions
yet: a folder that Apache Kafka has written may hold some. Does not know: segments, files' names. Source:
Kafka's ``TransactionIndex``, ``AbortedTxn`` and ``CleanedTransactionMetadata``.
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
    """Offsets of the first record and of the marker of a transaction that was aborted."""

    first_offset: int
    last_offset: int
    producer_id: int
    last_stable_offset: int


def read_aborted(data: bytes) -> list[AbortedTransaction]:
    """The entries of a ``.txnindex``.

    Raises
    ------
    CorruptRecordError
        Another version, or no whole number of entries.
    """
    if len(data) % _ENTRY.size:
        raise CorruptRecordError(f"transaction index of {len(data)} bytes")
    entries = []
    for version, producer_id, first, last, stable in _ENTRY.iter_unpack(data):
        if version != _VERSION:
            raise CorruptRecordError(f"transaction index of version {version}")
        entries.append(AbortedTransaction(first, last, producer_id, stable))
    return entries


def aborted_bytes(entries: Iterable[AbortedTransaction]) -> bytes:
    """Content of a ``.txnindex``."""
    return b"".join(
        _ENTRY.pack(_VERSION, one.producer_id, one.first_offset, one.last_offset, one.last_stable_offset)
        for one in entries
    )


class CleanedTransactions:
    """Follows the batches of a log in their order, and says which are of aborted transactions and which
    markers are of transactions that nothing is left of.

    Parameters
    ----------
    aborted:
        Those of the log that end at or behind its first batch.
    """

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._to_come = list(aborted)
        heapq.heapify(self._to_come)
        # Producer id → its open transaction, and whether a batch of it has been seen.
        self._aborted: dict[int, tuple[AbortedTransaction, bool]] = {}
        self._committed: set[int] = set()
        #: Aborted transactions whose markers stay, since the last look.
        self.kept: list[AbortedTransaction] = []

    def _reach(self, offset: int) -> None:
        while self._to_come and self._to_come[0].first_offset <= offset:
            one = heapq.heappop(self._to_come)
            self._aborted.setdefault(one.producer_id, (one, False))

    def is_aborted(self, batch: RecordBatch) -> bool:
        """Whether a batch of records is of an aborted transaction, so that nobody reads it."""
        self._reach(batch.last_offset)
        if not batch.is_transactional:
            return False
        found = self._aborted.get(batch.producer_id)
        if found is None:
            self._committed.add(batch.producer_id)
            return False
        self._aborted[batch.producer_id] = (found[0], True)
        return True

    def may_discard(self, marker: RecordBatch) -> bool:
        """Whether a control batch is one that nothing needs: of its transaction no batch is left."""
        self._reach(marker.last_offset)
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
