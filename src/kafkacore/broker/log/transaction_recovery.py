"""Restores the transaction indexes of a log at a start.

The entries of an index have no checksum, and after a loss of power the last entries may be missing. A replay
of the batches yields the same entries again. They replace damaged entries and restore missing entries.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kafkacore.broker.log.segment import MAX_OFFSET, TRANSACTION_INDEX_SUFFIX, LogSegment
from kafkacore.broker.log.transaction_index import AbortedTransaction
from kafkacore.errors import CorruptRecordError
from kafkacore.logs import logger_of

logger = logger_of(__name__)


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
        From this offset on, entries may be missing or wrong.

    Attributes
    ----------
    valid_until:
        Offset below which the entries of all indexes are valid. The replay must begin at or below this
        offset.
    has_entries:
        Whether there are aborted transactions.
    """

    def __init__(
        self, segments: Sequence[LogSegment], log_end_offset: int, names: Collection[str], unsynced_from: int
    ) -> None:
        ends = [*(segment.base_offset for segment in segments[1:]), log_end_offset]
        # Segment → the offset after its last record.
        self._ends = dict(zip(segments, ends, strict=True))
        self._log_end_offset = log_end_offset
        self._names = set(names)
        self._unsynced_from = unsynced_from
        self._damaged: set[LogSegment] = set()
        self.valid_until = MAX_OFFSET
        self.has_entries = False

    def check(self, log_name: str) -> None:
        """Read all index files, and find the first damaged file.

        Parameters
        ----------
        log_name:
            Name of the partition, for messages.
        """
        for segment, end in self._ends.items():
            if not self._has_file(segment):
                continue
            try:
                segment.transaction_index.check(segment.base_offset, end)
            except CorruptRecordError as error:
                # Log only a warning, because an invalid index is not necessarily damaged. The process may
                # have been killed after it wrote an entry and before it wrote the abort marker.
                name = segment.transaction_index.path.name
                logger.warning("%s: rebuilding %s: %s", log_name, name, error.reason)
                self._damaged.add(segment)
                self.valid_until = min(self.valid_until, segment.base_offset)

    def _has_file(self, segment: LogSegment) -> bool:
        # Check the list of names, so that segments without transactions do not create an index object.
        return f"{segment.base_offset:020d}{TRANSACTION_INDEX_SUFFIX}" in self._names

    def complete(
        self, segment: LogSegment, aborted: list[AbortedTransaction], replayed_from: int, replayed_to: int
    ) -> None:
        """Replace the entries of a segment by the entries from a replay. On return, the file is durable.

        Parameters
        ----------
        segment:
            Segment of the index.
        aborted:
            Transactions whose abort markers the replay has found in the segment.
        replayed_from, replayed_to:
            Range of the replayed offsets. Entries outside of this range are kept.
        """
        if not aborted and not self._has_file(segment):
            return
        index = segment.transaction_index
        is_sound = segment not in self._damaged
        kept_until = min(replayed_from, self._unsynced_from)
        if not is_sound or self._ends[segment] > kept_until:
            found = index.entries() if is_sound else []
            entries = [one for one in found if one.last_offset < kept_until]
            entries += aborted
            # If the replay stopped at damaged batches, keep the entries of markers after these batches.
            kept_from = max(replayed_to, kept_until)
            entries += [one for one in found if kept_from <= one.last_offset < self._log_end_offset]
            if entries != found or not index.has_exactly(len(entries)):
                index.replace(entries)
        self.has_entries |= len(index) > 0
