"""The last records of partitions whose offsets have gaps, as of transactions and compaction."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafkacore import ConsumerRecord
from kafkacore.cli.last_records import last_records
from kafkacore.structs import TopicPartition

TP, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


class Consumer:
    """Reads partitions that are given as records by offset, with the first and the end offset."""

    def __init__(self, logs):
        self.logs = logs
        self.positions = {}
        self.paused = set()

    def beginning_offsets(self, partitions):
        return {tp: self.logs[tp][0] for tp in partitions}

    def end_offsets(self, partitions):
        return {tp: self.logs[tp][1] for tp in partitions}

    def pause(self, *partitions):
        self.paused |= set(partitions)

    def resume(self, *partitions):
        self.paused -= set(partitions)

    def seek(self, tp, offset):
        self.positions[tp] = offset

    def position(self, tp):
        return self.positions[tp]

    def poll(self, timeout_ms):
        """Return up to two records of each partition, or move over a gap at the end."""
        found = {}
        for tp in self.logs.keys() - self.paused:
            records = [r for r in self.logs[tp][2] if r.offset >= self.positions[tp]][:2]
            self.positions[tp] = records[-1].offset + 1 if records else self.logs[tp][1]
            if records:
                found[tp] = records
        return found


def log(tp, first, end, stamps):
    """Return a log with a timestamp for each offset that has a record."""
    return (
        first,
        end,
        [ConsumerRecord(*tp, 0, offset, stamp, 0, None, b"") for offset, stamp in stamps.items()],
    )


def places(records):
    return [(record.partition, record.offset) for record in records]


def test_records_of_partitions_are_merged_by_time():
    consumer = Consumer(
        {TP: log(TP, 0, 4, {0: 10, 1: 30, 2: 25, 3: 60}), OTHER: log(OTHER, 5, 7, {5: 20, 6: 50})}
    )
    # Record 2 is older than record 1, but stays after it.
    assert places(last_records(consumer, [TP, OTHER], 4, 0)) == [(0, 1), (0, 2), (1, 6), (0, 3)]
    assert consumer.positions == {TP: 4, OTHER: 7}
    assert consumer.paused == set()


def test_offset_without_a_record_does_not_count():
    consumer = Consumer({TP: log(TP, 0, 1000, {0: 1, 3: 2, 990: 3}), OTHER: log(OTHER, 8, 8, {})})
    assert places(last_records(consumer, [TP, OTHER], 2, 0)) == [(0, 3), (0, 990)]
    assert places(last_records(consumer, [TP, OTHER], 99, 0)) == [(0, 0), (0, 3), (0, 990)]


@given(st.sets(st.integers(0, 60)), st.integers(1, 20), st.integers(0, 5))
def test_any_log_gives_its_last_records(offsets, count, after):
    stamps = {offset: offset for offset in sorted(offsets)}
    consumer = Consumer({TP: log(TP, 0, max(offsets, default=0) + 1 + after, stamps)})
    assert [r.offset for r in last_records(consumer, [TP], count, 0)] == sorted(offsets)[-count:]
