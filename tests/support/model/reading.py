"""A log with transactions, gaps and one corrupt batch, drawn by Hypothesis, with the visible records.

It is slow and simple: a list of visible offsets, and the place of the corrupt batch.
"""

from dataclasses import dataclass, field

from hypothesis import strategies as st
from model.fetch_log import ABORT, COMMIT, FetchLog, batch, marker, with_bad_crc

PRODUCERS = (11, 12)


class TransactionLog(FetchLog):
    """Returns the aborted transactions that overlap the fetched range, as a broker does."""

    def __init__(self):
        super().__init__()
        #: Producer id, first offset, offset of the marker.
        self.all_aborted = []

    def read(self, offset, max_bytes=1 << 30):
        self.aborted = [(producer, first) for producer, first, last in self.all_aborted if last >= offset]
        return super().read(offset, max_bytes)


@dataclass
class DrawnLog:
    """A log, the visible offsets by isolation level, and the first and last offset of the corrupt batch."""

    log: TransactionLog
    uncommitted: list = field(default_factory=list)
    committed: list = field(default_factory=list)
    broken: tuple | None = None

    def visible(self, is_committed):
        """Return the visible offsets in order, without those of the corrupt batch."""
        first, last = self.broken or (0, -1)
        seen = self.committed if is_committed else self.uncommitted
        return [offset for offset in sorted(seen) if not first <= offset <= last]


@st.composite
def logs(draw):
    """Draw a :class:`DrawnLog` in which all transactions have ended."""
    drawn, at = DrawnLog(TransactionLog()), 0
    open_since, pending = {}, {}
    breakable = []
    for _ in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(["plain", "plain", "transactional", "transactional", "end"]))
        if kind == "end":
            at = _end(draw, drawn, at, open_since, pending)
            continue
        size = draw(st.integers(1, 5))
        kept = sorted(draw(st.sets(st.integers(0, size - 1), max_size=size)))
        offsets = [at + delta for delta in kept]
        producer = draw(st.sampled_from(PRODUCERS)) if kind == "transactional" else -1
        data = batch(
            [(offset, None, b"v%d" % offset) for offset in offsets],
            base_offset=at,
            last_offset=at + size - 1,
            producer_id=producer,
            transactional=producer >= 0,
        )
        breakable.append((len(drawn.log.batches), at, at + size - 1))
        drawn.log.append(data)
        drawn.uncommitted += offsets
        if producer < 0:
            drawn.committed += offsets
        else:
            open_since.setdefault(producer, at)
            pending.setdefault(producer, []).extend(offsets)
        at += size
    while open_since:
        at = _end(draw, drawn, at, open_since, pending)
    if breakable and draw(st.booleans()):
        index, first, last = draw(st.sampled_from(breakable))
        drawn.log.batches[index] = with_bad_crc(drawn.log.batches[index])
        drawn.broken = (first, last)
    return drawn


def _end(draw, drawn, at, open_since, pending):
    """End a transaction if one is open, and return the next offset."""
    if not open_since:
        return at
    producer = draw(st.sampled_from(sorted(open_since)))
    kind = draw(st.sampled_from([COMMIT, ABORT]))
    drawn.log.append(marker(at, producer, kind))
    if kind == COMMIT:
        drawn.committed += pending.pop(producer)
    else:
        pending.pop(producer)
        drawn.log.all_aborted.append((producer, open_since[producer], at))
    del open_since[producer]
    return at + 1
