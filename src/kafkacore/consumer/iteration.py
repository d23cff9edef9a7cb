"""``for record in consumer``: a poll's records in, one after the other out, with where that leaves us.

Does not know: fetching, time-outs.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkacore.consumer._record import ConsumerRecord
from kafkacore.consumer.subscription_state import FetchPosition
from kafkacore.structs import TopicPartition


class RecordIteration:
    """Records that a poll has given and the loop has not yet taken.

    The consumer's own positions are ahead of the loop, which lets it fetch on; :meth:`rewound` gives the
    loop's.
    """

    __slots__ = ("_current", "_remaining", "_taken")

    def __init__(self, records: Mapping[TopicPartition, list[ConsumerRecord]]) -> None:
        self._remaining = list(records.items())[::-1]
        self._current: tuple[TopicPartition, list[ConsumerRecord]] | None = None
        self._taken = 0

    def next_record(self) -> ConsumerRecord | None:
        """The next record, ``None`` at the end."""
        while self._current is None or self._taken == len(self._current[1]):
            if not self._remaining:
                self._current = None
                return None
            self._current = self._remaining.pop()
            self._taken = 0
        record = self._current[1][self._taken]
        self._taken += 1
        return record

    def rewound(self) -> dict[TopicPartition, FetchPosition]:
        """Partitions of which the loop has not taken all, and the position behind what it took."""
        positions = {
            tp: FetchPosition(records[0].offset, records[0].leader_epoch) for tp, records in self._remaining
        }
        if self._current is not None and self._taken < len(self._current[1]):
            tp, records = self._current
            record = records[self._taken]
            positions[tp] = FetchPosition(record.offset, record.leader_epoch)
        return positions
