"""Restores the transaction indexes of a log at a start.

The entries of an index are not covered by a checksum, and after a loss of power the last ones may be missing.
Both are repaired by a replay of the batches, which yields the same entries again.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from kafkacore.broker.log.segment import MAX_OFFSET, TRANSACTION_INDEX_SUFFIX, LogSegment, segment_file
from kafkacore.broker.log.transaction_index import AbortedTransaction
from kafkacore.errors import CorruptRecordError

logger = logging.getLogger(__name__)


class TransactionRecovery:
    """The transaction indexes of all segments of a log.

    Parameters
    ----------
    segments:
        Segments of the log, in order.
    log_end_offset:
        Offset after the last record.
    names:
        Names of the files in the folder of the log.
    unsynced_from:
        Offset from which on entries may be missing or wrong.

    Attributes
    ----------
    valid_until:
        Offset below which the entries of all indexes are valid. The replay must begin at or below it.
    has_entries:
        Whether there are aborted transactions.
    """

    def __init__(
        self, segments: Sequence[LogSegment], log_end_offset: int, names: Collection[str], unsynced_from: int
    ) -> None:
        self._segments = segments
        self._log_end_offset = log_end_offset
        self._names = set(names)
        self._unsynced_from = unsynced_from
        # Base offset of a segment with an index file → its valid entries.
        self._entries: dict[int, list[AbortedTransaction]] = {}
        self.valid_until = MAX_OFFSET
        self.has_entries = False

    def check(self, log_name: str) -> None:
        """Read all index files, and find the first damaged one.

        Parameters
        ----------
        log_name:
            Name of the partition, for messages.
        """
        ends = [*(segment.base_offset for segment in self._segments[1:]), self._log_end_offset]
        for segment, end in zip(self._segments, ends, strict=True):
            name = segment_file(segment.folder, segment.base_offset, TRANSACTION_INDEX_SUFFIX).name
            if name not in self._names:
                continue
            self._entries[segment.base_offset] = []
            try:
                entries = segment.transaction_index.checked_entries(segment.base_offset, end)
                self._entries[segment.base_offset] = entries
            except CorruptRecordError as error:
                # This is also the case after a kill between the writes of an entry and of its marker.
                logger.warning("%s: rebuilding %s: %s", log_name, name, error.reason)
                self.valid_until = min(self.valid_until, segment.base_offset)

    def complete(
        self, segment: LogSegment, aborted: list[AbortedTransaction], replayed_from: int, replayed_to: int
    ) -> None:
        """Replace the entries of a segment by those that a replay has yielded. Durable on return.

        Parameters
        ----------
        segment:
            Segment of the index.
        aborted:
            Transactions whose abort markers the replay has found in the segment.
        replayed_from, replayed_to:
            Offsets of the replayed batches. Entries outside of them stay.
        """
        found = self._entries.get(segment.base_offset)
        if found is None and not aborted:
            return
        kept_until = min(replayed_from, self._unsynced_from)
        entries = [one for one in found or () if one.last_offset < kept_until]
        entries += aborted
        entries += [
            one
            for one in found or ()
            if max(replayed_to, kept_until) <= one.last_offset < self._log_end_offset
        ]
        if entries != found or not segment.transaction_index.has_exactly(len(entries)):
            segment.transaction_index.replace(entries)
        self.has_entries |= bool(entries)
